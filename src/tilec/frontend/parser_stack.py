"""lark's interactive parser, with the questions that error recovery asks of it.

The only place that knows lark's parse tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters
from lark.grammar import Rule
from lark.parsers.lalr_analysis import Shift

END = "$END"

# For each state, what each symbol leads to: (Shift, the next state's number) or (Reduce, the rule).
_Table: TypeAlias = Mapping[int, Mapping[str, tuple[object, Rule]]]


class ParserStack:
    """A text being parsed: its next token, and what the parser makes of a token.

    Heights count the states on the stack; cutting the stack to a height that it had before drops
    what was read since.
    """

    def __init__(self, grammar: Lark, text: str) -> None:
        interactive = grammar.parse_interactive(text, start="file")
        self._text_length = len(text)
        self._state = interactive.parser_state
        self._lexer = interactive.lexer_thread.lexer
        self._lexer_state = interactive.lexer_thread.state
        self._table = self._state.parse_conf.parse_table.states
        self._end_state = self._state.parse_conf.end_state
        self.result: object = None

    @property
    def height(self) -> int:
        return len(self._state.state_stack)

    def next_token(self) -> Token:
        """The next token, of a kind that may stand here if there is one.

        The lexer for any place is asked first, the lexer for this place only if that disagrees, as
        at the `>>` that closes two lists: what both can give is the same, and each of the lexers
        for single places takes a millisecond to make.
        """
        lines = self._lexer_state.line_ctr
        start = lines.char_pos
        token = self.next_token_of_any_kind()
        if token.type == END or token.type in self._table[self._state.position]:
            return token
        lines.char_pos = start
        try:
            lexer = self._lexer.lexers[self._state.position]
            return lexer.next_token(self._lexer_state, self._state)
        except UnexpectedCharacters:
            lines.char_pos = start
            return self.next_token_of_any_kind()

    def next_token_of_any_kind(self) -> Token:
        """The next token, whatever the parser expects; every character starts one (UNKNOWN)."""
        try:
            return self._lexer.root_lexer.next_token(self._lexer_state, self._state)
        except EOFError:
            return self._end_token()

    def _end_token(self) -> Token:
        return Token(END, "", self._text_length, end_pos=self._text_length)

    def feed(self, token: Token) -> bool:
        """Whether the parser takes the token; where it does not, nothing has changed."""
        # Asked first: the parser completes rules before it finds that the token fits none of them.
        action = self._table[self._state.position].get(token.type)
        is_shifted = action is not None and action[0] is Shift
        if not is_shifted and not self.accepts(token.type):
            return False
        self.result = self._state.feed_token(token, token.type == END)
        return True

    def settle(self) -> None:
        """Completes every rule that is complete whatever follows, such as a block at its `}`."""
        states, values = self._state.state_stack, self._state.value_stack
        while (rule := self._only_reduction(states[-1])) is not None:
            start = len(values) - len(rule.expansion)
            value = self._state.parse_conf.callbacks[rule](values[start:])
            del values[start:], states[start + 1 :]
            states.append(self._table[states[-1]][rule.origin.name][1])
            values.append(value)

    def _only_reduction(self, state: int) -> Rule | None:
        actions = [action for name, action in self._table[state].items() if _is_terminal(name)]
        if not actions or any(action != actions[0] for action in actions):
            return None
        kind, argument = actions[0]
        return None if kind is Shift else argument

    def accepts(self, *terminals: str, height: int | None = None) -> bool:
        """Whether the stack, cut to a height, would take these tokens one after the other."""
        trial = _Trial(self._table, self._end_state, self._state.state_stack, height or self.height)
        return all(trial.take(terminal) for terminal in terminals)

    def expected(self) -> frozenset[str]:
        """The terminals that the parser would take next."""
        choices = self._table[self._state.position]
        return frozenset(c for c in choices if _is_terminal(c) and self.accepts(c))

    def cut(self, height: int) -> list[object]:
        """Drops what is above a height; gives the values that were dropped."""
        del self._state.state_stack[height:]
        dropped: list[object] = self._state.value_stack[height - 1 :]
        del self._state.value_stack[height - 1 :]
        return dropped


class _Trial:
    """Feeds terminals to a stack of states without changing or copying it: stacks get long."""

    def __init__(self, table: _Table, end_state: int, states: list[int], height: int) -> None:
        self._table = table
        self._end_state = end_state
        self._states = states
        self._height = height  # what is left of the stack; on top of it lies `_pushed`
        self._pushed: list[int] = []

    @property
    def _top(self) -> int:
        return self._pushed[-1] if self._pushed else self._states[self._height - 1]

    def take(self, terminal: str) -> bool:
        while terminal != END or self._top != self._end_state:
            action = self._table[self._top].get(terminal)
            if action is None:
                return False
            kind, argument = action
            if kind is Shift:
                self._pushed.append(argument)
                return True
            self._drop(len(argument.expansion))
            self._pushed.append(self._table[self._top][argument.origin.name][1])
        return True

    def _drop(self, count: int) -> None:
        kept = max(0, len(self._pushed) - count)
        self._height -= count - (len(self._pushed) - kept)
        del self._pushed[kept:]


def _is_terminal(name: str) -> bool:
    return name.isupper()
