"""Which temporaries lie at one place: those that are never in use at one time.

One may take the place of another if all uses of the one are done before any of the other starts, by
the order of the plan, so that sharing makes no launch wait. In the order of first use, each takes
the first place that it may take, of its own size if there is one: a place is as large as the
largest that lies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Lifetime:
    """When a temporary is in use: the launches, by number. Equal `size`s are equal in bytes."""

    uses: tuple[int, ...]
    size: object


@dataclass
class _Place:
    sizes: set[object] = field(default_factory=set)
    users: int = 0  # the launches that use what lies there, as a set


def slots_of(lifetimes: Sequence[Lifetime], before: Sequence[int]) -> list[int]:
    """The place of each; `before` are the launches done when each launch starts, as sets."""
    places: list[_Place] = []
    found = [0] * len(lifetimes)
    for number in sorted(range(len(lifetimes)), key=lambda n: lifetimes[n].uses[0]):
        lifetime = lifetimes[number]
        # What lies at a place is in use one after another, so it may come after all of it only.
        free = [n for n, place in enumerate(places) if _is_done(place, lifetime, before)]
        equal = [n for n in free if lifetime.size in places[n].sizes]
        chosen = next(iter(equal or free), len(places))
        if chosen == len(places):
            places.append(_Place())
        places[chosen].sizes.add(lifetime.size)
        places[chosen].users |= sum(1 << use for use in set(lifetime.uses))
        found[number] = chosen
    return found


def _is_done(place: _Place, lifetime: Lifetime, before: Sequence[int]) -> bool:
    return all(place.users & ~before[use] == 0 for use in lifetime.uses)
