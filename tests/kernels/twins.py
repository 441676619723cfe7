"""Fewer instances of the library than it has, for long tests."""

from __future__ import annotations

_HALF, _BRAIN = "T = f16,", "T = bf16,"


def without_twins(text: str) -> str:
    """A file of the library, without products of f16 whose tiles bf16 has as well.

    Their code has other names of instructions and nothing else; long tests take one of the two.
    """
    lines = text.splitlines(keepends=True)
    return "".join(one for one in lines if not _is_twin(one, lines))


def _is_twin(line: str, lines: list[str]) -> bool:
    return _is_tile(line) and _HALF in line and line.replace(_HALF, _BRAIN) in lines


def some_tiles(text: str, most: int) -> str:
    """A file of the library without twins, and with so many tiles of products as a choice of `most`
    leaves: evenly spread over those that there are, the last one (the largest) among them.

    Other tiles are more of the same code; the GPU tests run all of them.
    """
    lines = without_twins(text).splitlines(keepends=True)
    tiles = [i for i, line in enumerate(lines) if _is_tile(line)]
    if len(tiles) <= most:
        return "".join(lines)
    kept = {tiles[len(tiles) - 1 - n * len(tiles) // most] for n in range(most)}
    return "".join(line for i, line in enumerate(lines) if i in kept or i not in tiles)


def _is_tile(line: str) -> bool:
    return line.startswith("#[instance(") and "BM = " in line
