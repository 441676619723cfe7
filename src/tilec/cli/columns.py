"""Text in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def columns(rows: Sequence[tuple[str, ...]], indent: str = "  ") -> Iterator[str]:
    """A line for each row; cells that stand below each other begin at one column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"{indent}{'  '.join(cells)}".rstrip()
