"""Text to syntax tree.

Guarantees: never raises on any text. With no diagnostics the tree is the whole file; with some it
            holds the items that could be read, and later stages have nothing to do with it.
"""

from __future__ import annotations

from functools import cache, partial
from threading import Lock
from typing import cast

from lark import Lark

from tilec.diagnostics import Diagnostic
from tilec.frontend import ast
from tilec.frontend.build_items import TreeBuilder
from tilec.frontend.build_node import TooDeepError
from tilec.frontend.comments import uncommented
from tilec.frontend.grammar import load_grammar
from tilec.frontend.out_of_place import check_places
from tilec.frontend.recovery import RecoveringParser
from tilec.source import SourceFile

# The builder belongs to the parser's tables, and its state to one parse at a time.
_one_at_a_time = Lock()


def parse(source: SourceFile) -> tuple[ast.File, list[Diagnostic]]:
    """The tree of a file and everything that is wrong with its syntax, in the order of the text."""
    plain = uncommented(source)
    with _one_at_a_time:
        grammar, builder = _grammar()
        builder.begin(source, plain.docs)
        file = _file(RecoveringParser(grammar, builder, plain.text), builder)
        found = [*plain.diagnostics, *builder.found, *check_places(file)]
    return file, sorted(dict.fromkeys(found), key=lambda diagnostic: diagnostic.span)


def _file(parser: RecoveringParser, builder: TreeBuilder) -> ast.File:
    try:
        return cast("ast.File", parser.run())
    except TooDeepError as limit:
        builder.report(limit.diagnostic)
        return builder.file([])


class _Reductions:
    """What lark calls for the rule `name`: the builder's method of that name."""

    def __init__(self, builder: TreeBuilder) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> object:
        return partial(self._builder, getattr(self._builder, name))


@cache
def _grammar() -> tuple[Lark, TreeBuilder]:
    builder = TreeBuilder()
    return load_grammar(_Reductions(builder)), builder
