"""Instances of the library that are built for two types and differ in nothing else."""

from __future__ import annotations

_HALF, _BRAIN = "T = f16,", "T = bf16,"


def without_twins(text: str) -> str:
    """A file of the library, without products of f16 whose tiles bf16 has as well.

    Their code has other names of instructions and nothing else; long tests take one of the two.
    """
    lines = text.splitlines(keepends=True)
    return "".join(one for one in lines if not _is_twin(one, lines))


def _is_twin(line: str, lines: list[str]) -> bool:
    is_product = line.startswith("#[instance(") and "BM = " in line
    return is_product and _HALF in line and line.replace(_HALF, _BRAIN) in lines
