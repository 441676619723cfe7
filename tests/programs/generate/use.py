"""One use of operations in a generated kernel: how it is written, and what NumPy says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]
Array = Any


@dataclass(frozen=True)
class Operand:
    """A tile that a kernel loads, by the name that texts have for it.

    `kind` is that of its data (`table.data`); `shape` None is the kernel's own shape.
    """

    name: str
    element: str
    kind: str = "wide"
    shape: Shape | None = None


@dataclass(frozen=True)
class Use:
    """`text` is an expression over the names of operands, in braces.

    `reference` takes them as arrays; None where the CPU execution alone says what is right. Units:
    `ulps` as in `table.Entry`
    """

    text: str
    operands: tuple[Operand, ...]
    element: str  # of the result
    shape: Shape
    reference: Callable[..., Array] | None
    ulps: int = 0


SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = (*SIGNED, *UNSIGNED, "usize")
FLOATS = ("f16", "bf16", "f32", "f64")
F8 = ("f8e4m3", "f8e5m2")
NUMBERS = (*INTEGERS, *FLOATS)
IN_MEMORY = ("bool", *NUMBERS, *F8)
BYTES = {"bool": 1, "usize": 8, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1} | {
    f"{letter}{bits}": bits // 8 for letter in "iuf" for bits in (8, 16, 32, 64)
}


def listed(numbers: Shape) -> str:
    """As a turbofish and a list of extents have them; `{…}` where one is below zero."""
    return ", ".join(str(n) if n >= 0 else f"{{{n}}}" for n in numbers)
