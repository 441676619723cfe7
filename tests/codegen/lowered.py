"""Programs lowered to threads and executed with `simt`, block after block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from operator import itemgetter, mul
from typing import Any

import numpy as np
from mlir import ir
from simt import Code, Launch, run_block, run_cluster
from simt_copies import MappedTensor
from simt_memory import Memory, Segment
from simt_strands import LATE, Timing

from tests.on_cpu import checked_text
from tilec.artifact.abi import launch_grid
from tilec.artifact.expression import evaluate
from tilec.artifact.geometry import _persistent_grid
from tilec.artifact.manifest import Slot
from tilec.codegen.describe import Description
from tilec.codegen.lower_tiles import gpu_module
from tilec.codegen.start_early import FOLLOWS
from tilec.frontend.emit import emit
from tilec.interpret.contract import strides_of
from tilec.ir.dialect import context
from tilec.ir.walk import functions
from tilec.ops.lowering import TensorMap
from tilec.outputs import describe_kernels
from tilec.proofs.mark import mark_residual
from tilec.proofs.proof import Proof
from tilec.target.resolve import resolve
from tilec.transforms.drop_markers import drop_markers
from tilec.transforms.inline_helpers import inline_helpers
from tilec.transforms.insert_traps import insert_traps
from tilec.transforms.simplify import simplify
from tilec.variant import EntryPoint, Instance, lower_variant

FIRST_ADDRESS = 1 << 40
APART = 1 << 44  # between tensors: room for any stride
FIRST_MAP = 1 << 61  # what stands for the description of a tensor
ALIGNED, ANY = 16, 1  # what pointers and outer strides are multiples of, in bytes
# Those of factors are, which hardware copies; of other tensors nothing is known.
FACTORS = 2


@dataclass(frozen=True)
class Program:
    """The kernels of a program, as the tile dialect has them and as threads run them."""

    instances: Mapping[str, Instance]
    body: ir.Block
    target: str
    _lowered: dict[tuple[str, int], tuple[EntryPoint, Code]] = field(default_factory=dict)

    def lowered(self, symbol: str, vector_bytes: int) -> tuple[EntryPoint, Code]:
        """One variant of a kernel: what launching it takes, and its code."""
        key = (symbol, vector_bytes)
        if key not in self._lowered:
            name = f"{symbol}__v{vector_bytes}"
            instance, target = self.instances[symbol], resolve(self.target)
            known = ANY if vector_bytes == FACTORS else vector_bytes
            roles = vector_bytes != ANY
            point = lower_variant(instance, name, known, self.body, target, has_roles=roles)
            function = list(self.body.operations)[-1]
            assert function.operation.verify()
            self._lowered[key] = point, Code(function)
        return self._lowered[key]

    def take(self, symbol: str, vector_bytes: int, point: EntryPoint, code: Code) -> None:
        """Run other code from now on."""
        self._lowered[symbol, vector_bytes] = point, code

    def run(
        self,
        symbol: str,
        arguments: Mapping[str, Any],
        vector_bytes: int = ANY,
        *,
        grid_x: int | None = None,
        strides: Mapping[str, tuple[int, ...]] | None = None,
        steps: int = 10**9,
        timing: Timing = LATE,
    ) -> None:
        """Run every block of a launch on arrays, in place.

        Units:    `strides` are those of the outer axes in elements, where they are not to be the
                  array's (for ANY) or padded ones (for ALIGNED). For ANY, tensors lie at addresses
                  that are multiples of their elements only.
        Raises:   SimtError for what a thread may not do; GivenUp after `steps` operations
        """
        told = self.instances[symbol].description
        values = _values(told, arguments)
        point, code = self.lowered(symbol, vector_bytes)
        if any(arguments[p].shape[-1] % n for p, n in point.row_multiples.items()):
            # A launcher takes another one then.
            vector_bytes = FACTORS if point.tensor_maps else ANY
            point, code = self.lowered(symbol, vector_bytes)
        mapped = {one.param for one in point.tensor_maps}
        tensors = _placed(told, arguments, dict(strides or {}), vector_bytes, mapped)
        if not _are_mappable(point, tensors):
            other = FACTORS if vector_bytes == ALIGNED else ANY
            self.run(
                symbol, arguments, other, grid_x=grid_x, strides=strides, steps=steps, timing=timing
            )
            return
        _expect_alignments(point, tensors)
        memory = Memory()
        memory.add(*(segment for tensor in tensors.values() for segment in tensor.segments))
        maps = {
            FIRST_MAP + number: _mapped(one, tensors[one.param])
            for number, one in enumerate(point.tensor_maps)
        }
        slots = [*(_slot_value(slot, tensors, values) for slot in told.slots), *maps]
        extents = [int(evaluate(extent, values)) for extent in told.grid]
        grid = (0, 0, 0) if 0 in extents else launch_grid(extents)
        if point.split > 1:
            grid = grid[0] * point.split, grid[1], grid[2]
        if point.is_persistent:  # as on a device of few multiprocessors
            grid = _persistent_grid(prod(extents), grid_x or 3, point.cluster)
        elif grid_x is not None:  # as where there are more programs than a grid has along x
            grid = grid_x, 1, -(-prod(extents) // grid_x)
        for z, y, first in np.ndindex(grid[2], grid[1], grid[0] // point.cluster):
            launches = [
                Launch(
                    point.threads,
                    (x, y, z),
                    grid,
                    point.smem_bytes,
                    steps,
                    maps,
                    timing,
                    point.starts_early,
                )
                for x in range(first * point.cluster, (first + 1) * point.cluster)
            ]
            if point.cluster > 1:
                steps = run_cluster(code, slots, launches, memory)
            else:
                steps = run_block(code, slots, launches[0], memory)
        for tensor in tensors.values():
            tensor.read_back()


@contextmanager
def program(
    text: str,
    *,
    checked: bool = False,
    target: str = "sm_90a",
    chosen: Collection[str] | None = None,
    name: str = "case.tile",
    follows: bool = False,
) -> Iterator[Program]:
    """A program, valid inside the `with`; `checked` as a checked build has it.

    `chosen`: of its instances only these, by symbol. `follows`: as kernels that a pipeline launches
    after others.
    """
    typed, sources = checked_text(name, text)
    with context():
        kept = [one for one in typed if chosen is None or one.symbol in chosen]
        tiles = emit(kept, sources)  # kept: operations die with their module
        inline_helpers(tiles)
        proofs = [Proof(kernel) for kernel in functions(tiles)]
        instances = describe_kernels(proofs)
        if checked:
            for proof in proofs:
                mark_residual(proof)
            insert_traps(tiles, sources)
        drop_markers(tiles)
        simplify(tiles)
        for one in instances if follows else ():
            one.function.attributes[FOLLOWS] = ir.UnitAttr.get()
        module, body = gpu_module("kernels", f'#nvvm.target<chip = "{target}">')
        yield Program({one.description.symbol: one for one in instances}, body, target)
        assert module.operation.verify()


@dataclass(frozen=True)
class _Tensor:
    """An array in the memory of the GPU: one segment for each stretch that its elements fill."""

    array: np.ndarray
    address: int
    strides: tuple[int, ...]  # of every axis, in elements
    segments: tuple[Segment, ...]

    def read_back(self) -> None:
        size = self.array.itemsize
        starts = [segment.start for segment in self.segments]
        for place in np.ndindex(self.array.shape[:-1]):
            start = self.address + size * sum(map(mul, place, self.strides))
            row = self.array[place]
            number = bisect_right(starts, start) - 1
            segment = self.segments[number] if number >= 0 else None
            if segment is not None and start < segment.end and not segment.is_read_only:
                begin = start - segment.start
                row[...] = segment.bytes[begin : begin + row.size * size].view(row.dtype)


def _placed(
    told: Description,
    arguments: Mapping[str, Any],
    strides: dict[str, tuple[int, ...]],
    vector_bytes: int,
    mapped: Collection[str],
) -> dict[str, _Tensor]:
    found = {}
    for number, parameter in enumerate(told.parameters):
        if parameter.own is None:
            continue
        array = arguments[parameter.name]
        array = array if array.ndim else array[None]
        is_aligned = vector_bytes == ALIGNED or parameter.name in mapped
        off = 0 if is_aligned else array.itemsize
        address = FIRST_ADDRESS + number * APART + off
        own = strides.get(parameter.name)
        if own is None:
            own = _padded(array) if is_aligned else strides_of(array)[:-1]
        found[parameter.name] = _tensor(
            parameter.name, array, address, (*own, 1), parameter.own == "shared"
        )
    return found


def _padded(array: np.ndarray) -> tuple[int, ...]:
    """Strides of the outer axes with rows that begin at multiples of 16 bytes."""
    multiple = max(1, ALIGNED // array.itemsize)
    row = -(-max(1, *array.shape[-1:]) // multiple) * multiple
    return tuple(row * prod(array.shape[axis + 1 : -1]) for axis in range(array.ndim - 1))


def _tensor(
    name: str, array: np.ndarray, address: int, strides: tuple[int, ...], is_read_only: bool
) -> _Tensor:
    size = array.itemsize
    rows = [
        (address + size * sum(map(mul, place, strides)), array[place])
        for place in np.ndindex(array.shape[:-1])
        if array.size
    ]
    # Rows that touch or overlap are one stretch: where it ends, and its rows.
    stretches: list[tuple[int, list[tuple[int, np.ndarray]]]] = []
    for start, row in sorted(rows, key=itemgetter(0)):
        end = start + row.size * size
        if stretches and start <= stretches[-1][0]:
            last, inside = stretches[-1]
            inside.append((start, row))
            stretches[-1] = max(end, last), inside
        else:
            stretches.append((end, [(start, row)]))
    segments = []
    for end, inside in stretches:
        start = inside[0][0]
        content = np.zeros(end - start, np.uint8)
        for row_start, row in inside:
            begin = row_start - start
            content[begin : begin + row.size * size] = np.ascontiguousarray(row).view(np.uint8)
        segments.append(Segment(name, start, content, is_read_only=is_read_only))
    return _Tensor(array, address, strides, tuple(segments))


def _are_mappable(point: EntryPoint, tensors: Mapping[str, _Tensor]) -> bool:
    """Whether a launcher can describe the tensors; else it takes the other variant."""
    mapped = [(one, tensors[one.param].array) for one in point.tensor_maps]
    whole = all(x.shape[-1] * x.itemsize % ALIGNED == 0 for one, x in mapped if one.writes)
    return whole and all(array.size for _, array in mapped)


def _mapped(one: TensorMap, tensor: _Tensor) -> MappedTensor:
    """As a launcher describes a tensor."""
    assert all(segment.is_read_only != one.writes for segment in tensor.segments)
    size = tensor.array.itemsize
    strides = tuple(size * stride for stride in tensor.strides[:-1])
    return MappedTensor(
        tensor.array,
        tensor.address,
        strides,
        one.box,
        one.swizzle,
        is_written=one.writes,
        rounds=one.rounds,
    )


def _expect_alignments(point: EntryPoint, tensors: Mapping[str, _Tensor]) -> None:
    """The preconditions of the variant hold: a launcher would not start it otherwise."""
    for name, multiple in point.alignments.items():
        tensor = tensors[name]
        axes = zip(tensor.array.shape, tensor.strides, strict=True)
        outer = [s * tensor.array.itemsize for n, s in list(axes)[:-1] if n > 1]
        assert not any(number % multiple for number in (tensor.address, *outer)), name


def _values(told: Description, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Scalars and extents by name."""
    values: dict[str, Any] = {}
    for parameter in told.parameters:
        given = arguments[parameter.name]
        if parameter.own is None:
            values[parameter.name] = given
            continue
        for extent, size in zip(parameter.extents, given.shape, strict=True):
            if isinstance(extent, str):
                assert values.setdefault(extent, size) == size
    return values


def _slot_value(slot: Slot, tensors: Mapping[str, _Tensor], values: Mapping[str, Any]) -> Any:
    match slot.kind:
        case "pointer":
            return tensors[slot.name].address
        case "stride":
            assert slot.axis is not None
            return tensors[slot.name].strides[slot.axis]
        case _:
            return values[slot.name]
