"""One instance of a kernel at one combination of shapes: what each launch adds is addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple, cast

from tilec.artifact.abi import ADDRESS_END, ELEMENT_BYTES
from tilec.artifact.asked import asked
from tilec.artifact.expression import Value
from tilec.artifact.geometry import Grid, grid_of
from tilec.artifact.manifest import Kernel, Precondition, Variant
from tilec.artifact.signature import Parameter
from tilec.artifact.tensor_maps import MULTIPLE_BYTES
from tilec.runtime.array import Array
from tilec.runtime.borrows import Range, range_at
from tilec.runtime.contract import (
    bound_dims,
    check_address,
    check_device,
    check_form,
    check_overlap,
    check_requires,
    grid_extents,
    pairs_to_compare,
)
from tilec.runtime.entry import Entry, MapSlot
from tilec.runtime.errors import ContractError
from tilec.runtime.scalars import may_be_looked_up, scalar_of
from tilec.runtime.tiled_map import is_mappable, tiled_map

_REMEMBERED_ADDRESSES = 256  # combinations of addresses, after which all are forgotten
_REMEMBERED_SCALARS = 256  # numbers for each slot, after which all are forgotten

Argument = object  # an `Array` for a tensor parameter, a number for a scalar one

# How many multiprocessors a device has; None is the current device.
SmCount = Callable[[int | None], int]


class LaunchPlan(NamedTuple):
    """What a launch would be; `grid` is None where there is no program to run.

    `arguments` are in the order of the variant's slots: addresses, strides and extents as `int`
    (64 bits), scalars as NumPy scalars of the slot's width, tensor maps as `TiledMap`.
    """

    kernel: Kernel
    variant: Variant
    device: int | None
    grid: tuple[int, int, int] | None
    arguments: tuple[object, ...]


class ScalarSlot(NamedTuple):
    """A slot that a scalar argument fills, and the bits of the numbers that it has had."""

    slot: int
    position: int
    name: str
    element: str
    known: dict[object, int]

    def bits(self, given: object) -> int:
        """What the slot's cell holds for an argument.

        Raises:   ContractError if the argument is no number of the slot's type
        """
        key = (type(given), given)
        try:
            bits = self.known.get(key)
        except TypeError:  # what cannot be hashed is no number
            scalar_of(self.name, self.element, given)
            raise
        # 0.0 and -0.0 are one key and have different bits: zeros are not remembered.
        if bits is not None:
            return bits
        passed = scalar_of(self.name, self.element, given).passed
        bits = int.from_bytes(passed.tobytes(), "little")
        if bits and may_be_looked_up(given) and given:
            if len(self.known) >= _REMEMBERED_SCALARS:
                self.known.clear()
            self.known[key] = bits
        return bits


class Shapes:
    """What arguments of some shapes are to all instances that differ in what programs own.

    Assumes:  the element types, ranks and static extents are those of the kernel's parameters
    Raises:   ContractError, without the instance's name
    """

    __slots__ = (
        "arrays",
        "device",
        "fixed",
        "pairs",
        "parameters",
        "pointers",
        "scalars",
        "spans",
        "tensor_at",
        "tensors",
        "values",
    )

    def __init__(self, kernel: Kernel, arguments: Sequence[Argument]) -> None:
        self.tensors = _tensors(kernel, arguments)
        for parameter, array in self.tensors:
            check_form(parameter, array)
        check_device(self.tensors)
        self.values: dict[str, Value] = {
            p.name: scalar_of(p.name, p.element, given).value
            for p, given in zip(kernel.parameters, arguments, strict=True)
            if not p.is_tensor
        }
        self.values.update(bound_dims(self.tensors))
        self.device = self.tensors[0][1].device if self.tensors else None
        self.spans = [array.span_bytes for _, array in self.tensors]
        self.parameters = [parameter for parameter, _ in self.tensors]
        self.arrays = [array for _, array in self.tensors]
        self.tensor_at = [i for i, p in enumerate(kernel.parameters) if p.is_tensor]
        self.fixed, self.pointers, self.scalars = _packing(kernel, self.values, self.tensors)
        # Two tensors of which one is written, with the bytes that each spans.
        self.pairs = [
            (i, j, self.spans[i], self.spans[j]) for i, j in pairs_to_compare(self.tensors)
        ]


class Fitted:
    """An instance whose contract holds for these shapes, but for what addresses decide.

    The launcher looks an entry up in `entries` by the addresses, and asks `entry_for` where there
    is none. Tensors go by their number among the tensors, scalars by their position among the
    arguments.

    `extents` are those of the grid of programs.

    Raises:   ContractError, without the instance's name
    """

    __slots__ = (
        "_arrays",
        "_parameters",
        "_ranges",
        "_tensor_at",
        "_touched",
        "_values",
        "_variants",
        "entries",
        "extents",
        "first",
        "kernel",
        "last_address",
        "low_bits",
        "pairs",
        "pointers",
        "scalars",
    )

    def __init__(self, kernel: Kernel, shapes: Shapes, sm_count: SmCount) -> None:
        check_requires(kernel.requires, shapes.values)
        extents = grid_extents(kernel.grid, shapes.values)
        device = shapes.device
        self.kernel = kernel
        self.extents = extents
        self._values = shapes.values
        self._parameters = shapes.parameters
        self._tensor_at = shapes.tensor_at
        self._arrays = shapes.arrays
        self._ranges: dict[tuple[int, ...], list[Range]] = {}
        self._touched = [
            (i, span, parameter.own, parameter.name, array)
            for i, (span, (parameter, array)) in enumerate(
                zip(shapes.spans, shapes.tensors, strict=True)
            )
            if span
        ]
        self.pointers, self.scalars = shapes.pointers, shapes.scalars
        borrowed = sum(shapes.spans)
        self._variants = [
            (
                Entry(kernel, variant, device, grid, shapes.fixed, borrowed, self._maps(variant)),
                alignments,
            )
            for variant, alignments in _usable_variants(kernel, shapes.tensors)
            for grid in _grids(variant, extents, lambda: sm_count(device))
        ]
        self.entries: dict[tuple[int, ...], Entry] = {}
        self.pairs = shapes.pairs  # of tensors that may overlap, with the bytes that each spans
        # The entry to launch if no address is null or has any of these bits.
        self.first = self._variants[0][0] if self._variants else None
        self.low_bits = self._bits_of_alignments()
        self.last_address = ADDRESS_END - (max(shapes.spans, default=1) or 1)

    def plan(self, arguments: Sequence[Argument]) -> LaunchPlan:
        """The launch that arguments of these shapes give.

        Raises:   ContractError, with the instance's name
        """
        addresses = [cast(Array, arguments[i]).pointer for i in self._tensor_at]
        entry = self.entry_at(addresses)
        packed: list[object] = list(entry.fixed)
        for slot, number in self.pointers:
            packed[slot] = addresses[number]
        for scalar in self.scalars:
            try:
                given = scalar_of(scalar.name, scalar.element, arguments[scalar.position])
            except ContractError as error:
                raise self.refusal(error) from None
            packed[scalar.slot] = given.passed
        tensor = dict(self.pointers)
        packed += [one.told._replace(address=addresses[tensor[one.pointer]]) for one in entry.maps]
        return LaunchPlan(self.kernel, entry.variant, entry.device, entry.grid, tuple(packed))

    def entry_for(self, addresses: Sequence[int], bits: int) -> Entry:
        """As `entry_at`, by short tests where they suffice; `bits` are all that an address has set.

        Raises:   ContractError, with the instance's name
        """
        entry = self.first
        # No address is above all their bits; those of addresses below 0 are below 0.
        is_far = not 0 <= bits <= self.last_address
        if bits & self.low_bits or is_far or not all(addresses) or entry is None:
            return self.entry_at(addresses)
        for i, j, i_bytes, j_bytes in self.pairs:
            one, other = addresses[i], addresses[j]
            if one < other + j_bytes and other < one + i_bytes:  # they may still interleave
                return self.entry_at(addresses)
        self._remember(addresses, entry)
        return entry

    def entry_at(self, addresses: Sequence[int]) -> Entry:
        """The first variant whose preconditions tensors at these addresses meet.

        Addresses decide it alone, so what was found for some is remembered.

        Raises:   ContractError, with the instance's name
        """
        known = self.entries.get(tuple(addresses))
        if known is not None:
            return known
        arrays = [
            array._replace(pointer=address)
            for array, address in zip(self._arrays, addresses, strict=True)
        ]
        try:
            for parameter, array in zip(self._parameters, arrays, strict=True):
                check_address(parameter, array)
            for i, j, _, _ in self.pairs:
                check_overlap((self._parameters[i], arrays[i]), (self._parameters[j], arrays[j]))
            entry = self._aligned_entry(addresses)
        except ContractError as error:
            raise self.refusal(error) from None
        self._remember(addresses, entry)
        return entry

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.kernel.symbol

    def touches(self, addresses: Sequence[int]) -> list[Range]:
        """The bytes that a launch reads and writes, of tensors at these addresses."""
        at = tuple(addresses)
        known = self._ranges.get(at)
        if known is None:
            if len(self._ranges) >= _REMEMBERED_ADDRESSES:
                self._ranges.clear()
            known = self._ranges[at] = [
                range_at(addresses[i], span, own, name, array)
                for i, span, own, name, array in self._touched
            ]
        return known

    def cycles(self, multiprocessors: int) -> int | None:
        """What the model of families says that a launch takes; None if it says nothing."""
        if self.first is None or not self.first.variant.cost.parts:
            return None
        cost = self.first.variant.cost
        return cost.cycles(prod(self.extents), self._values, multiprocessors)

    def shape(self, dims: Sequence[str]) -> tuple[int, ...]:
        """The extents of these `Dim`s."""
        return tuple(int(self._values[dim]) for dim in dims)

    def refusal(self, error: ContractError) -> ContractError:
        """What went wrong, with the instance's name."""
        return ContractError(f"`{self.kernel.symbol}`: {error}")

    def _remember(self, addresses: Sequence[int], entry: Entry) -> None:
        if len(self.entries) >= _REMEMBERED_ADDRESSES:
            self.entries.clear()
        self.entries[tuple(addresses)] = entry

    def _aligned_entry(self, addresses: Sequence[int]) -> Entry:
        for entry, alignments in self._variants:
            if not any(addresses[number] % alignment for number, alignment in alignments):
                return entry
        raise ContractError(
            "the arguments meet the preconditions of no variant: "
            + "; ".join(_preconditions_text(v) for v in self.kernel.variants)
        )

    def _maps(self, variant: Variant) -> list[MapSlot]:
        """The tensor maps of a usable variant, by the cells that hold their tensors' addresses."""
        number = {parameter.name: i for i, parameter in enumerate(self._parameters)}
        cell = {tensor: slot for slot, tensor in self.pointers}
        return [
            MapSlot(cell[number[one.param]], tiled_map(one, self._arrays[number[one.param]]), {})
            for one in variant.tensor_maps
        ]

    def _bits_of_alignments(self) -> int:
        """The address bits that neither elements nor the first variant want set.

        All bits where that cannot be said by bits: `entry_at` decides then.
        """
        if not self._variants:
            return -1
        wanted = [ELEMENT_BYTES[array.element] for array in self._arrays]
        wanted += [alignment for _, alignment in self._variants[0][1]]
        bits = max(wanted, default=1) - 1
        return bits if all(n & (n - 1) == 0 for n in wanted) else -1


