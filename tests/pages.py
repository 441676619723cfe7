"""Test pages: under each heading a `tile` block and an `expect` block, with what is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CASE = re.compile(
    r"^## (?P<title>[^\n]+)\n(?P<prose>.*?)```tile\n(?P<program>.*?)```\n\n```expect\n"
    r"(?P<expected>.*?)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class PageCase:
    """One program of a page and what the page says of it."""

    page: Path
    title: str
    program: str
    expected: str

    def __str__(self) -> str:
        return f"{self.page.stem}: {self.title}"


def cases(folder: Path) -> Iterator[PageCase]:
    """Every case of every page of a folder. Each heading must have its two blocks."""
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = [
            PageCase(page, m["title"], m["program"], m["expected"]) for m in _CASE.finditer(text)
        ]
        assert len(found) == len(re.findall(r"^## ", text, re.MULTILINE)), f"{page}: malformed"
        yield from found


def expect(case: PageCase, printed: str, *, bless: bool) -> None:
    """What is printed is what the page says; `bless` rewrites the page."""
    if bless and printed != case.expected:
        text = case.page.read_text(encoding="utf-8")
        start = text.index(f"```tile\n{case.program}```", text.index(f"## {case.title}\n"))
        head, block = text[:start], text[start:]
        old = f"```expect\n{case.expected}```"
        new = f"```expect\n{printed}```"
        case.page.write_text(head + block.replace(old, new, 1), encoding="utf-8")
        return
    assert printed == case.expected, "run `make bless` and read the difference"
