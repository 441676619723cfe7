"""The fenced blocks of the documentation, and what their first lines say of them.

```` ```tile ```` is a whole program; with words after it: `fragment` (statements that stand in the
page's `frame`), a code (which checking it must give, and no other).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# ops.md and errors.md are generated, each from what has tests of its own.
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(p for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in ("ops.md", "errors.md")),
)
PLACE = "    // the example\n"

_BLOCK = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block. `file` is the name that the reader gives it, if the page says one."""

    page: Path
    line: int
    kind: str
    words: tuple[str, ...]
    file: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def code(self) -> str | None:
        """The code that this program must give."""
        return next((word for word in self.words if re.fullmatch(r"[EW]\d{4}", word)), None)


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, in order: `kind,word,… file`."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        words, _, file = found["info"].partition(" ")
        kind, *rest = words.split(",")
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, kind, tuple(rest), file or None, found["text"])


def programs(page: Path) -> Iterator[tuple[Block, str]]:
    """The programs of a page, with fragments put in the frame before them."""
    frame = ""
    for block in blocks(page):
        if block.kind not in ("tile", "rust"):
            continue
        if "frame" in block.words:
            frame = block.text
        if "fragment" not in block.words:
            yield block, block.text
            continue
        assert PLACE in frame, f"{block}: no frame before it"
        yield block, frame.replace(PLACE, block.text)
