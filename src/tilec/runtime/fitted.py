"""One instance of a kernel at one combination of shapes: what each launch adds is addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from tilec.artifact.abi import ELEMENT_BYTES, folded_grid
from tilec.artifact.expression import Value
from tilec.artifact.manifest import Kernel, Parameter, Precondition, Variant
from tilec.runtime.array import Array
from tilec.runtime.contract import (
    bound_dims,
    check_alignment,
    check_device,
    check_form,
    check_overlap,
    check_requires,
    pairs_to_compare,
    program_count,
)
from tilec.runtime.errors import ContractError
from tilec.runtime.scalars import scalar_of

Argument = object  # an `Array` for a tensor parameter, a number for a scalar one


class LaunchPlan(NamedTuple):
    """All that the driver needs; `grid` is None where there is no program to run.

    `arguments` are in the order of the variant's slots: addresses, strides and extents as `int`
    (64 bits), scalars as NumPy scalars of the slot's width.
    """

    kernel: Kernel
    variant: Variant
    device: int | None
    grid: tuple[int, int, int] | None
    arguments: tuple[object, ...]


class Fitted:
    """An instance whose contract holds for these shapes, but for what addresses decide.

    Assumes:  the element types, ranks and static extents are the instance's
    Raises:   ContractError, without the instance's name
    """

    def __init__(self, kernel: Kernel, arguments: Sequence[Argument]) -> None:
        tensors = _tensors(kernel, arguments)
        for parameter, array in tensors:
            check_form(parameter, array)
        check_device(tensors)
        values: dict[str, Value] = {
            p.name: scalar_of(p.name, p.element, given).value
            for p, given in zip(kernel.parameters, arguments, strict=True)
            if not p.is_tensor
        }
        values.update(bound_dims(tensors))
        check_requires(kernel.requires, values)
        count = program_count(kernel.grid, values)
        self.kernel = kernel
        self.device = tensors[0][1].device if tensors else None
        self.grid = folded_grid(count) if count else None
        # Tensors go by their number among the tensors from here on, scalars by their position.
        self.tensor_at = [i for i, p in enumerate(kernel.parameters) if p.is_tensor]
        self.element_bytes = [
            1 if array.is_empty else ELEMENT_BYTES[array.element] for _, array in tensors
        ]
        spans = [array.span_bytes for _, array in tensors]
        self.pairs = [(i, j, spans[i], spans[j]) for i, j in pairs_to_compare(tensors)]
        self.variants = _usable_variants(kernel, tensors)
        self.fixed, self.pointers, self.scalars = _packing(kernel, values, tensors)

    def launch(self, arguments: Sequence[Argument]) -> LaunchPlan:
        """The launch that arguments of these shapes give.

        Raises:   ContractError, with the instance's name
        """
        arrays = [cast(Array, arguments[i]) for i in self.tensor_at]
        addresses = [array[0] for array in arrays]
        try:
            self._check_addresses(addresses, arrays)
            variant = self._variant(addresses)
            packed = self.fixed.copy()
            for slot, number in self.pointers:
                packed[slot] = addresses[number]
            for slot, position, name, element in self.scalars:
                packed[slot] = scalar_of(name, element, arguments[position]).passed
        except ContractError as error:
            raise ContractError(f"`{self.kernel.symbol}`: {error}") from None
        return LaunchPlan(self.kernel, variant, self.device, self.grid, tuple(packed))

    def _check_addresses(self, addresses: Sequence[int], arrays: Sequence[Array]) -> None:
        for number, size in enumerate(self.element_bytes):
            if addresses[number] % size:
                check_alignment(self._parameter(number), arrays[number])
        for i, j, i_bytes, j_bytes in self.pairs:
            # Apart as a whole, which is the usual case and cheap to see.
            if addresses[i] >= addresses[j] + j_bytes or addresses[j] >= addresses[i] + i_bytes:
                continue
            check_overlap((self._parameter(i), arrays[i]), (self._parameter(j), arrays[j]))

    def _parameter(self, number: int) -> Parameter:
        return self.kernel.parameters[self.tensor_at[number]]

    def _variant(self, addresses: Sequence[int]) -> Variant:
        for variant, alignments in self.variants:
            for number, alignment in alignments:
                if addresses[number] % alignment:
                    break
            else:
                return variant
        raise ContractError(
            "the arguments meet the preconditions of no variant: "
            + "; ".join(_preconditions_text(v) for v in self.kernel.variants)
        )


def _tensors(kernel: Kernel, arguments: Sequence[Argument]) -> list[tuple[Parameter, Array]]:
    return [
        (parameter, cast(Array, given))
        for parameter, given in zip(kernel.parameters, arguments, strict=True)
        if parameter.is_tensor
    ]


def _packing(
    kernel: Kernel, values: Mapping[str, Value], tensors: Sequence[tuple[Parameter, Array]]
) -> tuple[list[object], list[tuple[int, int]], list[tuple[int, int, str, str]]]:
    """The slots as shapes alone give them; which slots are pointers, and of which tensor; which
    are scalars: of which position, name and element.

    The slots are the same for every variant: manifests in which they differ are refused.
    """
    number = {p.name: i for i, (p, _) in enumerate(tensors)}
    position = {p.name: i for i, p in enumerate(kernel.parameters)}
    fixed: list[object] = []
    pointers: list[tuple[int, int]] = []
    scalars: list[tuple[int, int, str, str]] = []
    for index, slot in enumerate(kernel.variants[0].slots):
        fixed.append(None)
        if slot.kind == "extent":
            fixed[index] = values[slot.name]
        elif slot.kind == "stride":
            assert slot.axis is not None, "a stride slot has an axis"
            fixed[index] = _passed_stride(tensors[number[slot.name]][1], slot.axis)
        elif slot.kind == "pointer":
            pointers.append((index, number[slot.name]))
        else:
            assert slot.element is not None, "a scalar slot has an element"
            scalars.append((index, position[slot.name], slot.name, slot.element))
    return fixed, pointers, scalars


def _passed_stride(array: Array, axis: int) -> int:
    """A stride as the kernel gets it: 0 along an axis on which there is nothing to step to."""
    return array.strides[axis] if array.shape[axis] > 1 else 0


def _usable_variants(
    kernel: Kernel, tensors: Sequence[tuple[Parameter, Array]]
) -> list[tuple[Variant, list[tuple[int, int]]]]:
    """The variants that can take these strides, each with the alignment of tensors it needs."""
    number = {p.name: i for i, (p, _) in enumerate(tensors)}
    arrays = {p.name: array for p, array in tensors if not array.is_empty}
    return [
        (
            variant,
            [
                (number[p.param], p.base_alignment_bytes)
                for p in variant.preconditions
                if p.param in arrays
            ],
        )
        for variant in kernel.variants
        if all(_strides_fit(p, arrays[p.param]) for p in variant.preconditions if p.param in arrays)
    ]


def _strides_fit(precondition: Precondition, array: Array) -> bool:
    size = ELEMENT_BYTES[array.element]
    return all(
        _passed_stride(array, axis) * size % precondition.stride_multiple_bytes == 0
        for axis in range(len(array.shape) - 1)
    )


def _preconditions_text(variant: Variant) -> str:
    asked = ", ".join(
        f"`{p.param}` at a multiple of {p.base_alignment_bytes} bytes, its strides of "
        f"{p.stride_multiple_bytes}"
        for p in variant.preconditions
    )
    return f"`{variant.symbol}` asks for {asked}"
