"""The tree builder's part for types, generic arguments, patterns and literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lark import Token

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.build_node import NodeBuilder, Part, Parts, has, nodes, token
from tilec.frontend.literals import LiteralFault, float_text, integer_value, string_value
from tilec.source import Span


@dataclass(frozen=True)
class Turbofish(ast.Node):
    """`::<…>` after a path or a method, until it becomes part of one."""

    arguments: tuple[ast.GenericArgument, ...]


def type_of(part: Part) -> ast.TypeNode:
    """The part, which the grammar says is a type."""
    assert isinstance(part, ast.TypeNode)
    return part


def expression_of(part: Part) -> ast.Expression:
    """The part, which the grammar says is an expression."""
    assert isinstance(part, ast.Expression)
    return part


def pattern_of(part: Part) -> ast.Pattern:
    """The part, which the grammar says is a pattern."""
    assert isinstance(part, ast.Pattern)
    return part


def patterns(parts: Parts) -> tuple[ast.Pattern, ...]:
    return tuple(part for part in parts if isinstance(part, ast.Pattern))


class TypeBuilder(NodeBuilder):
    # ---- types ---------------------------------------------------------------------------------

    def path_type(self, parts: Parts) -> ast.PathType:
        segments = nodes(parts, ast.PathType)
        if len(segments) > 1:
            self.refuse(self.span(*parts), "paths in types", "take the name in with `use`")
        return self.with_span(segments[-1], *parts)

    def type_segment(self, parts: Parts) -> ast.PathType:
        name, *rest = parts
        arguments = self._arguments(rest[1]) if rest else ()
        return ast.PathType(self.span(*parts), self.name(name), arguments)

    def _arguments(self, part: Part) -> tuple[ast.GenericArgument, ...]:
        return cast("tuple[ast.GenericArgument, ...]", part or ())

    def reference_type(self, parts: Parts) -> ast.ReferenceType:
        self._refuse_lifetime(parts)
        return ast.ReferenceType(self.span(*parts), has(parts, "MUT"), type_of(parts[-1]))

    def double_reference_type(self, parts: Parts) -> ast.ReferenceType:
        self.refuse(self.span(parts[0]), "references to references")
        return self.reference_type(parts)

    def _refuse_lifetime(self, parts: Parts) -> None:
        lifetime = token(parts, "LIFETIME")
        if lifetime is not None:
            self.refuse(self.span(lifetime), "lifetimes", "write the type without it")

    def tuple_type(self, parts: Parts) -> ast.TupleTypeNode:
        items = tuple(part for part in parts if isinstance(part, ast.TypeNode))
        return ast.TupleTypeNode(self.span(*parts), items)

    def parenthesised_type(self, parts: Parts) -> ast.TypeNode:
        return self.with_span(type_of(parts[1]), *parts)

    def array_type(self, parts: Parts) -> ast.ArrayTypeNode:
        _, item, _, length, _ = parts
        return ast.ArrayTypeNode(self.span(*parts), type_of(item), expression_of(length))

    def slice_type(self, parts: Parts) -> ast.TypeNode:
        help = "a tensor is `&Tensor<f32, N>`; an array's type has its length, `[usize; 3]`"
        self.refuse(self.span(*parts), "slices", help)
        return type_of(parts[1])

    def pointer_type(self, parts: Parts) -> ast.TypeNode:
        help = "a kernel takes `&Tensor<…>`, `&mut Tensor<…>` or `Part<…>`"
        self.refuse(self.span(*parts), "raw pointers", help)
        return type_of(parts[-1])

    def never_type(self, parts: Parts) -> ast.TypeNode:
        self.refuse(self.span(*parts), "functions that never return")
        return ast.TupleTypeNode(self.span(*parts), ())

    def inferred_type(self, parts: Parts) -> ast.TypeNode:
        self.refuse(self.span(*parts), "types left out with `_`")
        return ast.TupleTypeNode(self.span(*parts), ())

    # ---- generic arguments ---------------------------------------------------------------------

    def generic_arguments(self, parts: Parts) -> tuple[ast.GenericArgument, ...]:
        return tuple(part for part in parts if isinstance(part, ast.GenericArgument))

    def turbofish(self, parts: Parts) -> Turbofish:
        return Turbofish(self.span(*parts), self._arguments(parts[1]))

    def const_argument(self, parts: Parts) -> ast.ConstArgument:
        return ast.ConstArgument(self.span(*parts), expression_of(parts[0]))

    def negative_argument(self, parts: Parts) -> ast.ConstArgument:
        place = self.span(*parts)
        message = "a negative number in generic arguments stands in braces"
        help = f"write `{{{self.source.text[place.start : place.end]}}}`"
        self.report(Diagnostic("E0101", message, (Label(place),), help=help))
        return ast.ConstArgument(place, ast.Unary(place, "-", expression_of(parts[1])))

    def braced_argument(self, parts: Parts) -> ast.ConstArgument:
        return ast.ConstArgument(self.span(*parts), expression_of(parts[1]))

    def lifetime_argument(self, parts: Parts) -> None:
        self._refuse_lifetime(parts)

    def binding_argument(self, parts: Parts) -> ast.TypeNode:
        self.refuse(self.span(*parts), "associated types")
        return type_of(parts[-1])

    # ---- patterns ------------------------------------------------------------------------------

    def binding_pattern(self, parts: Parts) -> ast.BindingPattern:
        return ast.BindingPattern(self.span(*parts), self.name(parts[-1]), has(parts, "MUT"))

    def wildcard_pattern(self, parts: Parts) -> ast.WildcardPattern:
        return ast.WildcardPattern(self.span(*parts))

    def tuple_pattern(self, parts: Parts) -> ast.Pattern:
        items = patterns(parts)
        if len(items) == 1 and not has(parts, "COMMA"):
            return self.with_span(items[0], *parts)
        return ast.TuplePattern(self.span(*parts), items)

    def array_pattern(self, parts: Parts) -> ast.ArrayPattern:
        return ast.ArrayPattern(self.span(*parts), patterns(parts))

    def literal_pattern(self, parts: Parts) -> ast.LiteralPattern:
        first, *rest = parts
        value = expression_of(first)
        if rest:
            inclusive = has(rest, "RANGE_INCLUSIVE")
            value = ast.Range(self.span(*parts), value, expression_of(rest[1]), inclusive)
        return ast.LiteralPattern(self.span(*parts), value)

    def rest_pattern(self, parts: Parts) -> ast.WildcardPattern:
        self.refuse(self.span(*parts), "patterns with `..`", "write `_` for each item")
        return ast.WildcardPattern(self.span(*parts))

    def reference_pattern(self, parts: Parts) -> ast.Pattern:
        self.refuse(self.span(*parts), "patterns of references")
        return pattern_of(parts[-1])

    def ref_pattern(self, parts: Parts) -> ast.BindingPattern:
        self.refuse(self.span(parts[0]), "bindings by `ref`")
        return self.binding_pattern(parts)

    # ---- literals ------------------------------------------------------------------------------

    def integer_literal(self, parts: Parts) -> ast.IntegerLiteral:
        place = self.span(*parts)
        read = integer_value(self._text(parts))
        if isinstance(read, LiteralFault):
            self._report_literal(place, read)
            return ast.IntegerLiteral(place, 0, None)
        return ast.IntegerLiteral(place, *read)

    def float_literal(self, parts: Parts) -> ast.FloatLiteral:
        place = self.span(*parts)
        read = float_text(self._text(parts))
        if isinstance(read, LiteralFault):
            self._report_literal(place, read)
            return ast.FloatLiteral(place, "0.0", None)
        return ast.FloatLiteral(place, *read)

    def boolean_literal(self, parts: Parts) -> ast.BoolLiteral:
        return ast.BoolLiteral(self.span(*parts), has(parts, "TRUE"))

    def string_literal(self, parts: Parts) -> ast.StringLiteral:
        place = self.span(*parts)
        text = self._text(parts)
        if text.startswith("b"):
            self.refuse(place, "strings of bytes")
            return ast.StringLiteral(place, "")
        read = string_value(text)
        if isinstance(read, LiteralFault):
            self._report_literal(place, read)
            return ast.StringLiteral(place, "")
        return ast.StringLiteral(place, read)

    def character_literal(self, parts: Parts) -> ast.IntegerLiteral:
        self.refuse(self.span(*parts), "characters as values")
        return ast.IntegerLiteral(self.span(*parts), 0, None)

    def _text(self, parts: Parts) -> str:
        [literal] = parts
        assert isinstance(literal, Token)
        return str(literal)

    def _report_literal(self, literal: Span, fault: LiteralFault) -> None:
        place = Span(literal.file, literal.start + fault.start, literal.start + fault.end)
        code = "E0102" if fault.foreign else "E0101"
        self.report(Diagnostic(code, fault.message, (Label(place),), help=fault.help))
