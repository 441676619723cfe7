"""The page of each error code: what `tilec explain` prints.

A page is `EXXXX.md` in this folder, in a fixed shape: a title line, the rule, a wrong program, why
it is refused, a right program. The wrong program gives exactly the page's code, and the right one
compiles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_SHAPE = re.compile(
    r"# (?P<code>[EW]\d{4}): (?P<title>[^\n]+)\n\n"
    r"(?P<rule>(?:[^`\n#]|`[^`\n]+`)[^\n]*(?:\n[^`\n][^\n]*)*)\n\n"
    r"```tile\n(?P<wrong>.*?\n)```\n\n"
    r"(?P<why>.+?)\n\n"
    r"```tile\n(?P<right>.*?\n)```\n",
    re.DOTALL,
)


@dataclass(frozen=True)
class Page:
    """One code's page; `text` is the whole of it, in Markdown."""

    code: str
    title: str
    rule: str
    wrong: str
    why: str
    right: str
    text: str


@cache
def codes() -> tuple[str, ...]:
    """The codes that have a page, in order."""
    names = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


def page(code: str) -> Page | None:
    """The page of a code, None if there is none."""
    if code not in codes():
        return None
    text = (files(__name__) / f"{code}.md").read_text(encoding="utf-8")
    shape = _SHAPE.fullmatch(text)
    assert shape is not None, f"the page {code}.md has not the shape of a page"
    assert shape["code"] == code, f"the page {code}.md is headed {shape['code']}"
    return Page(text=text, **shape.groupdict())
