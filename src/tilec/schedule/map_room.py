"""Which operands and results are described by tensor maps, where not all maps can be passed.

Maps are parameters, which have the room that the target gives them. What gets none is copied
otherwise: the threads that multiply load the operands of that product themselves, and store that
result as any kernel does.

Algorithm: products in loops come first, of these the one that copies the most bytes, then results;
of equals the earlier. Each is taken if the maps that it needs beside those already taken fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.schedule.products import Copied, Product, Unfit
from tilec.schedule.results import Result, Stored

_NO_ROOM = "the kernel's parameters have no room for its tensor maps"


def products_with_maps(
    products: Sequence[Product], looped: Sequence[bool], room: int
) -> tuple[list[Product], list[Unfit], int]:
    """The products whose operands get maps, the others, and how many more maps there may be.

    `looped` says which products are in loops. Each load is taken to need a map of its own, though
    some share one.
    """
    taken: set[Copied] = set()
    chosen: set[int] = set()
    for number in sorted(
        range(len(products)), key=lambda n: (not looped[n], -_copied_bytes(products[n]), n)
    ):
        wanted = taken.union(products[number].copied)
        if len(wanted) <= room:
            taken = wanted
            chosen.add(number)
    kept = [one for number, one in enumerate(products) if number in chosen]
    others = [
        Unfit(one.op, _NO_ROOM) for number, one in enumerate(products) if number not in chosen
    ]
    return kept, others, room - len(taken)


def results_with_maps(results: Sequence[Result | Stored], room: int) -> list[Result | Stored]:
    """The results, of which the largest leave by maps, and no more than there is `room` for."""
    boxed = [number for number, one in enumerate(results) if isinstance(one, Result)]
    kept = sorted(boxed, key=lambda number: (-results[number].bytes, number))[:room]
    return [
        Stored(one.op, one.param, _NO_ROOM, one.bytes)
        if isinstance(one, Result) and number not in kept
        else one
        for number, one in enumerate(results)
    ]


def _copied_bytes(product: Product) -> int:
    return sum(one.tile.bytes for one in product.copied)
