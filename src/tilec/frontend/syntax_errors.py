"""What to say of a token that the grammar does not take.

E0102 where the token starts something that is Rust but not of the language; else E0101, which says
what it is in other languages, or in users' words what may stand there.
"""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend.foreign import Foreign, foreign_construct
from tilec.frontend.foreign_syntax import other_syntax
from tilec.source import SourceFile, Span

# (what it is called, the terminals that tell it, the terminals that tell it is something else)
_NOUNS: tuple[tuple[str, set[str], set[str]], ...] = (
    ("a statement", {"LET", "HASH"}, set()),
    ("an expression", {"IF", "INTEGER"}, {"HASH"}),
    ("an item", {"FN", "USE"}, {"LET"}),
    ("a generic argument", {"INTEGER", "UNDERSCORE", "BANG"}, {"IF"}),
    ("a pattern", {"MUT", "UNDERSCORE", "RANGE"}, {"IF"}),
    ("a type", {"UNDERSCORE", "BANG", "STAR"}, {"INTEGER"}),
    ("a literal", {"INTEGER", "FLOAT", "STRING"}, {"IF", "UNDERSCORE"}),
    ("a name", {"NAME"}, {"IF", "UNDERSCORE", "AMPERSAND"}),
    ("the number of a tuple's item", {"INTEGER"}, {"FLOAT", "IF"}),
)
# Marks are named in this order; what may go on an expression (operators, `.`, `[`) is not named.
_MARKS = {
    "SEMICOLON": ";", "COMMA": ",", "RPAR": ")", "RSQB": "]", "RBRACE": "}", "MORETHAN": ">",
    "VBAR": "|", "EQUAL": "=", "COLON": ":", "IN": "in", "LBRACE": "{", "LPAR": "(", "FN": "fn",
    "LSQB": "[", "FAT_ARROW": "=>", "ARROW": "->", "BANG": "!", "LESSTHAN": "<",
    "PATH_SEPARATOR": "::", "MUT": "mut", "CONST": "const",
}  # fmt: skip
_AFTER_OPERAND = {"VBAR", "LPAR", "LSQB", "BANG", "LESSTHAN", "MORETHAN", "PATH_SEPARATOR", "EQUAL"}
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_COMPARISONS = {"<", ">", "<=", ">=", "==", "!="}
_LONGEST_QUOTE = 24


@dataclass(frozen=True)
class Situation:
    """A token that does not fit, and what surrounds it."""

    source: SourceFile
    token: Token
    expected: frozenset[str]
    previous: tuple[Token, ...]  # up to three, the nearest last
    open_bracket: Token | None  # the innermost
    closed_bracket: Token | None  # the opening of the bracket that the token before closed
    unindented_item: bool  # the token looks like the start of the next item

    @property
    def span(self) -> Span:
        return span_of(self.source, self.token)


def span_of(source: SourceFile, token: Token) -> Span:
    assert token.start_pos is not None and token.end_pos is not None
    return Span(source.name, token.start_pos, token.end_pos)


def syntax_error(at: Situation) -> Diagnostic:
    """The diagnostic for an unexpected token."""
    if not at.unindented_item:
        if other := other_syntax(at):
            return _not_there("E0101", other, at)
        if foreign := foreign_construct(at):
            return _not_there("E0102", foreign, at)
    if at.unindented_item and at.open_bracket is not None:
        return _unclosed(at, at.open_bracket)
    message = f"expected {_expected(at)}, got {_quoted(at.token)}"
    return Diagnostic("E0101", message, tuple(_labels(at)), help=_help(at))


def _not_there(code: str, found: Foreign, at: Situation) -> Diagnostic:
    message = f"{found.what} are not in the language"
    return Diagnostic(code, message, (Label(found.place or at.span),), help=found.help)


