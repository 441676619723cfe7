"""One variant of an instance, from tiles to threads: the passes, in their order.

A *variant* is machine code for one set of preconditions; `machine_code.py` says which there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mlir import ir

from tilec.artifact.schedule_report import ScheduleReport
from tilec.codegen.describe import Description
from tilec.codegen.lower_tiles import SHARED, ThreadCode, lower_tiles
from tilec.codegen.size import expect_within_size
from tilec.codegen.start_early import FOLLOWS, PRECEDES, let_start_early, start_early
from tilec.codegen.warps import warps_for
from tilec.codegen.whole_rows import whole_rows
from tilec.hints import Hints
from tilec.ops.lowering import TensorMap, teams_of
from tilec.ops.notes import Note, Place, SharedMemoryUse
from tilec.ops.rules import Placing
from tilec.ops.send import By
from tilec.roles.pipeline_loops import Form, changed_forms
from tilec.roles.specialise import specialise
from tilec.schedule.cost import Work, work_of
from tilec.schedule.describe import describe
from tilec.schedule.describe_stages import with_stages
from tilec.schedule.longest import longest_programs, walk_longest_first, why_longest
from tilec.schedule.plan import NoSchedule, Reason, Schedule, plan
from tilec.schedule.stages import Stages, blocks_at_once, plan_stages
from tilec.schedule.walk import Launch
from tilec.shared_memory.finish import Room, finish
from tilec.shared_memory.plan_offsets import DoesNotFitError
from tilec.stages import stage
from tilec.target.description import Target
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.insert_barriers import insert_barriers
from tilec.transforms.mark_last_uses import mark_last_uses
from tilec.transforms.place_layouts import place_layouts
from tilec.transforms.read_elements import read_elements
from tilec.transforms.relax_floats import relax_floats
from tilec.transforms.split_loops import split_loops
from tilec.transforms.stage_loads import stage_loads
from tilec.transforms.turn_products import plan_either_way
from tilec.transforms.widen_first import widen_first
from tilec.warp.verify import expect_no_problem, problems_of


@dataclass(frozen=True)
class Instance:
    """One kernel: its function in the tile dialect, helpers inlined, and its description.

    `may_change_loops`: its loops may be pipelined and split (`roles/pipeline_loops.py`).
    """

    function: ir.OpView
    description: Description
    may_change_loops: bool = True


@dataclass(frozen=True)
class EntryPoint:
    """What launching a variant takes.

    Units:    bytes: `smem_bytes` of dynamic shared memory a block; `alignments` of pointers and
              outer strides; elements: what the last extent of parameters is a multiple of
    """

    symbol: str
    threads: int
    smem_bytes: int
    alignments: dict[str, int]
    row_multiples: dict[str, int]
    notes: tuple[tuple[Place, Note], ...] = ()
    shared: SharedMemoryUse = field(default_factory=SharedMemoryUse)
    tensor_maps: tuple[TensorMap, ...] = ()
    schedule: ScheduleReport = field(default_factory=ScheduleReport)
    is_persistent: bool = False
    cluster: int = 1
    split: int = 1  # the blocks that do a program together
    starts_early: bool = False  # before what came before it is done
    work: Work = field(default_factory=Work)

    @property
    def asks_more_than_factors(self) -> bool:
        """Whether anything is asked of tensors but those from which hardware copies."""
        return bool(
            self.alignments or self.row_multiples or any(one.writes for one in self.tensor_maps)
        )


@dataclass(frozen=True)
class Wanted:
    """A variant that is to be made.

    `fitting`: no deeper rings than so, for deeper ones leave too little room. `has_roles`: whether
    hardware may copy factors, whose tensors launchers describe; as a default where everything is as
    aligned as copies want it.

    Units:    `vector_bytes`: what pointers and outer strides may be taken to be multiples of
    """

    instance: Instance
    symbol: str
    vector_bytes: int
    target: Target
    has_roles: bool | None = None
    fitting: int | None = None

    @property
    def hints(self) -> Hints:
        return Hints.of(self.instance.description.hints)

    @property
    def is_aligned(self) -> bool:
        """Whether copies by hardware may begin anywhere: at multiples of 16 bytes."""
        return self.vector_bytes == self.target.access_bytes

    @property
    def may_have_roles(self) -> bool:
        return self.is_aligned if self.has_roles is None else self.has_roles


@dataclass
class _Scheduled:
    """A function that is as its schedule says, and the threads for it: `warps` of each team."""

    function: ir.OpView
    schedule: Schedule | NoSchedule
    stages: Stages
    report: ScheduleReport
    work: Work
    warps: int
    loader_warps: int
    teams: int

    @property
    def depth(self) -> int:
        """Of the deepest ring; 0 where there is none."""
        if isinstance(self.schedule, Schedule):
            return self.schedule.depth
        return self.stages.depth

    @property
    def threads(self) -> int:
        return self.warps * self.teams + self.loader_warps


def lower_variant(
    instance: Instance,
    symbol: str,
    vector_bytes: int,
    body: ir.Block,
    target: Target,
    *,
    has_roles: bool | None = None,
) -> EntryPoint:
    """Lower one variant of an instance to threads, as the last function of `body`.

    The arguments are those of `Wanted`.

    Raises:   NoGpuCodeError; DoesNotFitError; TooLargeError
    """
    wanted = Wanted(instance, symbol, vector_bytes, target, has_roles)
    return _lowered(wanted, body)


def _lowered(wanted: Wanted, body: ir.Block) -> EntryPoint:
    function = wanted.instance.function.operation.clone().opview
    if wanted.hints.fast_math:
        relax_floats(function)
    for name in (FOLLOWS, PRECEDES):
        if name in function.attributes and not wanted.target.has_early_starts:
            del function.attributes[name]
    is_early, is_before = FOLLOWS in function.attributes, PRECEDES in function.attributes
    with stage("access facts"):
        rows = whole_rows(function, wanted.vector_bytes)
        find_access_facts(function, rows.of_extents)
        if wanted.target.has_async_products:
            read_elements(function)
    made = _scheduled(function, wanted)
    try:
        code = _to_threads(made, wanted, body)
    finally:
        made.function.operation.erase()
    with stage("shared memory"):
        target, warps = wanted.target, made.warps
        room = Room(target.free_smem_bytes(warps), target.smem_per_block_bytes)
        try:
            shared = finish(code.function, SHARED, warps=warps, room=room, teams=made.teams)
        except DoesNotFitError:
            if made.depth == 0:
                raise
            # What no longer fits beside rings fits beside shorter ones, or none.
            code.function.operation.erase()
            return _lowered(replace(wanted, fitting=made.depth - 1), body)
    if is_early:
        start_early(code.function)
    if is_before:
        let_start_early(code.function, wanted.target.multiprocessors)
    blocks = blocks_at_once(made.stages, warps, shared.bytes, target)
    if blocks is not None:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), blocks)
        code.function.attributes["nvvm.minctasm"] = number
    return EntryPoint(
        wanted.symbol,
        made.threads * target.threads_per_warp,
        shared.bytes,
        code.alignments,
        rows.of_params,
        code.notes,
        shared,
        code.tensor_maps,
        made.report,
        is_persistent=isinstance(made.schedule, Schedule) and made.schedule.is_persistent,
        cluster=_blocks_of(made.schedule),
        split=made.schedule.split_blocks if isinstance(made.schedule, Schedule) else 1,
        starts_early=is_early,
        work=made.work,
    )


# ---- schedules -----------------------------------------------------------------------------------


def _scheduled(function: ir.OpView, wanted: Wanted) -> _Scheduled:
    """The function with roles; or, if it cannot have them, with what all threads copy ahead.

    The function that is not taken is erased.
    """
    hints, target, told = wanted.hints, wanted.target, wanted.instance.description
    read = {one.tensor: one.extents for one in told.touched if one.direction == "read"}
    launch = Launch(told.grid, told.dims, {p.name: p.extents for p in told.parameters}, read)
    with stage("schedule"):
        schedule: Schedule | NoSchedule = NoSchedule()
        if wanted.may_have_roles:
            by: By = "copies" if wanted.is_aligned else "rows"
            function, schedule = plan_either_way(function, hints, target, wanted.fitting, by)
        if isinstance(schedule, Schedule):
            made = _in_best_form(function, schedule, wanted, launch)
            if isinstance(made, _Scheduled):
                return made
            function, schedule = made
    warps = warps_for(function, hints, target)
    with stage("stages"):
        placing = Placing(warps, wanted.vector_bytes)
        stages = plan_stages(function, hints, target, placing, wanted.fitting)
        # The parts of a split loop would fill rings of their own.
        if not stages.rings and target.rates is not None:
            found = split_loops(function, target.rates)
            schedule = replace(schedule, reasons=(*schedule.reasons, *found))
        longest = longest_programs(function)
        if longest is not None:
            schedule = replace(schedule, reasons=(*schedule.reasons, why_longest(longest)))
        report = with_stages(describe(schedule, target), stages)
        work = work_of(function, schedule, target, launch, warps, stages)
        stage_loads(function, stages)
        if longest is not None:
            walk_longest_first(function, longest)
    return _Scheduled(function, schedule, stages, report, work, warps, 0, 1)


def _in_best_form(
    function: ir.OpView, schedule: Schedule, wanted: Wanted, launch: Launch
) -> _Scheduled | tuple[ir.OpView, NoSchedule]:
    """The function with roles, in the first of its forms that is verified; or the function
    unchanged, and why it has no roles. The functions that are not taken are erased."""
    hints, target = wanted.hints, wanted.target
    missed: list[Reason] = []

    def planned(one: ir.OpView) -> Schedule | NoSchedule:
        return plan(one, hints, target, wanted.fitting, schedule.results_by)

    written = Form(function, schedule)
    forms = list(changed_forms(written, target, planned, is_fast=hints.fast_math))
    if forms and not wanted.instance.may_change_loops:
        _erase(forms)
        forms = []
        missed.append(Reason("loops as written", "ptxas would serialise products otherwise"))
    while forms:
        form, *forms = forms
        made = _specialised(form, missed, target, launch)
        if isinstance(made, _Scheduled):
            _erase((written, *forms))
            return made
        unused, failed = made
        unused.operation.erase()
        why = "; ".join(one.why for one in failed.reasons)
        missed.append(Reason("no " + ", no ".join(one.what for one in form.reasons), why))
    return _specialised(written, missed, target, launch)


def _erase(forms: Sequence[Form]) -> None:
    for form in forms:
        form.function.operation.erase()


def _specialised(
    form: Form, missed: Sequence[Reason], target: Target, launch: Launch
) -> _Scheduled | tuple[ir.OpView, NoSchedule]:
    """A form with roles; `missed` says why it has none of the better forms."""
    function = form.function
    reasons = (*form.schedule.reasons, *form.reasons, *missed)
    schedule = replace(form.schedule, reasons=reasons)
    # What the schedule names in the function is gone once it is carried out.
    report = replace(describe(schedule, target), pipelines=form.pipelines)
    warps = schedule.team_warps
    work = work_of(function, schedule, target, launch, warps)
    function, done = _with_roles(function, schedule)
    if isinstance(done, NoSchedule):
        return function, done
    loader_warps, teams = done.warps - done.math_warps, teams_of(function)
    return _Scheduled(function, done, Stages(), report, work, warps, loader_warps, teams)


def _with_roles(function: ir.OpView, schedule: Schedule) -> tuple[ir.OpView, Schedule | NoSchedule]:
    """The function with roles; as it was, if it cannot have them or they cannot be proved right."""
    spare = function.operation.clone().opview
    done = specialise(function, schedule)
    problem = next(problems_of(function), None)
    if problem is None:
        spare.operation.erase()
        return function, done
    function.operation.erase()
    return spare, NoSchedule((Reason("no loader", f"it is not proved right: {problem.what}"),))


def _blocks_of(schedule: Schedule | NoSchedule) -> int:
    """How many blocks a cluster has."""
    if isinstance(schedule, NoSchedule):
        return 1
    if schedule.cluster is None:
        return schedule.split_blocks
    return schedule.cluster.blocks


# ---- threads -------------------------------------------------------------------------------------


def _to_threads(made: _Scheduled, wanted: Wanted, body: ir.Block) -> ThreadCode:
    function = made.function
    with stage("layouts"):
        mark_last_uses(function)
        widen_first(function)
        place_layouts(function, Placing(made.warps, wanted.vector_bytes))
        expect_no_problem(function, "place_layouts")
    # After layouts, which say what thread touches which element.
    with stage("barriers"):
        insert_barriers(function)
        expect_no_problem(function, "insert_barriers")
    with stage("lowering to threads"):
        code = lower_tiles(
            function,
            wanted.symbol,
            body,
            warps=made.warps,
            vector_bytes=wanted.vector_bytes,
            loader_warps=made.loader_warps,
        )
        expect_within_size(code.function, wanted.instance.function.location)
        return code