def _tensors(kernel: Kernel, arguments: Sequence[Argument]) -> list[tuple[Parameter, Array]]:
    return [
        (parameter, cast(Array, given))
        for parameter, given in zip(kernel.parameters, arguments, strict=True)
        if parameter.is_tensor
    ]


def _packing(
    kernel: Kernel, values: Mapping[str, Value], tensors: Sequence[tuple[Parameter, Array]]
) -> tuple[list[int], list[tuple[int, int]], list[ScalarSlot]]:
    """The slots as shapes alone give them, 0 in the others; which slots are pointers, and of which
    tensor; which are scalars.

    The slots are the same for every variant, but for the tensor maps at their end: manifests in
    which they differ are refused.
    """
    number = {p.name: i for i, (p, _) in enumerate(tensors)}
    position = {p.name: i for i, p in enumerate(kernel.parameters)}
    fixed: list[int] = []
    pointers: list[tuple[int, int]] = []
    scalars: list[ScalarSlot] = []
    for index, slot in enumerate(kernel.variants[0].slots):
        if slot.kind == "tensor_map":
            break
        fixed.append(0)
        if slot.kind == "extent":
            fixed[index] = int(values[slot.name])
        elif slot.kind == "stride":
            assert slot.axis is not None, "a stride slot has an axis"
            fixed[index] = _passed_stride(tensors[number[slot.name]][1], slot.axis)
        elif slot.kind == "pointer":
            pointers.append((index, number[slot.name]))
        else:
            assert slot.element is not None, "a scalar slot has an element"
            scalars.append(ScalarSlot(index, position[slot.name], slot.name, slot.element, {}))
    return fixed, pointers, scalars


