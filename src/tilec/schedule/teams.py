"""Whether warpgroups split a program among them, or do programs of their own, by turns.

By turns ("ping-pong"), what follows the products of one program (conversions, element-wise work,
stores) hides under the products of the next one. A warpgroup then has all sums of its program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tilec.layout.wgmma import WARPGROUP_THREADS, fits
from tilec.schedule.products import Product, Staged
from tilec.schedule.reason import Reason
from tilec.target.description import Roles

_TEAMS = 2


def teams_for(
    products: Sequence[Product], hints: Mapping[str, Any], limits: Roles
) -> tuple[int, tuple[Reason, ...]]:
    """How many teams do programs by turns; one, to have all math warpgroups split each program."""
    asked = hints.get("ping_pong")
    if asked is False:
        return 1, (Reason("no turns", "asked for by `ping_pong = false`"),)
    obstacle = _obstacle(products, hints, limits)
    if obstacle is not None:
        return 1, (Reason("no turns", obstacle),) if asked else ()
    what = f"{_TEAMS} math warpgroups by turns"
    if asked:
        return _TEAMS, (Reason(what, "asked for by `ping_pong`"),)
    sums = _sums(products)
    # With fewer, a program reads more for each sum than L2 gives to all, unless its loop is short.
    if sums < limits.sums_by_turns or "warps" in hints:
        return 1, ()
    why = f"a warpgroup holds {sums} sums a thread; what follows products goes on beside others"
    return _TEAMS, (Reason(what, why),)


def _obstacle(products: Sequence[Product], hints: Mapping[str, Any], limits: Roles) -> str | None:
    """What keeps a warpgroup from doing programs alone."""
    if not hints.get("persistent", True):
        return "a block does one program"
    if any(isinstance(product.b, Staged) for product in products):
        return "all math warps write a factor together"
    for product in products:
        if not fits(product.shape, 1):
            rows, columns = product.shape
            return f"{rows}x{columns} is no size for a warpgroup"
    most = limits.held_registers
    sums = _sums(products)
    if sums > most:
        return f"a warpgroup would have {sums} sums a thread, more than {most}"
    held = sum(product.held_words for product in products) // WARPGROUP_THREADS
    if held > most:
        return f"sums and factors would take {held} registers, more than {most}"
    return None


def _sums(products: Sequence[Product]) -> int:
    """Of all products together. Units: 32-bit registers of a thread."""
    return sum(prod(product.shape) for product in products) // WARPGROUP_THREADS
