"""What all parts of the tree builder share: places, reports, and the limit on depth.

The parser calls a builder's method for each rule that it completes, with the values of the rule's
parts: tokens, nodes, tuples of nodes, and None for an optional part that is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from lark import Token

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.source import SourceFile, Span

Part: TypeAlias = Token | ast.Node | tuple[ast.Node, ...] | None
Parts: TypeAlias = list[Part]
NodeOf = TypeVar("NodeOf", bound=ast.Node)

# 256 nested brackets make at most three levels of tree each; later stages recurse this deep.
DEEPEST_TREE = 1000


class TooDeepError(Exception):
    """The tree is deeper than any stage after this one has to bear."""

    def __init__(self, place: Span) -> None:
        message = f"the program nests more than {DEEPEST_TREE} levels deep"
        note = "each operator, method and `else if` of a chain is a level"
        label = Label(place, "one level too many")
        super().__init__(message)
        self.diagnostic = Diagnostic("E0101", message, (label,), notes=(note,))


class NodeBuilder:
    """The state of one parse: the source, what was found wrong, how deep each value is."""

    def __init__(self) -> None:
        self.begin(SourceFile("", ""))

    def begin(self, source: SourceFile) -> None:
        """Forgets the previous parse."""
        self.source = source
        # A dictionary, as the parser may complete a rule twice: before and after an error.
        self.found: dict[Diagnostic, None] = {}
        # By identity; the value is kept so that no other object gets its identity.
        self._depths: dict[int, tuple[int, object]] = {}

    def __call__(self, method: Callable[[Parts], object], parts: Parts) -> object:
        """The value of a completed rule, refused where the tree gets too deep."""
        value = method(parts)
        depth = max((self._depths.get(id(part), (0, None))[0] for part in parts), default=0)
        if isinstance(value, ast.Node):
            depth += 1
        if depth > DEEPEST_TREE:
            whole = self.span(*parts)
            raise TooDeepError(Span(whole.file, max(whole.start, whole.end - 1), whole.end))
        if isinstance(value, ast.Node) or value:
            self._depths[id(value)] = (depth, value)
        return value

    def span(self, *parts: Part) -> Span:
        """From the first part that is there to the last."""
        spans = [span for span in map(self._span_of, parts) if span is not None]
        assert spans, "a rule with nothing in it has no place"
        return spans[0].to(spans[-1])

    def _span_of(self, part: Part) -> Span | None:
        if isinstance(part, Token):
            assert part.start_pos is not None and part.end_pos is not None
            return Span(self.source.name, part.start_pos, part.end_pos)
        if isinstance(part, tuple):
            return self.span(*part) if part else None
        return None if part is None else part.span

    def name(self, part: Part) -> ast.Name:
        assert isinstance(part, Token)
        return ast.Name(self.span(part), part.removeprefix("r#"))

    def with_span(self, node: NodeOf, *parts: Part) -> NodeOf:
        """The node, now covering its brackets too."""
        return replace(node, span=self.span(*parts))

    def report(self, diagnostic: Diagnostic) -> None:
        self.found[diagnostic] = None

    def refuse(self, place: Span, what: str, help: str | None = None) -> None:
        """Reports what is Rust, but not of the language; `what` is a plural."""
        message = f"{what} are not in the language"
        self.report(Diagnostic("E0102", message, (Label(place),), help=help))


def nodes(parts: Iterable[Part], kind: type[NodeOf]) -> tuple[NodeOf, ...]:
    """The parts that are nodes of a kind, without the tokens between them."""
    return tuple(part for part in parts if isinstance(part, kind))


def has(parts: Iterable[Part], terminal: str) -> bool:
    """Whether a token of that type is among the parts."""
    return token(parts, terminal) is not None


def token(parts: Iterable[Part], terminal: str) -> Token | None:
    """The first token of that type among the parts."""
    return next((p for p in parts if isinstance(p, Token) and p.type == terminal), None)
