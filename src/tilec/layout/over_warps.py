"""Rows and columns of products over the warps of a block: bits of the axes, and who gets which."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.layout.layout import Basis
from tilec.layout.linear_map import Reduced


class Places:
    """Basis vectors of a tile of (…, rows, columns)."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.block = [extent & -extent for extent in shape]
        self.batch = len(shape) - 2

    def at(self, row: int, column: int) -> Basis:
        return (*[0] * self.batch, row, column)

    def beyond(self, rows: int, columns: int) -> list[Basis]:
        """What is left of the block beyond its first rows and columns: columns, rows, batch."""
        left = [self.at(0, bit) for bit in doubling(columns, self.block[-1])]
        left += [self.at(bit, 0) for bit in doubling(rows, self.block[-2])]
        for axis in reversed(range(self.batch)):
            unit = tuple(int(a == axis) for a in range(self.batch + 2))
            left += [tuple(bit * u for u in unit) for bit in doubling(1, self.block[axis])]
        return left


def warp_bits(
    shape: Sequence[int], warps: int, rows: int, columns: int, rows_first: bool
) -> list[Basis]:
    """Which vectors the bits of the warp add: the high ones of each axis.

    `rows` and `columns` are what one warp holds at least.
    """
    left = Places(shape).beyond(rows, columns)
    across = [v for v in left if v[-1]]
    down = [v for v in left if v[-2]]
    batch = [v for v in left if any(v[:-2])]
    bits = warps.bit_length() - 1
    taken = batch[len(batch) - min(bits, len(batch)) :]
    bits -= len(taken)
    choices = [(d, min(bits - d, len(across))) for d in range(min(bits, len(down)) + 1)]

    def cost(choice: tuple[int, int]) -> tuple[int, int, int]:
        d, a = choice
        read = (shape[-2] >> d) + (shape[-1] >> a)
        return -(d + a), (0 if rows_first else read), -d

    d, a = min(choices, key=cost)
    return [*across[len(across) - a :], *down[len(down) - d :], *taken]


def doubling(start: int, end: int) -> list[int]:
    """start, 2 start, … below end."""
    found = []
    while start < end:
        found.append(start)
        start *= 2
    return found


def independent(*vectors: Sequence[Basis]) -> tuple[Basis, ...]:
    """Those that are no combination of those before them."""
    span = Reduced()
    return tuple(v for group in vectors for v in group if span.add(_flat(v)))


def _flat(vector: Basis) -> int:
    return sum(coordinate << 32 * axis for axis, coordinate in enumerate(vector))
