"""Whether warpgroups split a program among them, or do programs of their own, by turns.

By turns ("ping-pong"), what follows the products of one program (conversions, element-wise work,
stores) hides under the products of the next one. A warpgroup then has all sums of its program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tilec.layout.wgmma import fits
from tilec.schedule.products import Product, Staged
from tilec.schedule.reason import Reason

_TEAMS = 2
_THREADS_OF_TEAM = 128
# Of the 32-bit registers of a thread, those that sums and computed factors may take; beside them
# are only addresses.
_HELD_PER_THREAD = 192
# With fewer, a program reads more for each sum than L2 gives to all multiprocessors, unless its
# loop is short (128 x 128: 0.83 to 0.9 of cuBLAS, with 8 turns 1.08; 128 x 192: up to 1.05).
_LEAST_SUMS = 160


def teams_for(
    products: Sequence[Product], hints: Mapping[str, Any]
) -> tuple[int, tuple[Reason, ...]]:
    """How many teams do programs by turns; one, to have all math warpgroups split each program."""
    asked = hints.get("ping_pong")
    if asked is False:
        return 1, (Reason("no turns", "asked for by `ping_pong = false`"),)
    obstacle = _obstacle(products, hints)
    if obstacle is not None:
        return 1, (Reason("no turns", obstacle),) if asked else ()
    what = f"{_TEAMS} math warpgroups by turns"
    if asked:
        return _TEAMS, (Reason(what, "asked for by `ping_pong`"),)
    sums = _sums(products)
    if sums < _LEAST_SUMS or "warps" in hints:
        return 1, ()
    why = f"a warpgroup holds {sums} sums a thread; what follows products goes on beside others"
    return _TEAMS, (Reason(what, why),)


def _obstacle(products: Sequence[Product], hints: Mapping[str, Any]) -> str | None:
    """What keeps a warpgroup from doing programs alone."""
    if not hints.get("persistent", True):
        return "a block does one program"
    if any(isinstance(product.b, Staged) for product in products):
        return "all math warps write a factor together"
    for product in products:
        if not fits(product.shape, 1):
            rows, columns = product.shape
            return f"{rows}x{columns} is no size for a warpgroup"
    sums = _sums(products)
    if sums > _HELD_PER_THREAD:
        return f"a warpgroup would have {sums} sums a thread, more than {_HELD_PER_THREAD}"
    held = sum(product.held_words for product in products) // _THREADS_OF_TEAM
    if held > _HELD_PER_THREAD:
        return f"sums and factors would take {held} registers, more than {_HELD_PER_THREAD}"
    return None


def _sums(products: Sequence[Product]) -> int:
    """Of all products together. Units: 32-bit registers of a thread."""
    return sum(prod(product.shape) for product in products) // _THREADS_OF_TEAM
