"""Text that came from a file, made visible: nothing of it acts on a terminal, or looks like what it
is not.

A file may hold anything in its names and texts: escape sequences that rewrite a screen, characters
that turn the order of others round, line breaks that begin what looks like another message. All of
them are printed as escapes, `\\x1b` and `\\u202e`. Whatever commands print of files, and what the
runtime raises, goes through here.
"""

from __future__ import annotations

import json
import re

_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    """The text on one line, with an escape for each character that a terminal does not just show.

    `keep` are characters that stay as they are all the same.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escape(c) for c in text)


def printable_lines(text: str) -> str:
    """As `printable`, of a text of several lines."""
    return printable(text, keep="\n\t")


def json_text(value: object, *, indent: int | None = None, in_ascii: bool = True) -> str:
    """A value as JSON, which any reader takes and a terminal just shows.

    Half a character, which is how Python keeps bytes that are no text, has no place in UTF-8: it is
    written as the text `\\udcff`.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    text = _HALF_CHARACTERS.sub(lambda half: rf"\\u{ord(half[0]):04x}", text)
    return "".join(c if _stays(c, in_ascii) else json.dumps(c)[1:-1] for c in text)


def _stays(character: str, in_ascii: bool) -> bool:
    if character == "\n":  # between values: in text it is an escape already
        return True
    return character.isprintable() and (character.isascii() or not in_ascii)


def _escape(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
