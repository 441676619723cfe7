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
        self.variants = _usable_variants(kernel, tensors)
        self.tensor_at = [i for i, p in enumerate(kernel.parameters) if p.is_tensor]
        self.pairs = [
            (self.tensor_at[i], self.tensor_at[j], tensors[i][1].span_bytes,
             tensors[j][1].span_bytes)
            for i, j in pairs_to_compare(tensors)
        ]  # fmt: skip
        self.fixed, self.moving = _packing(kernel, values, tensors)

    def launch(self, arguments: Sequence[Argument]) -> LaunchPlan:
        try:
            self._check_addresses(arguments)
            variant = self._variant(arguments)
            packed = self._packed(arguments)
        except ContractError as error:
            raise ContractError(f"`{self.kernel.symbol}`: {error}") from None
        return LaunchPlan(self.kernel, variant, self.device, self.grid, packed)

    def _check_addresses(self, arguments: Sequence[Argument]) -> None:
        parameters = self.kernel.parameters
        for index in self.tensor_at:
            check_alignment(parameters[index], cast(Array, arguments[index]))
        for i, j, i_bytes, j_bytes in self.pairs:
            one, other = cast(Array, arguments[i]), cast(Array, arguments[j])
            if one.pointer < other.pointer + j_bytes and other.pointer < one.pointer + i_bytes:
                check_overlap((parameters[i], one), (parameters[j], other))

    def _packed(self, arguments: Sequence[Argument]) -> tuple[object, ...]:
        packed = self.fixed.copy()
        for slot_index, index in self.moving:
            given, parameter = arguments[index], self.kernel.parameters[index]
            if parameter.is_tensor:
                packed[slot_index] = cast(Array, given).pointer
            else:
                packed[slot_index] = scalar_of(parameter.name, parameter.element, given).passed
        return tuple(packed)

    def _variant(self, arguments: Sequence[Argument]) -> Variant:
        for variant, alignments in self.variants:
            if all(cast(Array, arguments[i]).pointer % bytes_ == 0 for i, bytes_ in alignments):
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
) -> tuple[list[object], list[tuple[int, int]]]:
    """The slots as shapes alone give them, and for each other slot its argument's position.

    The slots are the same for every variant: manifests in which they differ are refused.
    """
    position = {p.name: i for i, p in enumerate(kernel.parameters)}
    arrays = {p.name: array for p, array in tensors}
    fixed: list[object] = []
    moving: list[tuple[int, int]] = []
    for index, slot in enumerate(kernel.variants[0].slots):
        if slot.kind == "extent":
            fixed.append(values[slot.name])
        elif slot.kind == "stride":
            assert slot.axis is not None, "a stride slot has an axis"
            fixed.append(_passed_stride(arrays[slot.name], slot.axis))
        else:
            fixed.append(None)
            moving.append((index, position[slot.name]))
    return fixed, moving


def _passed_stride(array: Array, axis: int) -> int:
    """A stride as the kernel gets it: 0 along an axis on which there is nothing to step to."""
    return array.strides[axis] if array.shape[axis] > 1 else 0


def _usable_variants(
    kernel: Kernel, tensors: Sequence[tuple[Parameter, Array]]
) -> list[tuple[Variant, list[tuple[int, int]]]]:
    """The variants that can take these strides, each with the alignment of arguments it needs."""
    position = {p.name: i for i, p in enumerate(kernel.parameters)}
    arrays = {p.name: array for p, array in tensors if not array.is_empty}
    return [
        (
            variant,
            [
                (position[p.param], p.base_alignment_bytes)
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
