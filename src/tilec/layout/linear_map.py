"""Linear maps over F2, the field of two elements, on bit vectors written as integers.

A vector is an integer: bit i is coordinate i, addition is XOR. A map is the tuple of its columns:
column i is the image of the vector `1 << i`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class LinearMap:
    """The map x -> XOR of `columns[i]` over the set bits i of x, into vectors of `rows` bits."""

    columns: tuple[int, ...]
    rows: int

    def __post_init__(self) -> None:
        assert all(0 <= column < 1 << self.rows for column in self.columns), "column out of range"

    def __call__(self, vector: int) -> int:
        """The image of one vector."""
        assert 0 <= vector < 1 << len(self.columns), "vector out of range"
        return combine(self.columns, vector)

    def images(self) -> npt.NDArray[np.int64]:
        """The images of 0, 1, … in order: an array of `2 ** len(columns)` numbers."""
        result = np.zeros(1, dtype=np.int64)
        for column in self.columns:
            result = np.concatenate([result, result ^ column])
        return result

    def compose(self, inner: LinearMap) -> LinearMap:
        """The map x -> self(inner(x))."""
        assert inner.rows == len(self.columns), "expected equal dimensions in the middle"
        return LinearMap(tuple(map(self, inner.columns)), self.rows)

    @cached_property
    def _reduced(self) -> Reduced:
        return Reduced(self.columns)

    @property
    def rank(self) -> int:
        return len(self._reduced.pivots)

    @property
    def is_surjective(self) -> bool:
        return self.rank == self.rows

    @property
    def pivots(self) -> tuple[int, ...]:
        """The indices of the columns that are not combinations of earlier ones."""
        return self._reduced.pivots

    @property
    def kernel(self) -> tuple[int, ...]:
        """A basis of the vectors that map to 0: one for each column that is no pivot."""
        return self._reduced.kernel

    def solve(self, image: int) -> int | None:
        """The vector over pivot columns alone that maps to `image`; None if nothing does."""
        return self._reduced.solve(image)

    def right_inverse(self) -> LinearMap | None:
        """The map g with self(g(y)) = y that uses pivot columns alone; None if not surjective."""
        columns = [self.solve(1 << row) for row in range(self.rows)]
        if None in columns:
            return None
        return LinearMap(tuple(c for c in columns if c is not None), len(self.columns))

    def divide_left(self, factor: LinearMap) -> LinearMap | None:
        """The map q such that self is `factor` on the low bits and q on the high bits.

        That is self(x + (y << n)) = factor(x) + (q(y) << m), where factor takes n bits to m.
        None if self has no such form.
        """
        taken, given = len(factor.columns), factor.rows
        low, high = self.columns[:taken], self.columns[taken:]
        if low != factor.columns or given > self.rows:
            return None
        if any(column & ((1 << given) - 1) for column in high):
            return None
        return LinearMap(tuple(column >> given for column in high), self.rows - given)


class Reduced:
    """A list of vectors in reduced form: answers which combination of them gives a vector.

    Vectors enter in order; one that is a combination of those before it is not a pivot.
    """

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        # leading bit -> (vector with that leading bit, the combination of inputs that gives it)
        self._rows: dict[int, tuple[int, int]] = {}
        self._pivots: list[int] = []
        self._kernel: list[int] = []
        self._count = 0
        for vector in vectors:
            self.add(vector)

    def add(self, vector: int) -> bool:
        """Take one more vector; whether it was independent of those before it."""
        index = self._count
        self._count += 1
        rest, combination = self._reduce(vector)
        if rest == 0:
            self._kernel.append(combination ^ (1 << index))
            return False
        self._rows[rest.bit_length()] = (rest, combination ^ (1 << index))
        self._pivots.append(index)
        return True

    def _reduce(self, vector: int) -> tuple[int, int]:
        combination = 0
        for leading in sorted(self._rows, reverse=True):
            if vector >> (leading - 1) & 1:
                row, used = self._rows[leading]
                vector ^= row
                combination ^= used
        return vector, combination

    @property
    def pivots(self) -> tuple[int, ...]:
        return tuple(self._pivots)

    @property
    def kernel(self) -> tuple[int, ...]:
        return tuple(self._kernel)

    def solve(self, vector: int) -> int | None:
        """The combination of pivots (bit i: the i-th vector) that gives `vector`, or None."""
        rest, combination = self._reduce(vector)
        return combination if rest == 0 else None

    def quotient(self, bits: int) -> LinearMap:
        """The map from vectors of `bits` bits onto what is left modulo the span of all taken."""
        kept = [bit for bit in range(bits) if bit + 1 not in self._rows]
        rests = [self._reduce(1 << bit)[0] for bit in range(bits)]
        columns = [sum((rest >> bit & 1) << i for i, bit in enumerate(kept)) for rest in rests]
        return LinearMap(tuple(columns), len(kept))

    def __contains__(self, vector: int) -> bool:
        return self._reduce(vector)[0] == 0


def identity(bits: int) -> LinearMap:
    """The map that changes nothing, on vectors of `bits` bits."""
    return LinearMap(tuple(1 << bit for bit in range(bits)), bits)


def combine(vectors: Sequence[int], selection: int) -> int:
    """The XOR of those vectors whose bit is set in `selection`."""
    result = 0
    for bit, vector in enumerate(vectors):
        if selection >> bit & 1:
            result ^= vector
    return result


def intersection(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """A basis of the space that lies in the spans of both.

    Each is independent of those before it; those of `one` come in the order of `one` where they
    are in the other span as they stand.
    """
    both = LinearMap((*one, *other), max(map(int.bit_length, (*one, *other)), default=0))
    own = (1 << len(one)) - 1
    found = Reduced()
    whole = Reduced(other)
    candidates = [vector for vector in one if vector in whole]
    candidates += [combine(one, relation & own) for relation in both.kernel]
    return tuple(vector for vector in candidates if found.add(vector))
