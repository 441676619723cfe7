"""The parser's loop, and how it goes on after an error.

One run reports every syntax error. After one, the parser drops what it has begun back to where a
statement may start (or else an item), skips the text up to where one is likely to start, and reads
on. What follows from an error is not reported again: an unexpected token right after a recovery,
with nothing read in between, belongs to the error before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Lark, Token

from tilec.frontend.build_items import TreeBuilder
from tilec.frontend.build_node import TooDeepError
from tilec.frontend.parser_stack import END, ParserStack
from tilec.frontend.syntax_errors import (
    Situation,
    missing,
    span_of,
    syntax_error,
    too_many_brackets,
)

MOST_NESTED_BRACKETS = 256
# Each level of operators takes two states, a bracket and what it belongs to a few more; only chains
# of prefixes (`- - - x`, `a = |b| |c| …`) get as tall without brackets.
_TALLEST_STACK = 4000

_CLOSERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
# A line that starts with one of these words starts a statement, whatever stands before it.
_STATEMENT_WORDS = frozenset(
    {"BREAK", "CONTINUE", "FOR", "LET", "LOOP", "RETURN", "UNSAFE", "WHILE"}
)
# These, without indentation, start an item.
_ITEM_WORDS = frozenset({"CONST", "FN", "HASH", "PUB", "USE"})
# What starts so ends with its block and needs no `;`.
_BLOCK_WORDS = _ITEM_WORDS | {
    "ASYNC", "FOR", "IF", "LBRACE", "LOOP", "MATCH", "RESERVED", "UNSAFE", "WHILE",
}  # fmt: skip
_NOT_SPACE = re.compile(r"\S")
_SIGNATURE = (("FN", "fn"), ("NAME", "_"), ("LPAR", "("), ("RPAR", ")"))


@dataclass(frozen=True)
class _Open:
    """A bracket that is not closed yet, and the stack's height with it."""

    token: Token
    height: int


