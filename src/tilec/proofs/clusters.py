"""Accesses that differ by constants alone, as one access of a number of elements between them.

`x[4 p]`, `x[4 p + 1]`, …, `x[4 p + 3]` are `x[4 p + k]` for a k from 0 to 3. What no two programs
meet in that, they meet in none of them. A cluster may touch more than its members do: where it may
race, its halves are asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import gcd

from tilec.integers.polynomial import Polynomial, variable
from tilec.proofs.access import Access
from tilec.proofs.knowledge import Knowledge


@dataclass(frozen=True, eq=False)
class Cluster:
    """Accesses of one kind at one place of the kernel, in the order of their distance."""

    members: tuple[Access, ...]

    @property
    def is_single(self) -> bool:
        return len(self.members) == 1

    @property
    def writes(self) -> bool:
        return self.members[0].writes

    @cached_property
    def offsets(self) -> tuple[tuple[int, ...], ...]:
        """By axis, how far each member is from the first, which is the nearest."""
        return tuple(
            tuple((start - first).constant for start in starts)
            for first, starts in zip(_starts(self.members[0]), self._by_axis, strict=True)
        )

    @property
    def _by_axis(self) -> Iterable[tuple[Polynomial, ...]]:
        return zip(*map(_starts, self.members), strict=True)

    def access(self, knowledge: Knowledge) -> Access:
        """One access that touches what any member does, and maybe what is between."""
        if self.is_single:
            return self.members[0]
        first = self.members[0]
        moved = [
            _moved(*pair, knowledge) for pair in zip(_starts(first), self.offsets, strict=True)
        ]
        return replace(first, starts=tuple(moved))

    def halves(self) -> tuple[Cluster, Cluster]:
        middle = len(self.members) // 2
        return Cluster(self.members[:middle]), Cluster(self.members[middle:])


def clusters(accesses: Sequence[Access]) -> list[Cluster]:
    """The clusters of accesses to one tensor: each access is in one."""
    groups: dict[object, list[Access]] = {}
    for access in accesses:
        groups.setdefault(_kind(access), []).append(access)
    return [Cluster(tuple(sorted(group, key=_constants))) for group in groups.values()]


def split(one: Cluster, other: Cluster) -> list[tuple[Cluster, Cluster]]:
    """Pairs of smaller clusters, that together are the pair."""
    if one is other:
        return list(combinations_with_replacement(one.halves(), 2))
    if len(one.members) >= len(other.members):
        return list(product(one.halves(), (other,)))
    return list(product((one,), other.halves()))


def _kind(access: Access) -> object:
    """What accesses of one cluster have in common."""
    if access.starts is None or not access.starts:
        return access
    shape = tuple(start - start.constant for start in access.starts)
    return access.view, access.path, access.writes, access.sizes, shape


def _constants(access: Access) -> tuple[int, ...]:
    return tuple(start.constant for start in access.starts or ())


def _starts(access: Access) -> tuple[Polynomial, ...]:
    return access.starts or ()


def _moved(start: Polynomial, offsets: tuple[int, ...], knowledge: Knowledge) -> Polynomial:
    """A start with any of the offsets: those from the least to the greatest by their divisor."""
    step = gcd(*offsets)
    least, greatest = min(offsets), max(offsets)
    if step == 0:
        return start
    count = knowledge.unknown("one of many", (0, (greatest - least) // step), uniform=False)
    return start + least + variable(count).scaled(step)
