"""The tree builder's part for blocks, statements and what ends in a block."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lark import Token

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.build_expressions import ExpressionBuilder
from tilec.frontend.build_node import Part, Parts, token
from tilec.frontend.build_types import expression_of, pattern_of, patterns, type_of
from tilec.source import Span

BlockLike = ast.Block | ast.If | ast.For | ast.While | ast.Loop | ast.Match


@dataclass(frozen=True)
class NoStatement(ast.Node):
    """A lone `;`, or an attribute: it only ends what stands before it."""


@dataclass(frozen=True)
class BlockStatement(ast.Node):
    """A block-like expression without `;`: the block's value if it is the last statement."""

    value: ast.Expression


@dataclass(frozen=True)
class ArmHead(ast.Node):
    patterns: tuple[ast.Pattern, ...]
    guard: ast.Expression | None


def block_of(part: Part) -> ast.Block:
    """The part, which the grammar says is a block."""
    assert isinstance(part, ast.Block)
    return part


class StatementBuilder(ExpressionBuilder):
    # ---- blocks --------------------------------------------------------------------------------

    def block(self, parts: Parts) -> ast.Block:
        _, *written, tail, _ = parts
        value = None if tail is None else expression_of(tail)
        last = written[-1] if written else None
        if value is None and isinstance(last, BlockStatement) and _has_value(last.value):
            value = last.value
            written.pop()
        if tail is not None:
            self._check_leading_block(expression_of(tail))
        statements = (self._statement(part) for part in written)
        return ast.Block(self.span(*parts), tuple(s for s in statements if s is not None), value)

    def _statement(self, part: Part) -> ast.Statement | None:
        if isinstance(part, BlockStatement):
            return ast.ExpressionStatement(part.span, part.value)
        return part if isinstance(part, ast.Statement) else None

    def unsafe_block(self, parts: Parts) -> ast.Block:
        word, block = parts
        return replace(block_of(block), span=self.span(*parts), unsafe_span=self.span(word))

    # ---- statements ----------------------------------------------------------------------------

    def empty_statement(self, parts: Parts) -> NoStatement:
        return NoStatement(self.span(*parts))

    def attribute_statement(self, parts: Parts) -> NoStatement:
        message = "attributes stand before functions only"
        self.report(Diagnostic("E0204", message, (Label(self.span(*parts)),)))
        return NoStatement(self.span(*parts))

    def let(self, parts: Parts) -> ast.Let:
        _, pattern, _, type, _, value, _ = parts
        return ast.Let(
            self.span(*parts),
            pattern_of(pattern),
            None if type is None else type_of(type),
            None if value is None else expression_of(value),
        )

    def let_else(self, parts: Parts) -> ast.Let:
        _, pattern, _, type, _, value, otherwise, *_ = parts
        self.refuse(self.span(otherwise), "`let … else` statements")
        written_type = None if type is None else type_of(type)
        return ast.Let(self.span(*parts), pattern_of(pattern), written_type, expression_of(value))

    def expression_statement(self, parts: Parts) -> ast.ExpressionStatement:
        value = expression_of(parts[0])
        self._check_leading_block(value)
        return ast.ExpressionStatement(self.span(*parts), value)

    def block_statement(self, parts: Parts) -> BlockStatement:
        return BlockStatement(self.span(*parts), expression_of(parts[0]))

    def assignment_statement(self, parts: Parts) -> ast.Assign:
        assignment, _ = parts
        assert isinstance(assignment, ast.Assign)
        self._check_leading_block(assignment.target, is_operand=True)
        return self.with_span(assignment, *parts)

    def assignment(self, parts: Parts) -> ast.Assign:
        target, operator, value = parts
        assert isinstance(operator, Token)
        return ast.Assign(
            self.span(*parts),
            expression_of(target),
            str(operator),
            self.span(operator),
            expression_of(value),
        )

    def assignment_operator(self, parts: Parts) -> Token:
        [operator] = parts
        assert isinstance(operator, Token)
        return operator

    def _check_leading_block(self, value: ast.Expression, *, is_operand: bool = False) -> None:
        """Refuses `if a { b } else { c } + d` at the start of a statement, as Rust does."""
        start = value.span.start
        first = value
        while True:
            match first:
                case ast.Binary(left=left):
                    first = left
                case ast.Cast(value=inner):
                    first = inner
                case ast.Range(start=inner):
                    first = inner
                case _:
                    break
        starts_with_block = isinstance(first, BlockLike) and self.source.text[start] != "("
        if not starts_with_block or (first is value and not is_operand):
            return
        after = Span(first.span.file, first.span.end, first.span.end)
        self.report(
            Diagnostic(
                "E0101",
                "a block at the start of a statement ends the statement, as in Rust",
                (
                    Label(after, "the statement ends here"),
                    Label(first.span, "this block starts it"),
                ),
                help="put the block in parentheses",
            )
        )

    # ---- what ends in a block ------------------------------------------------------------------

    def if_(self, parts: Parts) -> ast.If:
        _, condition, then, _, otherwise = parts
        return ast.If(
            self.span(*parts),
            expression_of(condition),
            block_of(then),
            None if otherwise is None else expression_of(otherwise),
        )

    def let_condition(self, parts: Parts) -> ast.Expression:
        self.refuse(self.span(*parts[:2]), "`if let` and `while let`")
        return expression_of(parts[-1])

    def for_(self, parts: Parts) -> ast.For:
        _, pattern, _, iterable, body = parts
        return ast.For(
            self.span(*parts), pattern_of(pattern), expression_of(iterable), block_of(body)
        )

    def while_(self, parts: Parts) -> ast.While:
        _, condition, body = parts
        return ast.While(self.span(*parts), expression_of(condition), block_of(body))

    def loop_(self, parts: Parts) -> ast.Loop:
        return ast.Loop(self.span(*parts), block_of(parts[-1]))

    def labelled(self, parts: Parts) -> ast.Expression:
        self.refuse(self.span(*parts[:2]), "labels")
        return expression_of(parts[-1])

    def match_(self, parts: Parts) -> ast.Match:
        arms = tuple(part for part in parts if isinstance(part, ast.MatchArm))
        return ast.Match(self.span(*parts), expression_of(parts[1]), arms)

    def arm(self, parts: Parts) -> ast.MatchArm:
        head, _, body, *_ = parts
        assert isinstance(head, ArmHead)
        value = expression_of(body)
        return ast.MatchArm(self.span(head, value), head.patterns, head.guard, value)

    def assignment_arm(self, parts: Parts) -> ast.MatchArm:
        """`0 => x = 1` is `0 => { x = 1; }`: an assignment has no value."""
        head, _, assignment, *_ = parts
        assert isinstance(head, ArmHead)
        assert isinstance(assignment, ast.Assign)
        body = ast.Block(assignment.span, (assignment,), None)
        return ast.MatchArm(self.span(head, body), head.patterns, head.guard, body)

    def arm_patterns(self, parts: Parts) -> ArmHead:
        guard = expression_of(parts[-1]) if token(parts, "IF") is not None else None
        return ArmHead(self.span(*parts), patterns(parts), guard)


def _has_value(block_like: ast.Expression) -> bool:
    """Whether a last statement may be the value of its block."""
    match block_like:
        case ast.For() | ast.While():
            return False
        case ast.If(otherwise=otherwise):
            return otherwise is not None
    return True
