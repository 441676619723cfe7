"""Checked kernels to a cubin and its manifest: every instance in each of its variants.

A *variant* is machine code for one set of preconditions. One takes pointers and outer strides as
multiples of the widest access wherever it accesses memory in larger pieces than elements; the last
takes nothing for granted. Where hardware copies the factors of products, another one takes nothing
for granted but that it can. They become PTX apart from each other (`units.py`), and go through
ptxas together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilec.artifact import manifest
from tilec.artifact.family import Cost
from tilec.artifact.manifest import Kernel, Precondition, Slot, Variant
from tilec.codegen.cubin import BrokenScheduleError, Resources, assemble
from tilec.codegen.describe import Description
from tilec.codegen.join_ptx import join_ptx
from tilec.codegen.lower_tiles import gpu_module
from tilec.codegen.ptx import llvm_ir_of, lower_to_llvm
from tilec.codegen.record import Recorder
from tilec.schedule.cost import cost_of
from tilec.stages import stage
from tilec.target.description import Target
from tilec.target.occupancy import occupancy
from tilec.units import Unit, make_all, units_of
from tilec.variant import EntryPoint, Instance


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
class _Entry:
    instance: Instance
    point: EntryPoint


def compile_kernels(
    instances: Sequence[Instance],
    target: Target,
    tools: Tools,
    *,
    with_llvm: bool = False,
    workers: int = 1,
) -> MachineCode:
    """Machine code for one target. The instances' functions are left as they are.

    `llvm` of the result is empty unless it is asked for: nothing else needs it as text. So many
    `workers` make PTX at a time, which changes nothing of it.

    Raises:   NoGpuCodeError for an operation that has no lowering; DoesNotFitError; TooLargeError;
              PtxasError
    """
    try:
        return _compiled(instances, target, tools, with_llvm, workers)
    except BrokenScheduleError as error:
        # ptxas serialises the products of this entry: its loops are compiled as written.
        broken = [one for one in instances if one.may_change_loops and _has_entry(one, error.entry)]
        if not broken:
            raise
        again = [replace(x, may_change_loops=False) if x in broken else x for x in instances]
        return compile_kernels(again, target, tools, with_llvm=with_llvm, workers=workers)


def _has_entry(instance: Instance, entry: str | None) -> bool:
    """Whether an entry is a variant of an instance, as far as ptxas says which entry it is."""
    symbol = instance.description.symbol
    return entry is None or entry == symbol or entry.startswith(f"{symbol}__")


def _compiled(
    instances: Sequence[Instance], target: Target, tools: Tools, with_llvm: bool, workers: int
) -> MachineCode:
    units = [unit for one in instances for unit in units_of(one)]
    attribute = (
        f'#nvvm.target<chip = "{target.name}", features = "{target.features}", O = 3, '
        f'link = ["{tools.libdevice}"]>'
    )
    made = make_all(units, target, attribute, workers)
    entries = [
        _Entry(unit.instance, point)
        for unit, one in zip(units, made, strict=True)
        for point in one.points
    ]
    ptx = join_ptx([one.ptx for one in made if one.points])
    with stage("ptxas"):
        cubin = assemble(ptx, target.name, tools.ptxas)
    kernels = tuple(_kernel(one, entries, cubin.resources, target) for one in instances)
    llvm = _llvm_of(units, target, attribute) if with_llvm else ""
    return MachineCode(cubin.image, kernels, llvm, ptx, cubin.warnings)


def lower_all(instances: Sequence[Instance], target: Target) -> None:
    """Lower every variant as `compile_kernels` does, for what is found on the way.

    Raises:   NoGpuCodeError; DoesNotFitError; TooLargeError
    """
    # The module is kept: its block dies with it.
    module, body = gpu_module("kernels", f'#nvvm.target<chip = "{target.name}">')
    for one in instances:
        for unit in units_of(one):
            unit.lower(one, body, target)
    assert module.operation.name == "builtin.module"


def _llvm_of(units: Sequence[Unit], target: Target, attribute: str) -> str:
    """All entries as one module of LLVM IR, which nothing else needs."""
    module, body = gpu_module("kernels", attribute)
    for unit in units:
        unit.lower(unit.instance, body, target)
    lower_to_llvm(module)
    return llvm_ir_of(module)


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
        touched=told.touched,
    )


def _cost(point: EntryPoint, taken: Resources, target: Target) -> Cost:
    smem = taken.smem + point.smem_bytes
    fits = occupancy(point.threads, taken.registers, smem, target).blocks
    spilled = taken.spill_stores + taken.spill_loads
    return cost_of(point.work, fits, point.threads, spilled, target)


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
        manifest.TensorMap(one.param, one.box, one.swizzle, one.writes, one.rounds)
        for one in point.tensor_maps
    )
    return Variant(
        symbol=point.symbol,
        threads=point.threads,
        slots=(*told.slots, *(Slot("tensor_map", one.param) for one in maps)),
        preconditions=preconditions,
        cluster=(point.cluster, 1, 1),
        persistent_blocks_per_sm=1 if point.is_persistent else None,
        split=point.split,
        starts_early=point.starts_early,
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