class RecoveringParser:
    """One parse of one text; `run` gives the value of the rule `file`."""

    def __init__(self, grammar: Lark, builder: TreeBuilder, text: str) -> None:
        self._builder = builder
        self._text = text
        self._stack = ParserStack(grammar, text)
        self._open: list[_Open] = []
        self._previous: list[Token] = []
        self._closed: Token | None = None
        self._read_since_error = 1
        self._held: Token | None = None
        self._last_fault: int | None = None

    # ---- the loop ------------------------------------------------------------------------------

    def run(self) -> object:
        """Reads the whole text; what is wrong with it is reported to the builder."""
        while True:
            token = self._next()
            if token.type in _CLOSERS and len(self._open) == MOST_NESTED_BRACKETS:
                self._builder.report(too_many_brackets(self._situation(token)))
                return self._finish()
            if self._open and self._starts_item(token):
                self._report(token)
                self._cut(self._item_height())
            if self._stack.feed(token):
                self._note(token)
                if self._stack.height > _TALLEST_STACK:
                    raise TooDeepError(span_of(self._builder.source, token))
            else:
                self._recover(token)
            if token.type == END:
                return self._finish()

    def _finish(self) -> object:
        if self._stack.result is None:
            self._cut(self._item_height())
            taken = self._stack.feed(Token(END, "", len(self._text), end_pos=len(self._text)))
            assert taken, "a file may end after any item"
        return self._stack.result

    def _next(self) -> Token:
        if self._held is None:
            return self._stack.next_token()
        token, self._held = self._held, None
        return token

    def _note(self, token: Token) -> None:
        self._read_since_error += 1
        self._previous = [*self._previous[-2:], token]
        self._closed = None
        if token.type in _CLOSERS:
            self._open.append(_Open(token, self._stack.height))
        elif self._open and token.type == _CLOSERS[self._open[-1].token.type]:
            self._closed = self._open.pop().token

    # ---- recovery ------------------------------------------------------------------------------

    def _recover(self, token: Token) -> None:
        self._stack.settle()
        if self._insert_separator(token):
            return
        self._report(token)
        if token.type == END:
            return
        if token.start_pos == self._last_fault:
            # Dropping the token is the one way on that always ends.
            return
        self._last_fault = token.start_pos
        height, is_statement = self._restart()
        open_braces = sum(o.token.type == "LBRACE" for o in self._open if o.height > height)
        open_parentheses = sum(o.token.type == "LPAR" for o in self._open if o.height > height)
        dropped = self._cut(height)
        if is_statement:
            first = dropped[0] if dropped else token
            ends_with_block = isinstance(first, Token) and first.type in _BLOCK_WORDS
            self._skip_statement(token, open_braces, ends_with_block)
        else:
            in_signature = any(isinstance(d, Token) and d.type == "FN" for d in dropped)
            self._skip_item(token, open_braces, open_parentheses, in_signature)
        self._read_since_error = 0

    def _insert_separator(self, token: Token) -> bool:
        """Reads on as if the line before ended in `;` or `,`, where that helps."""
        if not self._previous or not self._is_first_on_line(token):
            return False
        for terminal, text in (("SEMICOLON", ";"), ("COMMA", ",")):
            if self._stack.accepts(terminal, token.type):
                end = self._previous[-1].end_pos
                self._builder.report(missing(text, self._situation(token)))
                self._stack.feed(Token(terminal, text, end, end_pos=end))
                self._held = token
                return True
        return False

    def _report(self, token: Token) -> None:
        diagnostic = syntax_error(self._situation(token))
        if diagnostic.code != "E0101" or self._read_since_error:
            self._builder.report(diagnostic)

    def _situation(self, token: Token) -> Situation:
        return Situation(
            self._builder.source,
            token,
            self._stack.expected(),
            tuple(self._previous),
            self._open[-1].token if self._open else None,
            self._closed,
            unindented_item=self._starts_item(token),
        )

    def _restart(self) -> tuple[int, bool]:
        """The greatest height at which a statement may start, or else an item."""
        for height in range(self._stack.height, 0, -1):
            # `if` takes a `let` too, but no attribute.
            if all(self._stack.accepts(word, height=height) for word in ("LET", "HASH")):
                return height, True
            if self._stack.accepts(END, height=height):
                return height, False
        raise AssertionError("an empty stack takes an item")

    def _item_height(self) -> int:
        heights = range(self._stack.height, 0, -1)
        return next(h for h in heights if self._stack.accepts(END, height=h))

    def _cut(self, height: int) -> list[object]:
        self._open = [o for o in self._open if o.height <= height]
        return self._stack.cut(height)

    # ---- skipping ------------------------------------------------------------------------------

    def _skip_statement(self, token: Token, braces: int, ends_with_block: bool) -> None:
        """Skips to the end of the statement that holds the fault.

        Assumes:  `braces` braces are open that the parser has dropped
        """
        squares = 0
        while token.type != END and not self._starts_item(token):
            if braces == 0 and self._starts_statement(token):
                break
            if token.type == "SEMICOLON" and braces == 0:
                # The `;` of `[0; 3]` ends nothing.
                if squares <= 0 or self._is_last_on_line(token):
                    return
            elif token.type == "LBRACE":
                braces += 1
            elif token.type == "RBRACE":
                if braces == 0:
                    break
                braces -= 1
                if braces == 0 and ends_with_block:
                    token = self._stack.next_token_of_any_kind()
                    if token.type == "ELSE":
                        continue
                    break
            elif token.type in ("LSQB", "RSQB"):
                squares += 1 if token.type == "LSQB" else -1
            token = self._stack.next_token_of_any_kind()
        self._held = token

    def _skip_item(self, token: Token, braces: int, parentheses: int, in_signature: bool) -> None:
        """Skips to the end of the item that holds the fault, or to the body of its function."""
        while token.type != END and not self._starts_item(token):
            if token.type == "LBRACE":
                if in_signature and braces == 0 and self._starts_body(token, parentheses):
                    self._feed_signature(token)
                    break
                braces += 1
            elif token.type == "RBRACE":
                braces -= 1
                if braces <= 0:
                    return
            elif token.type == "SEMICOLON" and braces == 0 and parentheses <= 0:
                return
            elif token.type in ("LPAR", "RPAR"):
                parentheses += 1 if token.type == "LPAR" else -1
            token = self._stack.next_token_of_any_kind()
        self._held = token

    def _starts_body(self, brace: Token, parentheses: int) -> bool:
        return parentheses <= 0 or self._is_last_on_line(brace)

    def _feed_signature(self, brace: Token) -> None:
        """A signature in place of the one with the fault, so that the body is read too."""
        for terminal, text in _SIGNATURE:
            start = brace.start_pos
            taken = self._stack.feed(Token(terminal, text, start, end_pos=start))
            assert taken, "an item may start here"

    # ---- places in the text --------------------------------------------------------------------

    def _starts_statement(self, token: Token) -> bool:
        return token.type in _STATEMENT_WORDS and self._is_first_on_line(token)

    def _starts_item(self, token: Token) -> bool:
        start = token.start_pos or 0
        if token.type not in _ITEM_WORDS or not self._is_unindented(start):
            return False
        # Where the bodies of functions are not indented, this tells nothing.
        return not self._open or not self._has_unindented_body(self._open[0].token)

    def _is_unindented(self, offset: int) -> bool:
        return offset == 0 or self._text[offset - 1] == "\n"

    def _has_unindented_body(self, bracket: Token) -> bool:
        inside = _NOT_SPACE.search(self._text, bracket.end_pos or 0)
        return inside is not None and inside[0] != "}" and self._is_unindented(inside.start())

    def _is_first_on_line(self, token: Token) -> bool:
        start = token.start_pos or 0
        line_start = self._text.rfind("\n", 0, start) + 1
        return not self._text[line_start:start].strip()

    def _is_last_on_line(self, token: Token) -> bool:
        end = token.end_pos or 0
        line_end = self._text.find("\n", end)
        return not self._text[end : line_end if line_end >= 0 else len(self._text)].strip()
