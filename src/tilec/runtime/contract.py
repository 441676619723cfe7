"""The contract of a kernel, as checks on plain descriptions of its arguments.

Each check raises ContractError with the argument's name and both values, and says nothing of which
kernel it was: the planner does. What depends on addresses (`check_address`, `check_overlap`) is
apart from the rest, which the planner does once for each combination of shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from tilec.artifact.abi import ADDRESS_END, COUNT_LIMIT, ELEMENT_BYTES, ELEMENT_LIMIT, SPAN_LIMIT
from tilec.artifact.expression import (
    Expression,
    TooLarge,
    Value,
    evaluate,
    holds,
    text_of,
    too_large,
    values_in,
)
from tilec.artifact.signature import Parameter, Requirement
from tilec.runtime.array import ADDRESS_BITS, Array
from tilec.runtime.errors import ContractError
from tilec.runtime.overlap import may_overlap, overlaps_itself

# `usize` is a 64-bit number, which other libraries know under these names.
_SAME_ELEMENT = {"usize": ("usize", "i64", "u64")}

Tensors = Sequence[tuple[Parameter, Array]]


def check_type(parameter: Parameter, array: Array) -> None:
    """That the element type, the rank and the static extents are the parameter's."""
    name = parameter.name
    if array.element not in _SAME_ELEMENT.get(parameter.element, (parameter.element,)):
        raise ContractError(
            f"`{name}`: expected elements of type `{parameter.element}`, got `{array.element}`"
        )
    if len(array.shape) != parameter.rank:
        raise ContractError(
            f"`{name}`: expected {parameter.rank} axes, got {len(array.shape)} "
            f"(shape {array.shape})"
        )
    for axis, (expected, got) in enumerate(zip(parameter.extents, array.shape, strict=True)):
        if isinstance(expected, int) and expected != got:
            raise ContractError(f"`{name}`: expected extent {expected} of axis {axis}, got {got}")


def check_form(parameter: Parameter, array: Array) -> None:
    """That a tensor's extents and strides are such as kernels take, and as ownership asks."""
    name = parameter.name
    for axis, extent in enumerate(array.shape):
        if extent < 0:
            raise ContractError(f"`{name}`: extent {extent} of axis {axis} is negative")
        if extent > COUNT_LIMIT:
            raise ContractError(
                f"`{name}`: extent {extent} of axis {axis} is above the limit of {COUNT_LIMIT}"
            )
    count = prod(max(extent, 1) for extent in array.shape)
    if count > ELEMENT_LIMIT:
        raise ContractError(
            f"`{name}`: shape {array.shape} has more elements than the limit of {ELEMENT_LIMIT}"
        )
    if parameter.is_written and array.read_only:
        raise ContractError(f"`{name}` is written, and the tensor given is read-only")
    if array.is_empty:
        return
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        if extent > 1 and stride < 0:
            raise ContractError(f"`{name}`: stride {stride} of axis {axis} is negative")
    if array.shape and array.shape[-1] > 1 and array.strides[-1] != 1:
        raise ContractError(
            f"`{name}`: expected stride 1 of the last axis, got {array.strides[-1]}"
        )
    check_span(name, array)
    if parameter.is_written and overlaps_itself(array):
        raise ContractError(
            f"`{name}` is written, and its strides {array.strides} put several of its elements "
            f"at one place (shape {array.shape})"
        )


def check_span(name: str, array: Array) -> None:
    """That offsets within a tensor, whose strides are not negative, have 64 bits."""
    if array.span_bytes > SPAN_LIMIT:
        raise ContractError(
            f"`{name}`: strides {array.strides} spread the elements of shape {array.shape} over "
            f"{array.span_bytes} bytes, above the limit of {SPAN_LIMIT}"
        )


def check_device(tensors: Tensors) -> None:
    """That all tensors lie on one device."""
    if not tensors:
        return
    first, array = tensors[0]
    for parameter, other in tensors:
        if other.device != array.device:
            raise ContractError(
                f"`{parameter.name}` is on device {other.device}, "
                f"`{first.name}` on device {array.device}"
            )


