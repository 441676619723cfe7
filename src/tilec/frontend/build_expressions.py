"""The tree builder's part for expressions."""

from __future__ import annotations

from typing import cast

from lark import Token

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.build_node import Part, Parts, has, token
from tilec.frontend.build_types import (
    Turbofish,
    TypeBuilder,
    expression_of,
    pattern_of,
    patterns,
)
from tilec.frontend.names_elsewhere import FIELDS, VALUES
from tilec.frontend.names_elsewhere import MACROS as FOREIGN_MACROS
from tilec.frontend.ways import Use

# What a macro means is the type checker's business; that there are no others is the language's.
MACROS = ("assert", "println", "requires", "static_assert")


def expressions(parts: Parts) -> tuple[ast.Expression, ...]:
    return tuple(part for part in parts if isinstance(part, ast.Expression))


class ExpressionBuilder(TypeBuilder):
    # ---- operators -----------------------------------------------------------------------------

    def binary(self, parts: Parts) -> ast.Binary:
        left, operator, right = parts
        assert isinstance(operator, Token)
        value = expression_of(left)
        if operator.type in ("LESSTHAN", "SHIFT_LEFT") and self._is_bare_cast(value):
            self._report_comparison_of_cast(value, operator)
        return ast.Binary(
            self.span(*parts), str(operator), self.span(operator), value, expression_of(right)
        )

    def _is_bare_cast(self, value: ast.Expression) -> bool:
        # A cast ends with a name unless it stands in parentheses.
        while isinstance(value, ast.Binary):
            value = value.right
        return isinstance(value, ast.Cast) and self.source.text[value.span.end - 1] != ")"

    def _report_comparison_of_cast(self, value: ast.Expression, operator: Token) -> None:
        message = f"`{operator}` after a type starts its generic arguments, as in Rust"
        labels = (Label(self.span(operator)), Label(value.span, "this ends with a type"))
        text = self.source.text[value.span.start : value.span.end]
        help = f"write `({text}) {operator} …`" if len(text) <= 40 and "\n" not in text else None
        self.report(Diagnostic("E0101", message, labels, help=help))

    def unary(self, parts: Parts) -> ast.Unary:
        operator, operand = parts
        return ast.Unary(self.span(*parts), str(operator), expression_of(operand))

    def borrow(self, parts: Parts) -> ast.Borrow:
        return ast.Borrow(self.span(*parts), has(parts, "MUT"), expression_of(parts[-1]))

    def double_borrow(self, parts: Parts) -> ast.Borrow:
        self.refuse(self.span(parts[0]), "references to references")
        return self.borrow(parts)

    def dereference(self, parts: Parts) -> ast.Expression:
        start = self.span(parts[0]).start
        if self.source.text[max(0, start - 1) : start] == "*":
            help = "write `t.powf(0.5)`, or `t.powi(2)`"
            self.refuse(self.span(parts[0]), "powers with `**`", help)
            return expression_of(parts[-1])
        help = "tiles are values, and a part or a tensor is used by its methods: leave the `*` out"
        self.refuse(self.span(parts[0]), "dereferences with `*`", help)
        return expression_of(parts[-1])

    def try_(self, parts: Parts) -> ast.Expression:
        help = "nothing fails; a choice is `if n > 0 { a } else { b }`"
        self.refuse(self.span(parts[-1]), "`?` and the results that it unwraps", help)
        return expression_of(parts[0])

    def cast(self, parts: Parts) -> ast.Cast:
        value, _, target = parts
        name = self.name(target)
        return ast.Cast(self.span(*parts), expression_of(value), ast.PathType(name.span, name))

    def range_(self, parts: Parts) -> ast.Range:
        start, operator, end = parts
        inclusive = has([operator], "RANGE_INCLUSIVE")
        return ast.Range(self.span(*parts), expression_of(start), expression_of(end), inclusive)

    # ---- calls, members, indices ---------------------------------------------------------------

    def arguments(self, parts: Parts) -> tuple[ast.Expression, ...]:
        return expressions(parts)

    def _given(self, part: Part) -> tuple[ast.Expression, ...]:
        return cast("tuple[ast.Expression, ...]", part or ())

    def call(self, parts: Parts) -> ast.Expression:
        function, _, arguments, _ = parts
        if not isinstance(function, ast.Path):
            self.refuse(self.span(function), "functions as values", "call a function by its name")
            return expression_of(function)
        return ast.Call(self.span(*parts), function, self._given(arguments))

    def method_call(self, parts: Parts) -> ast.MethodCall:
        receiver, _, name, turbofish, _, arguments, _ = parts
        generics = turbofish.arguments if isinstance(turbofish, Turbofish) else None
        return ast.MethodCall(
            self.span(*parts),
            expression_of(receiver),
            self.name(name),
            generics,
            self._given(arguments),
        )

    def named_field(self, parts: Parts) -> ast.Expression:
        value, _, name = parts
        self.refuse(self.span(name), "structs and their fields", self._field_help(value, str(name)))
        return expression_of(value)

    def _field_help(self, value: Part, name: str) -> str:
        owner = self._written(value)
        if owner in VALUES:
            return Use(()).text(VALUES[owner])
        if name in FIELDS:
            return Use((owner,)).text(FIELDS[name])
        return f"a method is called with parentheses, `.{name}()`; its generics start with `::<`"

    def _written(self, part: Part) -> str:
        span = self.span(part)
        return self.source.text[span.start : span.end]

    def field(self, parts: Parts) -> ast.Field:
        value, _, number = parts
        assert isinstance(number, Token)
        index = int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 0
        if str(index) != number:
            message = f"expected the number of a tuple's item, got `{number}`"
            self.report(Diagnostic("E0101", message, (Label(self.span(number)),)))
        return ast.Field(self.span(*parts), expression_of(value), index)

    def index(self, parts: Parts) -> ast.Index:
        value, _, index, _ = parts
        return ast.Index(self.span(*parts), expression_of(value), expression_of(index))

    def macro_call(self, parts: Parts) -> ast.MacroCall:
        word, bang, opening, *_ = parts
        name = self.name(word)
        if name.text not in MACROS:
            help = self._macro_help(name.text, parts)
            self.refuse(self.span(word, bang), f"macros like `{name.text}!`", help)
        elif has([opening], "LSQB"):
            message = f"expected `(` after `{name.text}!`, got `[`"
            self.report(Diagnostic("E0101", message, (Label(self.span(opening)),)))
        return ast.MacroCall(self.span(*parts), name, self._macro_arguments(parts))

    def _macro_arguments(self, parts: Parts) -> tuple[ast.Expression, ...]:
        return self._given(next((part for part in parts[3:] if isinstance(part, tuple)), ()))

    def _macro_help(self, name: str, parts: Parts) -> str:
        operands = tuple(self._written(argument) for argument in self._macro_arguments(parts))
        if name in FOREIGN_MACROS:
            return Use(operands).text(FOREIGN_MACROS[name])
        return f"there are {', '.join(f'`{macro}!`' for macro in MACROS)}"

    # ---- primaries -----------------------------------------------------------------------------

    def path(self, parts: Parts) -> ast.Path:
        first, *rest = parts
        segments = [ast.Segment(self.span(first), self.name(first))]
        for part in rest:
            last = segments[-1]
            if isinstance(part, ast.Segment):
                segments.append(part)
            elif last.arguments is not None:
                message = "expected one list of generic arguments, got another"
                self.report(Diagnostic("E0101", message, (Label(self.span(part)),)))
            else:
                assert isinstance(part, Turbofish)
                segments[-1] = ast.Segment(self.span(last, part), last.name, part.arguments)
        return ast.Path(self.span(*parts), tuple(segments))

    def path_rest(self, parts: Parts) -> ast.Segment | Turbofish:
        part = parts[-1]
        return (
            part if isinstance(part, Turbofish) else ast.Segment(self.span(part), self.name(part))
        )

    def parenthesised(self, parts: Parts) -> ast.Expression:
        return self.with_span(expression_of(parts[1]), *parts)

    def tuple_expression(self, parts: Parts) -> ast.Tuple:
        return ast.Tuple(self.span(*parts), expressions(parts))

    def array(self, parts: Parts) -> ast.Array:
        return ast.Array(self.span(*parts), self._given(parts[1]))

    def array_repeat(self, parts: Parts) -> ast.ArrayRepeat:
        _, item, _, length, _ = parts
        return ast.ArrayRepeat(self.span(*parts), expression_of(item), expression_of(length))

    # ---- closures and jumps --------------------------------------------------------------------

    def closure(self, parts: Parts) -> ast.Closure:
        return ast.Closure(self.span(*parts), patterns(parts), expression_of(parts[-1]))

    def typed_closure(self, parts: Parts) -> ast.Closure:
        result = next(part for part in parts if isinstance(part, ast.TypeNode))
        self.refuse(result.span, "closures with written types", "leave the type out")
        return self.closure(parts)

    def closure_parameter(self, parts: Parts) -> ast.Pattern:
        pattern, _, type = parts
        if type is not None:
            self.refuse(self.span(type), "closures with written types", "leave the type out")
        return pattern_of(pattern)

    def return_(self, parts: Parts) -> ast.Return:
        _, value = parts
        return ast.Return(self.span(*parts), None if value is None else expression_of(value))

    def break_(self, parts: Parts) -> ast.Break:
        self._refuse_label(parts)
        value = parts[-1]
        return ast.Break(self.span(*parts), None if value is None else expression_of(value))

    def continue_(self, parts: Parts) -> ast.Continue:
        self._refuse_label(parts)
        return ast.Continue(self.span(*parts))

    def _refuse_label(self, parts: Parts) -> None:
        label = token(parts, "LIFETIME")
        if label is not None:
            self.refuse(self.span(label), "labels")
