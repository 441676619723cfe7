"""A schedule: what is copied ahead, by whom, how far, and who computes. All of it is data.

`find_products` says what could be done so; `plan` decides, by what fits the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log2

from mlir import ir

from tilec.hints import Hints
from tilec.ir.walk import operations
from tilec.layout.neighbours import Cluster, Sharers
from tilec.layout.swizzled import Slot
from tilec.layout.wgmma import ROWS, WARPGROUP_THREADS, WARPGROUP_WARPS, fits
from tilec.ops.order import Longest
from tilec.ops.parameter_space import room_for_maps
from tilec.ops.pieces import PIECE_BYTES
from tilec.ops.registry import rules
from tilec.ops.send import BUFFERS, By
from tilec.schedule.ahead import Ahead, find_ahead
from tilec.schedule.cluster import sharing
from tilec.schedule.longest import longest_programs, why_longest
from tilec.schedule.map_room import products_with_maps, results_with_maps
from tilec.schedule.products import TURNED, Computed, Copied, Product, Unfit, find_products
from tilec.schedule.reason import Reason as Reason
from tilec.schedule.reason import at
from tilec.schedule.results import Result, Stored, find_results
from tilec.schedule.rings import Ring, fills_of, is_in_loop, rings_of
from tilec.schedule.split import Split, split_for
from tilec.schedule.staging import staged_bytes, why_staged
from tilec.schedule.teams import teams_for
from tilec.target.description import Roles, Target

_LEAST_DEPTH = 2
_BLOCKS_OF_SPLIT = 2


@dataclass(frozen=True)
class Channel:
    """Tiles that are copied together, in a ring of `depth` buffers.

    `fills` are the loads of each place that fills a buffer, in program order; all have the same
    types. The first place is in a loop if any is.
    """

    fills: tuple[tuple[Copied, ...], ...]
    depth: int
    shared: tuple[tuple[Copied, Sharers], ...] = ()  # by whom

    @property
    def loads(self) -> tuple[Copied, ...]:
        """The loads of the first place."""
        return self.fills[0]

    @property
    def slot_bytes(self) -> int:
        return Slot(tuple(load.tile for load in self.loads)).bytes


@dataclass(frozen=True)
class Schedule:
    """What a kernel is made into. `rows_together` rows of programs are walked at a time.

    Where programs take unequally long, `longest` says which do.

    With several `teams` of math warps, each does programs of its own, by turns.

    Units:    `math_groups` are warpgroups of 128 threads; registers are those of a thread, 0 for
              what the launch gives
    """

    channels: tuple[Channel, ...]
    products: tuple[Product, ...]
    math_groups: int
    rows_together: int
    is_persistent: bool
    loader_registers: int
    math_registers: int
    reasons: tuple[Reason, ...] = ()
    results: tuple[Result, ...] = ()
    results_by: By = "copies"
    cluster: Cluster | None = None
    teams: int = 1
    split: Split | None = None
    ahead: tuple[Ahead, ...] = ()
    staged_places: int = 0  # of each factor that threads write to shared memory
    longest: Longest | None = None

    @property
    def split_blocks(self) -> int:
        """That do a program together."""
        return 1 if self.split is None else self.split.blocks

    @property
    def depth(self) -> int:
        """Of the deepest ring."""
        return max(channel.depth for channel in self.channels)

    @property
    def math_warps(self) -> int:
        return WARPGROUP_WARPS * self.math_groups

    @property
    def team_groups(self) -> int:
        """Warpgroups that do a program together."""
        return self.math_groups // self.teams

    @property
    def team_warps(self) -> int:
        return WARPGROUP_WARPS * self.team_groups

    @property
    def warps(self) -> int:
        """Those of the block: a warpgroup beside the math ones loads."""
        return self.math_warps + WARPGROUP_WARPS


@dataclass(frozen=True)
class NoSchedule:
    """All threads do everything, one thing after the other; `reasons` are about products."""

    reasons: tuple[Reason, ...] = ()


def plan(
    function: ir.OpView,
    hints: Hints,
    target: Target,
    fitting: int | None = None,
    results_by: By = "copies",
    *,
    stages: bool = False,
) -> Schedule | NoSchedule:
    """How to overlap copies and products of a kernel, if that can be and gains something.

    `fitting`: no deeper rings than so, for deeper ones were tried and leave too little room.
    `results_by`: how tiles leave that may leave box by box. `stages` is that of `find_products`.

    Shapes:   the products that are scheduled are those whose factors are loads of tensors
    """
    factors = find_products(function, is_fast=hints.fast_math, stages=stages)
    limits = target.roles
    if limits is None:
        why = f"{target.name} has no asynchronous products"
        return NoSchedule((Reason("no loader", why),) if factors else ())
    if any(rules()[op.operation.name].ends_launch for op in operations(function)):
        # With calls between them, the assembler lets products run one by one (ptxas, C7510).
        why = "the build is checked: it calls the driver where something does not hold"
        return NoSchedule((Reason("no loader", why),) if factors else ())
    unfit = [Reason(_unscheduled(one.op), one.why) for one in factors if isinstance(one, Unfit)]
    candidates = [one for one in factors if isinstance(one, Product)]
    split, why_split = split_for(function, candidates, hints)
    if split is not None:
        hints = replace(hints, persistent=False)
    groups, *reasons = _math_groups(candidates, hints, limits)
    teams, why_teams = teams_for(candidates, hints, limits)
    if teams > 1:
        groups, reasons = 1, []  # of a team
    reasons += [*why_split, *why_teams]
    products = [product for product in candidates if _fits(product, groups, limits)]
    for one in candidates:
        if one not in products:
            rows, columns = one.shape
            unfit.append(Reason(_unscheduled(one.op), f"{rows}x{columns} is no size for it"))
    looped = [is_in_loop(one.op.operation.block) for one in products]
    products, mapless, more_maps = products_with_maps(
        products, looped, room_for_maps(function, target)
    )
    unfit += [Reason(_unscheduled(one.op), one.why) for one in mapless]
    if not products:
        return NoSchedule(tuple(unfit))
    # Where a block has a multiprocessor to itself, it goes on to the next program with copies under
    # way.
    groups *= teams
    is_persistent = groups > 1 and hints.persistent
    copies = [one for fill in fills_of(products) for one in fill if is_in_loop(one.block)]
    found = sharing(function, copies, products, hints, target, is_persistent=is_persistent)
    shared = () if found is None else found.shared
    # A cluster shares the copies of one place; nothing says that those of another are the same.
    rings = rings_of(products, are_joined=not shared)
    found_results = find_results(function)
    if results_by == "copies":
        found_results = results_with_maps(found_results, more_maps)
    stored = _stored_bytes(found_results, groups, teams) if is_persistent else 0
    # Clusters leave multiprocessors over, unless these have room for more than one block.
    together = _BLOCKS_OF_SPLIT if split is not None and groups == 1 else 1
    places = 2 if (staged := staged_bytes(products)) else 0
    while True:
        beside = stored + places * staged
        depth, *more = _depth(
            rings, hints, target, beside, fitting, is_persistent=is_persistent, together=together
        )
        if depth >= _LEAST_DEPTH or places < 2:
            break
        places = 1
    if depth < _LEAST_DEPTH:
        return NoSchedule((*unfit, *more))
    rows = min(_rows_of_square(products, target), limits.rows_together)
    shares = groups > 1
    reasons += [*(why for one in products for why in _why_so(one))]
    reasons += why_staged(products, places)
    loading = _loader_registers(rings, limits)
    reasons += [
        *more,
        _why_order(rows, target),
        *([_why_registers(groups, loading, limits)] if shares else []),
    ]
    if is_persistent:
        why = "it has a multiprocessor to itself, and copies for the next one go on"
        reasons.append(Reason("several programs a block", why))
    reasons += [_why_result(one, results_by) for one in found_results]
    ahead: tuple[Ahead, ...] = ()
    if split is None:
        threads, is_aligned = WARPGROUP_THREADS * groups // teams, results_by == "copies"
        ahead = tuple(find_ahead(function, products, threads, limits, is_aligned=is_aligned))
    reasons += [_why_ahead(one) for one in ahead]
    if found is not None:
        reasons.append(Reason(found.what, found.why))
    reasons += unfit
    # Teams take the programs of a block in turn: one would have all the long ones.
    may_order = found is None and split is None and teams == 1
    longest = longest_programs(function) if may_order else None
    if longest is not None:
        reasons.append(why_longest(longest))
    channels = tuple(
        Channel(
            ring.fills,
            depth if ring.in_loop else 1,
            tuple((one, sharers) for one, sharers in shared if one in ring.fills[0]),
        )
        for ring in rings
    )
    return Schedule(
        channels,
        tuple(products),
        groups,
        rows,
        is_persistent,
        loading if shares else 0,
        _math_registers(loading, groups, limits) if shares else 0,
        tuple(reasons),
        tuple(one for one in found_results if isinstance(one, Result)),
        results_by,
        None if found is None else found.cluster,
        teams,
        split,
        ahead,
        places,
        longest,
    )


def _stored_bytes(stores: Sequence[Result | Stored], groups: int, teams: int) -> int:
    """What tiles need of shared memory on their way out, beside rings that are in use.

    A block that does one program has the room of its rings for that, once they have been read.
    Boxes have theirs to the end; of other tiles one goes through it at a time, or a piece of one,
    for each team.
    """
    boxes = [BUFFERS * one.box.bytes for one in stores if isinstance(one, Result)]
    whole = [one.bytes for one in stores if isinstance(one, Stored)]
    at_once = min(max(whole, default=0), PIECE_BYTES)
    return WARPGROUP_WARPS * groups * sum(boxes) + teams * at_once


def _why_ahead(one: Ahead) -> Reason:
    why = "it takes few registers beside sums, and what follows products does not wait for it"
    return Reason(f"`{one.param}` is loaded before the products", why)


def _why_result(one: Result | Stored, by: By) -> Reason:
    if isinstance(one, Stored):
        return Reason(f"`{one.param}` is stored as by any kernel", one.why)
    rows, columns = one.box.shape[-2:]
    if by == "copies":
        why = f"boxes of {rows}x{columns} of each warp, copied while it goes on"
        return Reason(f"`{one.param}` is stored by TMA", why)
    why = "nothing is known of its alignment: each warp stores boxes row by row"
    return Reason(f"`{one.param}` is stored by rows of {columns}", why)


def _math_groups(products: Sequence[Product], hints: Hints, limits: Roles) -> tuple[int, Reason]:
    """As many as split the rows of every product."""
    most = limits.math_groups
    asked = most if hints.warps is None else max(1, hints.warps // WARPGROUP_WARPS)
    groups = min(asked, most)
    odd = [p.shape for p in products if p.shape[0] % (groups * ROWS)]
    if odd:
        why = f"{odd[0][0]} rows of a product are no multiple of {groups * ROWS}"
        return 1, Reason("1 math warpgroup", why)
    what = f"{groups} math warpgroup{'s' * (groups > 1)}"
    if groups < most:
        return groups, Reason(what, f"asked for by `warps = {hints.warps}`")
    return groups, Reason(what, f"each product has {ROWS} rows or more for each")


def _fits(product: Product, groups: int, limits: Roles) -> bool:
    held = product.held_words // (groups * WARPGROUP_THREADS)
    return bool(fits(product.shape, groups)) and held <= limits.held_registers


def _rows_of_square(products: Sequence[Product], target: Target) -> int:
    """How many rows are walked together if the programs that run at once are about square.

    Programs of a square of `m` by `n` tiles read m + n of them, which is least for a given number
    of programs where both sides are as long, in elements.
    """
    rows, columns = products[0].shape
    if TURNED in products[0].op.attributes:
        rows, columns = columns, rows
    side = (target.multiprocessors * columns / rows) ** 0.5
    return 1 << max(0, round(log2(side)))


def _unscheduled(op: ir.OpView) -> str:
    return f"no overlap of the product{at(op)}"


def _why_so(product: Product) -> Iterator[Reason]:
    """What is done otherwise with a product than it is written."""
    place = at(product.op)
    if isinstance(product.a, Computed):
        why = "it is computed by the threads that multiply, when nothing reads its registers"
        yield Reason(f"a factor in registers{place}", why)
    if TURNED in product.op.attributes:
        why = "tensor cores take the first factor from registers, and 64 rows or more"
        yield Reason(f"rows and columns change places{place}", why)
    if product.is_promoted:
        why = "tensor cores sum f8 in fewer bits, throughout with `fast_math`"
        yield Reason(f"sums of each step are added in f32{place}", why)


def _why_order(rows: int, target: Target) -> Reason:
    what = f"{rows} row{'s' * (rows > 1)} of programs at a time"
    why = f"{target.multiprocessors} programs run at once, which read much of the same"
    return Reason(what, why)


def _loader_registers(rings: Sequence[Ring], limits: Roles) -> int:
    """The registers of a producer thread, which keeps its position in each ring."""
    is_many = len(rings) > limits.few_rings
    return limits.loader_registers_of_many if is_many else limits.loader_registers


def _math_registers(loading: int, groups: int, limits: Roles) -> int:
    """The registers that are left for a consumer thread: `setmaxnreg` takes multiples of eight."""
    return (limits.registers - loading) // groups // 8 * 8


def _why_registers(groups: int, loading: int, limits: Roles) -> Reason:
    math = _math_registers(loading, groups, limits)
    what = f"{math} registers of a math thread, {loading} of one that loads"
    return Reason(what, f"{groups + 1} warpgroups share those of a multiprocessor")


def _depth(
    rings: Sequence[Ring],
    hints: Hints,
    target: Target,
    stored: int,
    fitting: int | None,
    *,
    is_persistent: bool,
    together: int,
) -> tuple[int, Reason]:
    """How many slots the rings in loops have, where `stored` bytes are beside them.

    `together`: so many blocks are to have room on a multiprocessor, if nobody says otherwise.

    Fewer than `_LEAST_DEPTH`, to have none.
    """
    facts = target.roles
    assert facts is not None, f"{target.name} has no roles"
    together = together if hints.stages is None else 1
    room = target.smem_per_block_bytes // together - stored - facts.rest_bytes
    turning = 0
    for ring in rings:
        if ring.in_loop:
            turning += ring.slot_bytes
        else:
            room -= ring.slot_bytes
    if turning == 0:
        return 0, Reason("no loader", "no loop turns around the copies")
    slots = {
        room // turning: f"{room} bytes of room, {turning} for a slot of each",
        facts.depth: "no more than that hides anything",
    }
    if is_persistent and hints.stages is None:
        slots[facts.depth_of_several] = "more is slower where a block does several programs"
    if hints.stages is not None:
        slots[hints.stages] = f"asked for by `stages = {hints.stages}`"
    if fitting is not None:
        slots[fitting] = "with more, the rest of the kernel does not fit in shared memory"
    depth = min(slots)
    what = f"depth {depth}" if depth >= _LEAST_DEPTH else "no loader"
    return depth, Reason(what, slots[depth])