def missing(mark: str, at: Situation) -> Diagnostic:
    """The diagnostic for a `;` or `,` that is left out at the end of a line."""
    end = span_of(at.source, at.previous[-1]).end
    labels = (
        Label(Span(at.source.name, end, end), f"`{mark}` is missing here"),
        Label(at.span, "this starts something else"),
    )
    return Diagnostic("E0101", f"expected `{mark}`, got {_quoted(at.token)}", labels)


def too_many_brackets(at: Situation) -> Diagnostic:
    message = "more than 256 nested brackets"
    return Diagnostic("E0101", message, (Label(at.span, "one bracket too many"),))


def _unclosed(at: Situation, bracket: Token) -> Diagnostic:
    closer = _CLOSED_BY[str(bracket)]
    labels = (
        Label(at.span, "this looks like the next item"),
        Label(span_of(at.source, bracket), f"this `{bracket}` is not closed"),
    )
    return Diagnostic("E0101", f"expected `{closer}`, got {_quoted(at.token)}", labels)


def _expected(at: Situation) -> str:
    nouns = [noun for noun, tells, denies in _NOUNS if _tells(at.expected, tells, denies)]
    after_operand = "PLUS" in at.expected and not nouns
    hidden = _AFTER_OPERAND if after_operand else set()
    marks = [f"`{text}`" for name, text in _MARKS.items() if name in at.expected - hidden]
    if at.expected & {"COMMA", "RPAR", "RSQB"}:
        # A name that is complete may also go on; few need to be told.
        marks = [mark for mark in marks if mark not in ("`<`", "`::`", "`=`")]
    if nouns:
        # Marks that can start the expected thing itself say nothing.
        closers = {"`)`", "`]`", "`}`", "`>`"}
        marks = [mark for mark in marks if mark in closers]
    choices = (nouns + marks)[:4] or ["the end of the file"]
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def _tells(expected: frozenset[str], tells: set[str], denies: set[str]) -> bool:
    return tells <= expected and not denies & expected


def _quoted(token: Token) -> str:
    if token.type == "$END":
        return "the end of the file"
    text = str(token)
    if text == "`":
        return "a backtick"
    if token.type == "UNKNOWN" and not text.isprintable():
        return f"the character U+{ord(text):04X}"
    if len(text) > _LONGEST_QUOTE or not text.isprintable():
        return "a string" if token.type == "STRING" else f"`{text[:_LONGEST_QUOTE]}…`"
    return f"`{text}`"


def _labels(at: Situation) -> list[Label]:
    labels = [Label(at.span)]
    bracket = at.open_bracket
    if bracket is None or str(at.token) not in (")", "]", "}", ";", "{", ""):
        return labels
    # A stray `)` says nothing of the braces around it.
    is_at_fault = str(bracket) != "{" or at.token.type == "$END"
    if is_at_fault and str(at.token) != _CLOSED_BY[str(bracket)]:
        labels.append(Label(span_of(at.source, bracket), f"this `{bracket}` is not closed"))
    return labels


def _help(at: Situation) -> str | None:
    text = str(at.token)
    # `Tile<f32, 64>`: up to the comma it might be a comparison.
    is_after_less = len(at.previous) > 1 and str(at.previous[-2]) == "<"
    if (text == ">" or (text == "," and is_after_less)) and "PLUS" in at.expected:
        return "generic arguments in an expression start with `::<`; comparisons do not chain"
    if text in _COMPARISONS and "PLUS" in at.expected:
        return "comparisons do not chain: write `a < b && b < c`"
    if text in ("+", "-", "*", "/", "%", "<<", ">>", "(") and "MORETHAN" in at.expected:
        return "an expression in generic arguments stands in braces: `load::<{BM / 2}>`"
    if text == '"':
        return "this string has no end"
    if at.expected == {"COLON"}:
        return "its type stands behind a name: `x: f32`"
    if "LBRACE" in at.expected and "PLUS" in at.expected and at.token.type != "$END":
        return "what a branch or a loop does stands in braces: `{ … }`"
    if text == "let" and "FN" in at.expected:
        return "outside of functions a value is a constant: `const NAME: f32 = 1.0;`"
    return None