def _passed_stride(array: Array, axis: int) -> int:
    """A stride as the kernel gets it: 0 along an axis on which there is nothing to step to."""
    return array.strides[axis] if array.shape[axis] > 1 else 0


def _usable_variants(
    kernel: Kernel, tensors: Sequence[tuple[Parameter, Array]]
) -> list[tuple[Variant, list[tuple[int, int]]]]:
    """The variants that can take these shapes, each with the alignment of tensors it needs."""
    number = {p.name: i for i, (p, _) in enumerate(tensors)}
    arrays = {p.name: array for p, array in tensors if not array.is_empty}
    return [
        (variant, [(number[p], alignment) for p, alignment in _alignments(variant, arrays)])
        for variant in kernel.variants
        if all(_strides_fit(p, arrays[p.param]) for p in variant.preconditions if p.param in arrays)
        and all(m.param in arrays and is_mappable(m, arrays[m.param]) for m in variant.tensor_maps)
        and all(
            tensors[number[p.param]][1].shape[-1] % p.row_multiple == 0
            for p in variant.preconditions
            if p.row_multiple > 1
        )
    ]


def _alignments(variant: Variant, arrays: Mapping[str, Array]) -> Iterator[tuple[str, int]]:
    """What a variant asks of the addresses of tensors that have elements, in bytes."""
    for p in variant.preconditions:
        if p.param in arrays:
            yield p.param, p.base_alignment_bytes
    yield from ((one.param, MULTIPLE_BYTES) for one in variant.tensor_maps)


def _grids(
    variant: Variant, extents: tuple[int, ...], sm_count: Callable[[], int]
) -> Iterator[Grid | None]:
    """The grid of a variant, None without programs; nothing if the hardware has no such grid."""
    if not all(extents):
        yield None
        return
    grid = grid_of(variant, extents, sm_count)
    if grid is not None:
        yield grid


def _strides_fit(precondition: Precondition, array: Array) -> bool:
    size = ELEMENT_BYTES[array.element]
    return all(
        _passed_stride(array, axis) * size % precondition.stride_multiple_bytes == 0
        for axis in range(len(array.shape) - 1)
    )


def _preconditions_text(variant: Variant) -> str:
    wanted = [asked(p) for p in variant.preconditions]
    wanted += [f"a tensor map of `{one.param}`" for one in variant.tensor_maps]
    return f"`{variant.symbol}` asks for {', '.join(wanted)}"
