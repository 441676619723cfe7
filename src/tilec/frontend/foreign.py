"""Tokens that start something of Rust that no rule of the grammar takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lark import Token

from tilec.source import Span

if TYPE_CHECKING:
    from tilec.frontend.syntax_errors import Situation

_QUALIFIED_PATH = re.compile(r"<\s*[\w:]+(?:\s*<[^<>]*>)?\s*(?:as\b|>\s*::)")
_FIELDS_FOLLOW = re.compile(r"\{\s*(?:\w+\s*[:,}]|\.\.|\})")


@dataclass(frozen=True)
class Foreign:
    """A construct, as a plural, and what to write instead."""

    what: str
    help: str | None = None
    place: Span | None = None  # where it is, if not at the unexpected token


_STRUCTS = Foreign("structs", "a tuple holds several scalars and tiles")
_TRAITS = Foreign("traits and `impl` blocks", "write a generic function")
_WORDS = {
    "Self": _TRAITS,
    "async": Foreign("`async` functions and blocks"),
    "await": Foreign("`async` functions and blocks"),
    "crate": Foreign("paths from `crate`", "a use takes names from a file: `use other::name;`"),
    "dyn": Foreign("trait objects"),
    "enum": Foreign("enums", "an integer and `match` tell cases apart"),
    "extern": Foreign("`extern` functions and crates", "a kernel is `#[kernel] pub fn name(…)`"),
    "impl": _TRAITS,
    "macro": Foreign("macro definitions", "write a function"),
    "mod": Foreign("modules", "each file is one: `use other::name;`"),
    "move": Foreign("`move` closures"),
    "self": Foreign("methods with `self`", "write a function, and pass what it works on"),
    "static": Foreign("statics", "write a `const`"),
    "struct": _STRUCTS,
    "super": Foreign("paths from `super`", "a use takes names from a file: `use other::name;`"),
    "trait": _TRAITS,
    "type": Foreign("type aliases", "write the type itself, or a generic: `T: Float`"),
    "where": Foreign("`where` clauses here"),
}
_ITEM_WORDS = {"fn": "functions", "pub": "items", "const": "constants", "use": "uses"}
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
_MACRO_RULES = Foreign("macro definitions", "write a function")


def foreign_construct(at: Situation) -> Foreign | None:
    """The construct of Rust, not of the language, that the unexpected token belongs to."""
    text = str(at.token)
    starts_expression = "IF" in at.expected and "INTEGER" in at.expected
    if at.token.type == "RESERVED":
        return _WORDS.get(text, Foreign(f"uses of Rust's reserved words, like `{text}`,"))
    if text in ("async", "crate", "self", "super"):
        return _WORDS[text]
    if at.token.type == "LIFETIME":
        return Foreign("lifetimes and labels")
    if at.token.type == "CHARACTER":
        return Foreign("characters as values")
    if text in _ITEM_WORDS and {"LET", "HASH"} <= at.expected:
        return Foreign(f"{_ITEM_WORDS[text]} inside a function", "write it outside")
    # In square brackets the bracket is likelier to lack its end.
    if text in _ASSIGNMENTS and "PLUS" in at.expected and at.open_bracket != "[":
        return Foreign("assignments as values", "`==` compares" if text == "=" else None)
    if at.closed_bracket is not None and "LBRACE" in at.expected:
        return _range_before(at, at.closed_bracket)
    if starts_expression:
        return _in_place_of_expression(at, text)
    return _after_name(at, text)


def _range_before(at: Situation, brace: Token) -> Foreign | None:
    """The `..` of `for i in 0.. { … }`, where the block is read as the range's end."""
    before = at.source.text[: brace.start_pos].rstrip()
    if not before.endswith(".."):
        return None
    place = Span(at.source.name, len(before) - 2, len(before))
    return Foreign("ranges without an end", "write the end, or use `while`", place)


def _in_place_of_expression(at: Situation, text: str) -> Foreign | None:
    if text in ("..", "..="):
        return Foreign("ranges without a start")
    before = str(at.previous[-1]) if at.previous else ""
    if before == "..":
        return Foreign("ranges without an end")
    if text == "let" and before == "&&":
        return Foreign("`let` inside conditions")
    if text == "::":
        return Foreign("paths that start with `::`")
    if text == "_":
        return Foreign("places left out with `_`", "leave the assignment out")
    if text == "<" and _QUALIFIED_PATH.match(at.source.text, at.span.start):
        return Foreign("paths that start with `<…>`")
    if text == "#":
        return Foreign("attributes on expressions")
    return None


def _after_name(at: Situation, text: str) -> Foreign | None:
    words = [str(token) for token in at.previous]
    if not words:
        return _MACRO_RULES if text == "macro_rules" else None
    if text == "macro_rules" and "FN" in at.expected:
        return _MACRO_RULES
    if text == "union" and "FN" in at.expected:
        return _STRUCTS
    if text == "{" and words[-1] == "!":
        return Foreign(f"macros with braces, like `{words[-2]}!`,")
    if at.previous[-1].type != "NAME":
        return None
    if text == "@":
        return Foreign("bindings with `@`")
    is_pattern = bool(at.expected & {"IN", "EQUAL", "FAT_ARROW"})
    is_pattern = is_pattern and not at.expected & {"PLUS", "MORETHAN", "RSQB"}
    if text in ("(", "{", "::") and is_pattern:
        return Foreign("patterns of structs and enums")
    follows = at.source.text[at.span.start :]
    if text == "{" and "PLUS" in at.expected and _FIELDS_FOLLOW.match(follows):
        return _STRUCTS
    return None