def bound_dims(tensors: Tensors) -> dict[str, int]:
    """What each `Dim` is; every tensor that names it agrees."""
    dims: dict[str, tuple[int, str, int]] = {}
    for parameter, array in tensors:
        for axis, (dim, extent) in enumerate(zip(parameter.extents, array.shape, strict=True)):
            if not isinstance(dim, str):
                continue
            bound, owner, owner_axis = dims.setdefault(dim, (extent, parameter.name, axis))
            if bound != extent:
                raise ContractError(
                    f"`{parameter.name}`: expected extent {bound} of axis {axis} "
                    f"(`{dim}`, as axis {owner_axis} of `{owner}`), got {extent}"
                )
    return {dim: extent for dim, (extent, _, _) in dims.items()}


def check_requires(requires: Iterable[Requirement], values: Mapping[str, Value]) -> None:
    """That every `requires!` holds."""
    for requirement in requires:
        if not holds(requirement.expression, values):
            built = text_of(requirement.expression)
            here = "" if built == requirement.text else f" (here `{built}`)"
            raise ContractError(
                f"`requires!({requirement.text})`{here} does not hold"
                f"{values_in(requirement.expression, values)}"
            )


def grid_extents(grid: Iterable[Expression], values: Mapping[str, Value]) -> tuple[int, ...]:
    """The extents of a grid: none is negative, and there are not too many programs."""
    extents = []
    for axis, expression in enumerate(grid):
        extent = int(computed(expression, values))
        if not 0 <= extent <= COUNT_LIMIT:
            limit = f", above the limit of {COUNT_LIMIT}" if extent > 0 else ""
            raise ContractError(
                f"grid extent {axis}, `{text_of(expression)}`, is {extent}{limit}"
                f"{values_in(expression, values)}"
            )
        extents.append(extent)
    count = prod(extents)
    if count > COUNT_LIMIT:
        raise ContractError(f"the grid has {count} programs, above the limit of {COUNT_LIMIT}")
    return tuple(extents)


def check_address(parameter: Parameter, array: Array) -> None:
    """That a tensor has memory, begins at a multiple of its element's size, and ends before
    addresses do."""
    if array.pointer >> ADDRESS_BITS:
        raise ContractError(
            f"`{parameter.name}`: expected an address of {ADDRESS_BITS} bits, "
            f"got {array.pointer:#x}"
        )
    if array.is_empty:
        return
    if not array.pointer:
        raise ContractError(f"`{parameter.name}` has no memory: its address is 0 (was it freed?)")
    size = ELEMENT_BYTES[array.element]
    if array.pointer % size:
        raise ContractError(
            f"`{parameter.name}`: expected an address that is a multiple of {size} bytes, "
            f"got {array.pointer:#x}"
        )
    if array.pointer + array.span_bytes > ADDRESS_END:
        raise ContractError(
            f"`{parameter.name}`: {array.span_bytes} bytes from address {array.pointer:#x} on "
            "pass the end of the address space"
        )


def pairs_to_compare(tensors: Tensors) -> list[tuple[int, int]]:
    """Positions of two tensors of which at least one is written, each pair once."""
    return [
        (i, j)
        for j, (other, other_array) in enumerate(tensors)
        for i, (parameter, array) in enumerate(tensors[:j])
        if (parameter.is_written or other.is_written)
        and not (array.is_empty or other_array.is_empty)
    ]


def check_overlap(one: tuple[Parameter, Array], other: tuple[Parameter, Array]) -> None:
    """That two tensors, one of which is written, share no byte."""
    (parameter, array), (other_parameter, other_array) = one, other
    if not may_overlap(array, other_array):
        return
    if not parameter.is_written:
        (parameter, array), (other_parameter, other_array) = other, one
    raise ContractError(
        f"`{parameter.name}` is written and overlaps `{other_parameter.name}`: "
        f"{_extent_of(array)} and {_extent_of(other_array)}"
    )


def _extent_of(array: Array) -> str:
    end = array.pointer + array.span_bytes
    return f"bytes {array.pointer:#x} to {end:#x} (shape {array.shape}, strides {array.strides})"


def computed(expression: Expression, values: Mapping[str, Value]) -> Value:
    """A number that a launch is given, or is of. Raises ContractError if it is too large."""
    try:
        return evaluate(expression, values)
    except TooLarge:
        raise ContractError(too_large(expression, values)) from None
