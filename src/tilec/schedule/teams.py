"""Whether warpgroups split a program among them, or do programs of their own, by turns.

By turns ("ping-pong"), what follows the products of one program (conversions, element-wise work,
stores) hides under the products of the next one. A warpgroup then has all sums of its program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilec.hints import Hints
from tilec.layout.wgmma import WARPGROUP_THREADS, fits
from tilec.ops.registry import rules
from tilec.schedule.products import Computed, Product, Staged
from tilec.schedule.reason import Reason
from tilec.target.description import Roles

_TEAMS = 2
# Where turns of loops do more than to multiply, a team has nobody to multiply meanwhile: so many
# sums a thread and more.
_SUMS_BESIDE_WORK = 160


def teams_for(
    products: Sequence[Product], hints: Hints, limits: Roles
) -> tuple[int, tuple[Reason, ...]]:
    """How many teams do programs by turns; one, to have all math warpgroups split each program."""
    asked = hints.ping_pong
    if asked is False:
        return 1, (Reason("no turns", "asked for by `ping_pong = false`"),)
    obstacle = _obstacle(products, hints, limits)
    if obstacle is not None:
        return 1, (Reason("no turns", obstacle),) if asked else ()
    what = f"{_TEAMS} math warpgroups by turns"
    if asked:
        return _TEAMS, (Reason(what, "asked for by `ping_pong`"),)
    sums = _sums(products)
    only_multiply = all(map(_only_adds, products))
    least = limits.sums_by_turns if only_multiply else _SUMS_BESIDE_WORK
    if sums < least or hints.warps is not None:
        return 1, ()
    why = f"a warpgroup holds {sums} sums a thread; what follows products goes on beside others"
    return _TEAMS, (Reason(what, why),)


def _obstacle(products: Sequence[Product], hints: Hints, limits: Roles) -> str | None:
    """What keeps a warpgroup from doing programs alone."""
    if not hints.persistent:
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


def _only_adds(product: Product) -> bool:
    """Whether a loop carries the sums, adds to them and does nothing else with them or factors."""
    op, before = product.op.operation, product.op.operands[2]
    if isinstance(product.a, Computed) or before.owner != op.block:
        return False
    uses = list(product.op.results[0].uses)
    return len(uses) == 1 and bool(rules()[uses[0].owner.name].terminator)


def _sums(products: Sequence[Product]) -> int:
    """Of all products together. Units: 32-bit registers of a thread."""
    return sum(prod(product.shape) for product in products) // WARPGROUP_THREADS
