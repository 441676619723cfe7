"""Words of Rust: identifiers, literals, comments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilec.emit.names import distinct, identifier

_KEYWORDS = frozenset((
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "Self", "self", "static", "struct", "super", "trait", "true", "try", "type",
    "typeof", "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
))  # fmt: skip
# Types of every file that are called as functions, which no function or parameter may shadow.
_TUPLES = frozenset({"BF16", "F16", "F8E4M3", "F8E5M2"})
# What functions have beside the parameters, and what a pattern would be taken for.
_OWN = frozenset({
    "_", "Err", "None", "Ok", "Some", "data", "graph", "plan", "scope", "stream", "streams",
    "tilec", "workspace", *_TUPLES,
})  # fmt: skip
# Functions of every file, and what its own functions are written with.
_TAKEN = frozenset({"Err", "None", "Ok", "Some", "load", "set_driver", *_TUPLES})
_WIDTH = 112
_INDENT = "    "
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\0": "\\0"}


def parameter_names(names: Sequence[str]) -> list[str]:
    """Parameters' names that are neither keywords nor the functions' own names."""
    return distinct(names, identifier, (_KEYWORDS | _OWN).__contains__)


def function_names(names: Sequence[str], words: Sequence[Sequence[str]]) -> list[str]:
    """The names of functions, each followed by these words."""
    return distinct(names, identifier, (_KEYWORDS | _TAKEN).__contains__, words)


def string(text: str) -> str:
    """A string literal."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if 32 <= ord(character) < 127 else f"\\u{{{ord(character):x}}}"


def in_comment(text: str) -> str:
    """Text that stays in the line of a comment."""
    return " ".join(text.split("\n"))


def boolean(value: bool) -> str:
    return "true" if value else "false"


def listed(items: Iterable[object]) -> str:
    """A reference to an array, over several lines if it is long."""
    return bracketed("&[", items, "]")


def structure(kind: str, /, **fields: object) -> str:
    """A value of a struct by the names of its fields, over several lines if it is long."""
    return bracketed(f"{kind} {{ ", (f"{key}: {value}" for key, value in fields.items()), " }")


def bracketed(opening: str, items: Iterable[object], closing: str) -> str:
    """A list between brackets; one item a line, indented, where it does not fit in one."""
    texts = [str(item) for item in items]
    line = opening + ", ".join(texts) + closing
    if len(line) <= _WIDTH - 12 and "\n" not in line:
        return line
    inner = "".join(f"{_indented(text)},\n" for text in texts)
    return f"{opening.rstrip()}\n{inner}{closing.lstrip()}"


def _indented(text: str) -> str:
    return "\n".join(_INDENT + line for line in text.split("\n"))
