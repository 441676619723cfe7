"""Blocks that work together: which programs they do beside each other, who shares what.

A cluster has *sides*: so many blocks along an axis of the grid each. The rank of a block is the
row-major number of its place. Tiles that depend on no axis of some sides are the same in blocks
that differ in their place along these only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod


@dataclass(frozen=True)
class Side:
    """So many blocks of a cluster do programs that follow each other along an axis of the grid."""

    blocks: int
    axis: int


@dataclass(frozen=True)
class Cluster:
    """Shapes: one side or more, each of a power of two of blocks, in the order of their axes."""

    sides: tuple[Side, ...]

    @staticmethod
    def along(axis: int, blocks: int) -> Cluster:
        """Of one side."""
        return Cluster((Side(blocks, axis),))

    @property
    def blocks(self) -> int:
        return prod(side.blocks for side in self.sides)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(side.axis for side in self.sides)

    @property
    def steps(self) -> tuple[int, ...]:
        """What the rank of the next block along each side has more."""
        counts = [side.blocks for side in self.sides]
        return tuple(prod(counts[number + 1 :]) for number in range(len(counts)))

    def __str__(self) -> str:
        return "x".join(str(side.blocks) for side in self.sides)


@dataclass(frozen=True)
class Sharers:
    """The blocks that share a tile with each block: all along some sides of their cluster.

    Shapes:   `along` has the numbers of those sides, ascending
    """

    cluster: Cluster
    along: tuple[int, ...]

    @staticmethod
    def of_bits(cluster: Cluster, bits: int) -> Sharers:
        return Sharers(cluster, tuple(n for n in range(len(cluster.sides)) if bits >> n & 1))

    @property
    def bits(self) -> int:
        """A bit for each side."""
        return sum(1 << number for number in self.along)

    @property
    def blocks(self) -> int:
        """How many they are, for each block, itself among them."""
        return prod(self.cluster.sides[number].blocks for number in self.along)

    @property
    def axes(self) -> tuple[int, ...]:
        """Of the grid: the tile may depend on none of them."""
        return tuple(self.cluster.axes[number] for number in self.along)

    @property
    def others(self) -> tuple[int, ...]:
        """The sides along which the tile is another one."""
        return tuple(n for n in range(len(self.cluster.sides)) if n not in self.along)

    @property
    def first_ranks(self) -> int:
        """The ranks, a bit each, of the blocks that share the tile of the first block."""
        return sum(1 << rank for rank in self._ranks())

    def _ranks(self) -> Iterator[int]:
        counts = [range(self.cluster.sides[number].blocks) for number in self.along]
        steps = [self.cluster.steps[number] for number in self.along]
        for place in product(*counts):
            yield sum(one * step for one, step in zip(place, steps, strict=True))
