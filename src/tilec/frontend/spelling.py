"""Names that are close to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_MOST_LIKELY = 64


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The help for a misspelt name, if a known one is close: one letter in three at most differs,
    or only the case."""
    limit = len(name) // 3
    likely = [one for one in set(known) if one != name and _may_be_close(name, one, limit)]
    # A name that is like so many is not the misspelling of one of them.
    if len(likely) > _MOST_LIKELY:
        return None
    ranked = sorted((_distance(name.lower(), one.lower(), limit), one) for one in likely)
    close = [one for distance, one in ranked if distance <= limit]
    return f"did you mean `{close[0]}`?" if close else None


def _may_be_close(left: str, right: str, limit: int) -> bool:
    """Whether names can be close, by their lengths and letters; this much costs little."""
    if abs(len(left) - len(right)) > limit:
        return False
    return (_letters(left) ^ _letters(right)).bit_count() <= 2 * limit


@lru_cache(maxsize=1 << 14)
def _letters(name: str) -> int:
    """The letters of a name as a set of bits."""
    found = 0
    for one in name.lower():
        found |= 1 << (ord(one) & 63)
    return found


def _distance(left: str, right: str, limit: int) -> int:
    """How many letters are put in, left out, replaced or swapped with the next; above `limit`, any
    number above it."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        earlier, before, row = before, row, [i]
        for j, other in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
