"""Number and string literals: from their text to their value, or to what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEGER_SUFFIXES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "usize")
FLOAT_SUFFIXES = ("f32", "f64")
# Rust has these types, the language has not.
_SUFFIXES_OF_C = {
    "f": "f32", "F": "f32", "h": "f32", "L": "i64", "l": "i64", "LL": "i64", "u": "u32", "U": "u32",
    "UL": "u64", "ULL": "u64", "ull": "u64",
}  # fmt: skip
FOREIGN_SUFFIXES = ("i128", "u128", "isize")

_INTEGER = re.compile(
    r"(?:0x(?P<hex>[0-9a-fA-F_]*)|0o(?P<octal>[0-9_]*)|0b(?P<binary>[0-9_]*)|(?P<decimal>[0-9_]+))(?P<suffix>\w*)"
)
_FLOAT = re.compile(r"(?P<number>[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]+)?)(?P<suffix>\w*)")
_BASES = {"hex": 16, "octal": 8, "binary": 2, "decimal": 10}
# As many digits as any 128-bit number has in base 2; longer ones are refused before they are read.
_MOST_DIGITS = 128

_ESCAPE = re.compile(r"\\(?:\n\s*|x([0-7][0-9a-fA-F])|u\{([0-9a-fA-F_]{1,8})\}|([\s\S]))")
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "0": "\0", "'": "'", '"': '"'}


@dataclass(frozen=True)
class LiteralFault:
    """What is wrong with a literal, and with which part of its text (offsets within it)."""

    message: str
    start: int
    end: int
    help: str | None = None
    foreign: bool = False  # valid Rust, not in the language


def integer_value(text: str) -> tuple[int, str | None] | LiteralFault:
    """The value and the suffix of `0xff_u8`; `1f32` is an integer literal with a float's suffix."""
    match = _INTEGER.fullmatch(text)
    assert match is not None, f"the lexer took {text!r} for an integer"
    suffix = match["suffix"] or None
    name = next(base for base in _BASES if match[base] is not None)
    base = _BASES[name]
    if not match[name].strip("_"):
        return LiteralFault(f"expected digits of base {base} after `{text[:2]}`", 0, len(text))
    if suffix is not None and suffix not in INTEGER_SUFFIXES + FLOAT_SUFFIXES:
        return _suffix_fault(match.start("suffix"), suffix)
    if suffix in FLOAT_SUFFIXES and base != 10:
        return LiteralFault(
            f"a number in base {base} cannot be a float", match.start("suffix"), len(text)
        )
    digits = match[name].replace("_", "")
    wrong = next((i for i, d in enumerate(match[name]) if d != "_" and int(d, 16) >= base), None)
    if wrong is not None:
        place = match.start(name) + wrong
        return LiteralFault(
            f"expected a digit of base {base}, got `{text[place]}`", place, place + 1
        )
    digits = digits.lstrip("0") or "0"
    value = int(digits, base) if len(digits) <= _MOST_DIGITS else 1 << 128
    if value >= 1 << 128:
        return LiteralFault("the integer is too large for any type", 0, len(text))
    return value, suffix


def float_text(text: str) -> tuple[str, str | None] | LiteralFault:
    """The number of `1_0.5e3f32`, as Python's `float` reads it, and the suffix."""
    match = _FLOAT.fullmatch(text)
    assert match is not None, f"the lexer took {text!r} for a float"
    suffix = match["suffix"] or None
    if suffix is not None and suffix not in FLOAT_SUFFIXES:
        return _suffix_fault(match.start("suffix"), suffix)
    return match["number"].replace("_", ""), suffix


def string_value(text: str) -> str | LiteralFault:
    """The characters that a string literal, raw or not, stands for."""
    if text.startswith("r"):
        hashes = text.index('"') - 1
        return text[hashes + 2 : len(text) - hashes - 1]
    pieces = []
    position = 1
    for escape in _ESCAPE.finditer(text, 1, len(text) - 1):
        character = _escaped(escape)
        if character is None:
            return LiteralFault(f"unknown escape `{escape[0]}`", escape.start(), escape.end())
        pieces += [text[position : escape.start()], character]
        position = escape.end()
    pieces.append(text[position : len(text) - 1])
    return "".join(pieces)


def _escaped(escape: re.Match[str]) -> str | None:
    ascii_code, unicode_code, simple = escape.groups()
    if ascii_code is not None:
        return chr(int(ascii_code, 16))
    if unicode_code is not None:
        code = int(unicode_code.replace("_", "") or "0", 16)
        is_character = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
        return chr(code) if is_character else None
    return "" if simple is None else _SIMPLE_ESCAPES.get(simple)


def _suffix_fault(start: int, suffix: str) -> LiteralFault:
    end = start + len(suffix)
    if suffix in FOREIGN_SUFFIXES:
        return LiteralFault(f"the type `{suffix}` is not in the language", start, end, None, True)
    if suffix in _SUFFIXES_OF_C:
        help = f"write `{_SUFFIXES_OF_C[suffix]}`, or no suffix: the use gives the type"
        return LiteralFault(f"unknown suffix `{suffix}`", start, end, help)
    return LiteralFault(
        f"unknown suffix `{suffix}`",
        start,
        end,
        "the suffixes are `i8` to `i64`, `u8` to `u64`, `usize`, `f32` and `f64`; a literal "
        "without one takes its type from its use",
    )
