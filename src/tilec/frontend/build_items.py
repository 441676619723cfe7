"""The tree builder's part for items: functions, constants, uses, and their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from lark import Token

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.build_node import Part, Parts, has, nodes
from tilec.frontend.build_statements import StatementBuilder, block_of
from tilec.frontend.build_types import expression_of, pattern_of, type_of
from tilec.frontend.comments import DocComment
from tilec.source import SourceFile, Span


@dataclass(frozen=True)
class Visibility(ast.Node):
    pass


@dataclass(frozen=True)
class Qualifier(ast.Node):
    """`unsafe`, `async` or `const` before `fn`."""

    word: str


@dataclass(frozen=True)
class Bound(ast.Node):
    """`Num` in `T: Num`; None where it is none of the language."""

    name: ast.Name | None


@dataclass(frozen=True)
class UsePath(ast.Node):
    words: tuple[ast.Name, ...]


class TreeBuilder(StatementBuilder):
    """Builds `frontend/ast.py` from what the grammar's rules find."""

    docs: tuple[DocComment, ...] = ()

    def begin(self, source: SourceFile, docs: tuple[DocComment, ...] = ()) -> None:
        super().begin(source)
        self.docs = docs

    # ---- the file ------------------------------------------------------------------------------

    def file(self, parts: Parts) -> ast.File:
        whole = Span(self.source.name, 0, len(self.source.text))
        items = tuple(self._documented(item for item in parts if isinstance(item, ast.Item)))
        inner = [doc.text for doc in self.docs if doc.inner]
        return ast.File(whole, items, "\n".join(inner))

    def _documented(self, items: Iterator[ast.Item]) -> Iterator[ast.Item]:
        """The items, each function with the doc comments between the item before and its name."""
        docs = [doc for doc in self.docs if not doc.inner]
        end_before = 0
        for item in items:
            if isinstance(item, ast.Function):
                own = [d.text for d in docs if end_before <= d.span.start < item.name.span.start]
                yield replace(item, documentation="\n".join(own))
            else:
                yield item
            end_before = item.span.end

    def item(self, parts: Parts) -> ast.Item:
        *before, item = parts
        attributes = nodes(before, ast.Attribute)
        visibility = nodes(before, Visibility)
        assert isinstance(item, ast.Item)
        if isinstance(item, ast.Function):
            return replace(
                item, span=self.span(*parts), attributes=attributes, public=bool(visibility)
            )
        for attribute in attributes:
            self._misplaced(attribute.span, "attributes stand before functions only")
        return self.with_span(item, *parts)

    def visibility(self, parts: Parts) -> Visibility:
        if has(parts, "LPAR"):
            help = "what is `pub` can be used by every other file"
            self.refuse(self.span(*parts), "restricted visibilities", help)
        return Visibility(self.span(*parts))

    # ---- functions -----------------------------------------------------------------------------

    def function(self, parts: Parts) -> ast.Function:
        for qualifier in nodes(parts, Qualifier):
            self.refuse(qualifier.span, f"functions that are `{qualifier.word}`")
        first = next(i for i, part in enumerate(parts) if has([part], "FN"))
        _, name, generics, _, parameters, _, result, _, body = parts[first:]
        return ast.Function(
            self.span(*parts),
            self.name(name),
            attributes=(),
            public=False,
            generics=cast("tuple[ast.GenericParameter, ...]", generics or ()),
            parameters=cast("tuple[ast.Parameter, ...]", parameters or ()),
            result=None if result is None else type_of(result),
            body=block_of(body),
        )

    def qualifier(self, parts: Parts) -> Qualifier:
        return Qualifier(self.span(*parts), str(parts[0]))

    def result(self, parts: Parts) -> ast.TypeNode:
        return type_of(parts[1])

    def where_clause(self, parts: Parts) -> None:
        self.refuse(self.span(*parts), "`where` clauses", "write the bound in the list: `<T: Num>`")

    def where_bound(self, parts: Parts) -> None:
        return None

    def parameters(self, parts: Parts) -> tuple[ast.Parameter, ...]:
        return nodes(parts, ast.Parameter)

    def parameter(self, parts: Parts) -> ast.Parameter:
        pattern, _, type = parts
        return ast.Parameter(self.span(*parts), pattern_of(pattern), type_of(type))

    # ---- generics ------------------------------------------------------------------------------

    def generics(self, parts: Parts) -> tuple[ast.GenericParameter, ...]:
        return nodes(parts, ast.GenericParameter)

    def type_parameter(self, parts: Parts) -> ast.GenericParameter:
        name, _, bound, equals, default = parts
        if default is not None:
            self._refuse_default(equals, default)
        written = bound.name if isinstance(bound, Bound) else None
        return ast.GenericParameter(self.span(*parts), self.name(name), written, None)

    def const_parameter(self, parts: Parts) -> ast.GenericParameter:
        _, name, _, type, equals, default = parts
        if default is not None:
            self._refuse_default(equals, default)
        return ast.GenericParameter(self.span(*parts), self.name(name), None, type_of(type))

    def _refuse_default(self, equals: Part, default: Part) -> None:
        help = "give the value in `#[instance(…)]`"
        self.refuse(self.span(equals, default), "defaults of generic parameters", help)

    def lifetime_parameter(self, parts: Parts) -> None:
        self.refuse(self.span(*parts), "lifetimes", "write the types without them")

    def bounds(self, parts: Parts) -> Bound:
        bounds = nodes(parts, Bound)
        if len(bounds) > 1:
            help = "`Num`, `Float`, `Int` and `Any` each stand alone"
            self.refuse(self.span(*parts), "several bounds on one parameter", help)
        return bounds[0]

    def bound(self, parts: Parts) -> Bound:
        place = self.span(*parts)
        type = parts[-1]
        if isinstance(type, ast.PathType) and len(parts) == 1 and not type.arguments:
            return Bound(place, type.name)
        self.refuse(place, "bounds other than `Num`, `Float`, `Int`, `Any` and `Dim`")
        return Bound(place, None)

    # ---- constants and uses --------------------------------------------------------------------

    def const_item(self, parts: Parts) -> ast.Const:
        _, name, _, type, _, value, _ = parts
        if has([name], "UNDERSCORE"):
            help = "a condition to check is a `static_assert!` in a function"
            self.refuse(self.span(name), "constants without a name", help)
        return ast.Const(self.span(*parts), self.name(name), type_of(type), expression_of(value))

    def use_item(self, parts: Parts) -> ast.Use:
        _, written, _ = parts
        if isinstance(written, UsePath) and len(written.words) == 2:
            module, name = written.words
            return ast.Use(self.span(*parts), module, (name,))
        if isinstance(written, ast.Use):
            return self.with_span(written, *parts)
        help = "a use takes names from a file beside this one: `use other::name;`"
        self.refuse(self.span(written), "uses of this form", help)
        name = ast.Name(self.span(written), "")
        return ast.Use(self.span(*parts), name, ())

    def use_tree(self, parts: Parts) -> Part:
        return parts[0]

    def use_group(self, parts: Parts) -> Part:
        """`other::{a, b}` is a use; anything deeper stays a path, which `use_item` refuses."""
        path, *rest = parts
        assert isinstance(path, UsePath)
        inner = [p for p in rest if p is not None and not isinstance(p, Token)]
        names = [p.words[0] for p in inner if isinstance(p, UsePath) and len(p.words) == 1]
        if len(path.words) != 1 or len(names) != len(inner):
            return UsePath(self.span(*parts), ())
        return ast.Use(self.span(*parts), path.words[0], tuple(names))

    def use_all(self, parts: Parts) -> UsePath:
        return UsePath(self.span(*parts), ())

    def use_renamed(self, parts: Parts) -> UsePath:
        return UsePath(self.span(*parts), ())

    def use_path(self, parts: Parts) -> UsePath:
        separator, word = parts
        assert isinstance(word, ast.Name)
        words = (word,) if separator is None and word.text else ()
        return UsePath(self.span(*parts), words)

    def longer_use_path(self, parts: Parts) -> UsePath:
        path, _, word = parts
        assert isinstance(path, UsePath)
        assert isinstance(word, ast.Name)
        words = (*path.words, word) if path.words and word.text else ()
        return UsePath(self.span(*parts), words)

    def use_word(self, parts: Parts) -> ast.Name:
        """A name; without text for `crate`, `super` and `self`, which are no files."""
        if has(parts, "NAME"):
            return self.name(parts[0])
        return ast.Name(self.span(*parts), "")

    # ---- attributes ----------------------------------------------------------------------------

    def attribute(self, parts: Parts) -> ast.Attribute:
        body = parts[2]
        assert isinstance(body, ast.Attribute)
        return self.with_span(body, *parts)

    def inner_attribute(self, parts: Parts) -> None:
        self._misplaced(self.span(*parts), "attributes stand before functions only")

    def attribute_body(self, parts: Parts) -> ast.Attribute:
        name, *rest = parts
        assert isinstance(name, ast.Name)
        if has(rest, "EQUAL"):
            self._misplaced(self.span(*rest), f"the attribute `{name.text}` takes no value")
        arguments = nodes(rest, ast.AttributeArgument)
        return ast.Attribute(self.span(*parts), name, arguments)

    def attribute_path(self, parts: Parts) -> ast.Name:
        words = (str(part) for part in parts)
        return ast.Name(self.span(*parts), "".join(words))

    def attribute_argument(self, parts: Parts) -> ast.AttributeArgument:
        name, _, value = parts
        assert isinstance(name, ast.Name)
        written = None if value is None else expression_of(value)
        return ast.AttributeArgument(self.span(*parts), name, written)

    def nested_attribute(self, parts: Parts) -> ast.AttributeArgument:
        name = parts[0]
        assert isinstance(name, ast.Name)
        if name.text != "hint":  # of an instance
            self._misplaced(self.span(*parts), f"`{name.text}` takes no list of its own")
        arguments = nodes(parts[1:], ast.AttributeArgument)
        return ast.AttributeArgument(self.span(*parts), name, None, arguments)

    def _misplaced(self, place: Span, message: str) -> None:
        self.report(Diagnostic("E0204", message, (Label(place),)))
