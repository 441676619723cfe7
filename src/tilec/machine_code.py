"""Checked kernels to a cubin and its manifest: every instance in each of its variants.

A *variant* is machine code for one set of preconditions. One takes pointers and outer strides as
multiples of the widest access wherever it accesses memory in larger pieces than elements; the last
takes nothing for granted. Where hardware copies the factors of products, another one takes nothing
for granted but that it can. All entries go through LLVM and ptxas together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlir import ir

from tilec.artifact import manifest
from tilec.artifact.family import Cost
from tilec.artifact.manifest import Kernel, Precondition, Slot, Variant
from tilec.artifact.schedule_report import ScheduleReport
from tilec.codegen.cubin import Resources, assemble
from tilec.codegen.describe import Description
from tilec.codegen.lower_tiles import SHARED, gpu_module, lower_tiles
from tilec.codegen.ptx import llvm_ir_of, lower_to_llvm, ptx_of
from tilec.codegen.record import Recorder
from tilec.codegen.warps import warps_for
from tilec.codegen.whole_rows import whole_rows
from tilec.ops.lowering import TensorMap, teams_of
from tilec.ops.notes import Note, Place, SharedMemoryUse
from tilec.ops.rules import Placing
from tilec.ops.send import By
from tilec.schedule.cost import Work, cost_of, work_of
from tilec.schedule.describe import describe
from tilec.schedule.describe_stages import with_stages
from tilec.schedule.plan import NoSchedule, Reason, Schedule
from tilec.schedule.stages import Stages, blocks_at_once, plan_stages
from tilec.shared_memory.finish import Room, finish
from tilec.shared_memory.plan_offsets import DoesNotFitError
from tilec.stages import stage
from tilec.target.description import Target
from tilec.target.occupancy import occupancy
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.insert_barriers import insert_barriers
from tilec.transforms.mark_last_uses import mark_last_uses
from tilec.transforms.place_layouts import place_layouts
from tilec.transforms.read_elements import read_elements
from tilec.transforms.relax_floats import relax_floats
from tilec.transforms.specialise import specialise
from tilec.transforms.stage_loads import stage_loads
from tilec.transforms.turn_products import plan_either_way
from tilec.warp.verify import expect_no_problem, problems_of


@dataclass(frozen=True)
class Tools:
    """The files that code generation needs."""

    ptxas: Path
    libdevice: Path


@dataclass(frozen=True)
class MachineCode:
    """A cubin, what is in it, and the steps on the way as text."""

    image: bytes
    kernels: tuple[Kernel, ...]
    llvm: str
    ptx: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Instance:
    """One kernel: its function in the tile dialect, helpers inlined, and its description."""

    function: ir.OpView
    description: Description


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
    work: Work = field(default_factory=Work)

    @property
    def asks_more_than_factors(self) -> bool:
        """Whether anything is asked of tensors but those from which hardware copies."""
        return bool(
            self.alignments or self.row_multiples or any(one.writes for one in self.tensor_maps)
        )


@dataclass(frozen=True)
class _Entry:
    instance: Instance
    point: EntryPoint


def compile_kernels(
    instances: Sequence[Instance], target: Target, tools: Tools, *, with_llvm: bool = False
) -> MachineCode:
    """Machine code for one target. The instances' functions are left as they are.

    `llvm` of the result is empty unless it is asked for: nothing else needs it as text.

    Raises:   NoGpuCodeError for an operation that has no lowering; PtxasError
    """
    attribute = (
        f'#nvvm.target<chip = "{target.name}", features = "{target.features}", O = 3, '
        f'link = ["{tools.libdevice}"]>'
    )
    module, body = gpu_module("kernels", attribute)
    with stage("variants"):
        entries = [entry for one in instances for entry in _entries(one, body, target)]
    with stage("to LLVM dialect"):
        lower_to_llvm(module)
    llvm = llvm_ir_of(module) if with_llvm else ""
    with stage("LLVM to PTX"):
        ptx = ptx_of(module)
    with stage("ptxas"):
        cubin = assemble(ptx, target.name, tools.ptxas)
    kernels = tuple(_kernel(one, entries, cubin.resources, target) for one in instances)
    return MachineCode(cubin.image, kernels, llvm, ptx, cubin.warnings)


def lower_all(instances: Sequence[Instance], target: Target) -> None:
    """Lower every variant as `compile_kernels` does, for what is found on the way.

    Raises:   NoGpuCodeError; DoesNotFitError
    """
    # The module is kept: its block dies with it.
    module, body = gpu_module("kernels", f'#nvvm.target<chip = "{target.name}">')
    for one in instances:
        _entries(one, body, target)
    assert module.operation.name == "builtin.module"


def _entries(instance: Instance, body: ir.Block, target: Target) -> list[_Entry]:
    """The variants of one instance, the most demanding first: one, if that demands nothing."""
    symbol, widest = instance.description.symbol, target.access_bytes
    aligned = lower_variant(instance, f"{symbol}__v{widest}", widest, body, target)
    points = [aligned]
    if aligned.tensor_maps and aligned.asks_more_than_factors:
        points.append(lower_variant(instance, f"{symbol}__tma", 1, body, target, has_roles=True))
    points.append(lower_variant(instance, symbol, 1, body, target))
    for point in points[:-1]:
        if not (point.alignments or point.tensor_maps):
            _erase(body, point.symbol)
            points.remove(point)
    return [_Entry(instance, point) for point in points]


def lower_variant(
    instance: Instance,
    symbol: str,
    vector_bytes: int,
    body: ir.Block,
    target: Target,
    fitting: int | None = None,
    *,
    has_roles: bool | None = None,
) -> EntryPoint:
    """Lower one variant of an instance to threads, as the last function of `body`.

    `fitting`: as `plan` has it. `has_roles`: whether hardware may copy factors, whose tensors
    launchers describe; as a default where everything is as aligned as copies want it.

    Units:    `vector_bytes`: what pointers and outer strides may be taken to be multiples of
    """
    told = instance.description
    hints = told.hints
    function = instance.function.operation.clone().opview
    work = Work()
    try:
        if hints.get("fast_math"):
            relax_floats(function)
        with stage("access facts"):
            rows = whole_rows(function, vector_bytes)
            find_access_facts(function, rows.of_extents)
            if target.has_async_products:
                read_elements(function)
        # Copies by hardware begin at multiples of 16 bytes.
        is_aligned = vector_bytes == target.access_bytes
        with stage("schedule"):
            schedule: Schedule | NoSchedule = NoSchedule()
            if is_aligned if has_roles is None else has_roles:
                by: By = "copies" if is_aligned else "rows"
                function, schedule = plan_either_way(function, hints, target, fitting, by)
            report = describe(schedule, target)
            if isinstance(schedule, Schedule):
                # What it names in the function is gone once it is carried out.
                warps = schedule.team_warps
                work = work_of(function, schedule, target, told.grid, told.dims, warps)
                function, schedule = _with_roles(function, schedule)
            if isinstance(schedule, NoSchedule):
                report = describe(schedule, target)
        stages = Stages()
        if isinstance(schedule, Schedule):
            warps, loader_warps = schedule.team_warps, schedule.warps - schedule.math_warps
        else:
            warps, loader_warps = warps_for(function, hints, target), 0
            with stage("stages"):
                placing = Placing(warps, vector_bytes)
                stages = plan_stages(function, hints, target, placing, fitting)
                report = with_stages(report, stages)
                work = work_of(function, schedule, target, told.grid, told.dims, warps, stages)
                stage_loads(function, stages)
        teams = teams_of(function)
        with stage("layouts"):
            mark_last_uses(function)
            place_layouts(function, Placing(warps, vector_bytes))
            expect_no_problem(function, "place_layouts")
        # After layouts, which say what thread touches which element.
        with stage("barriers"):
            insert_barriers(function)
            expect_no_problem(function, "insert_barriers")
        with stage("lowering to threads"):
            code = lower_tiles(
                function,
                symbol,
                body,
                warps=warps,
                vector_bytes=vector_bytes,
                loader_warps=loader_warps,
            )
    finally:
        function.operation.erase()
    with stage("shared memory"):
        room = Room(target.free_smem_bytes(warps), target.smem_per_block_bytes)
        try:
            shared = finish(code.function, SHARED, warps=warps, room=room, teams=teams)
        except DoesNotFitError:
            depth = schedule.depth if isinstance(schedule, Schedule) else stages.depth
            if depth == 0:
                raise
            # What no longer fits beside rings fits beside shorter ones, or none.
            code.function.operation.erase()
            fewer = depth - 1
            return lower_variant(
                instance, symbol, vector_bytes, body, target, fewer, has_roles=has_roles
            )
    blocks = blocks_at_once(stages, warps, shared.bytes, target)
    if blocks is not None:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), blocks)
        code.function.attributes["nvvm.minctasm"] = number
    threads = (warps * teams + loader_warps) * target.threads_per_warp
    return EntryPoint(
        symbol,
        threads,
        shared.bytes,
        code.alignments,
        rows.of_params,
        code.notes,
        shared,
        code.tensor_maps,
        report,
        is_persistent=isinstance(schedule, Schedule) and schedule.is_persistent,
        cluster=_blocks_of(schedule),
        split=schedule.split_blocks if isinstance(schedule, Schedule) else 1,
        work=work,
    )


def _blocks_of(schedule: Schedule | NoSchedule) -> int:
    """How many blocks a cluster has."""
    if isinstance(schedule, NoSchedule):
        return 1
    if schedule.cluster is None:
        return schedule.split_blocks
    return schedule.cluster.blocks


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


def _erase(body: ir.Block, symbol: str) -> None:
    for op in body.operations:
        if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            op.operation.erase()
            return
    raise AssertionError(f"{symbol} was just lowered")


def _kernel(
    instance: Instance,
    entries: Sequence[_Entry],
    resources: Mapping[str, Resources],
    target: Target,
) -> Kernel:
    told = instance.description
    own = [entry for entry in entries if entry.instance is instance]
    recorder = Recorder({parameter.name: parameter.element for parameter in told.parameters})
    variants = tuple(
        _variant(told, one, resources[one.point.symbol], recorder, target) for one in own
    )
    return Kernel(
        name=told.name,
        symbol=told.symbol,
        generics=told.generics,
        documentation=told.documentation,
        line=told.line,
        parameters=told.parameters,
        dims=told.dims,
        grid=told.grid,
        requires=told.requires,
        unsafe=told.unsafe,
        accesses=told.accesses,
        coverage=told.coverage,
        variants=variants,
        layouts=recorder.layouts,
    )


def _cost(point: EntryPoint, taken: Resources, target: Target) -> Cost:
    smem = taken.smem + point.smem_bytes
    fits = occupancy(point.threads, taken.registers, smem, target).blocks
    spilled = (taken.spill_stores + taken.spill_loads) * point.threads
    return cost_of(point.work, fits, spilled, target)


def _preconditions(point: EntryPoint, ranks: Mapping[str, int]) -> Iterator[Precondition]:
    for name in sorted({*point.alignments, *point.row_multiples}):
        size = point.alignments.get(name, 1)
        yield Precondition(
            name, size, size if ranks[name] > 1 else 1, point.row_multiples.get(name, 1)
        )


def _variant(
    told: Description, entry: _Entry, taken: Resources, recorder: Recorder, target: Target
) -> Variant:
    point = entry.point
    ranks = {parameter.name: parameter.rank for parameter in told.parameters}
    preconditions = tuple(_preconditions(point, ranks))
    maps = tuple(
        manifest.TensorMap(one.param, one.box, one.swizzle, one.writes) for one in point.tensor_maps
    )
    return Variant(
        symbol=point.symbol,
        threads=point.threads,
        slots=(*told.slots, *(Slot("tensor_map", one.param) for one in maps)),
        preconditions=preconditions,
        cluster=(point.cluster, 1, 1),
        persistent_blocks_per_sm=1 if point.is_persistent else None,
        split=point.split,
        tensor_maps=maps,
        static_smem_bytes=taken.smem,
        dynamic_smem_bytes=point.smem_bytes,
        registers=taken.registers,
        spill_store_bytes=taken.spill_stores,
        spill_load_bytes=taken.spill_loads,
        stack_bytes=taken.stack,
        cost=_cost(point, taken, target),
        lowering=recorder.report(point.notes, point.shared, point.schedule),
    )
