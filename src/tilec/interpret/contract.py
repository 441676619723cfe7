"""What a launch must fulfil before the first program runs: types, ranks, equal extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir
from numpy.typing import DTypeLike

from tilec.artifact.abi import SPAN_LIMIT
from tilec.artifact.scalar_range import fault_of_scalar, rounded_to_bf16
from tilec.interpret.memory import Array


class BrokenContract(Exception):  # noqa: N818, a state of the launch, and no fault of ours
    """An argument or a claim of the program is not as the kernel says; `location` if it has one."""

    def __init__(self, message: str, location: ir.Location | None = None) -> None:
        super().__init__(message)
        self.location = location


DTYPES: dict[str, DTypeLike] = {
    "bool": np.bool_, "usize": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel; `extents` is None for a scalar, `own` where it says nothing."""

    name: str
    element: str
    extents: tuple[str | int, ...] | None
    own: str | None = None


def parameters_of(function: ir.OpView) -> tuple[Parameter, ...]:
    """The parameters as the function's `tile.parameters` lists them."""
    listed = ir.ArrayAttr(function.attributes["tile.parameters"])
    return tuple(_parameter(ir.DictAttr(entry)) for entry in listed)


def _parameter(entry: ir.DictAttr) -> Parameter:
    extents = None
    if "extents" in entry:
        extents = tuple(_extent(extent) for extent in ir.ArrayAttr(entry["extents"]))
    if "kind" in entry and ir.StringAttr(entry["kind"]).value == "scalar":
        extents = None
    name, element = (ir.StringAttr(entry[key]).value for key in ("name", "element"))
    own = ir.StringAttr(entry["own"]).value if "own" in entry else None
    return Parameter(name, element, extents, own)


def _extent(extent: ir.Attribute) -> str | int:
    return extent.value  # type: ignore[no-any-return]


def bind(
    parameters: tuple[Parameter, ...], arguments: Mapping[str, Any], whose: str = "kernel"
) -> tuple[dict[str, Array], dict[str, int]]:
    """The arguments as arrays (of rank 0 for scalars) and the extents that their shapes give.

    Raises:   BrokenContract for a missing or unknown name, a type, a rank, a stride, an extent
    """
    names = {parameter.name for parameter in parameters}
    if unknown := sorted(set(arguments) - names):
        raise BrokenContract(f"the {whose} has no parameter `{unknown[0]}`")
    arrays: dict[str, Array] = {}
    dims: dict[str, tuple[int, str]] = {}
    # What is wrong with an argument that is there may be why another one could not be made.
    for parameter in parameters:
        if parameter.name not in arguments:
            continue
        argument = arguments[parameter.name]
        if parameter.extents is None:
            arrays[parameter.name] = _scalar(parameter, argument)
            continue
        arrays[parameter.name] = _tensor(parameter, argument)
        _bind_extents(parameter, arrays[parameter.name], dims)
    missing = (parameter for parameter in parameters if parameter.name not in arrays)
    if (first := next(missing, None)) is not None:
        raise BrokenContract(f"no argument for `{first.name}`{_unsaid(first, dims)}")
    return arrays, {name: extent for name, (extent, _) in dims.items()}


def _unsaid(parameter: Parameter, dims: Mapping[str, object]) -> str:
    """Why a tensor could not be made of what others say: the first extent that they do not."""
    unsaid = [one for one in parameter.extents or () if isinstance(one, str) and one not in dims]
    return f", and no other tensor says its extent `{unsaid[0]}`" if unsaid else ""


def _scalar(parameter: Parameter, value: Any) -> Array:
    given = np.asarray(value)
    if given.ndim:
        raise BrokenContract(f"`{parameter.name}` is a scalar, got shape {given.shape}")
    fault = fault_of_scalar(parameter.element, given.item())
    if fault is not None:
        raise BrokenContract(f"`{parameter.name}`: {fault}")
    wanted = np.dtype(DTYPES[parameter.element])
    number = given.item()
    if wanted.kind not in "biu":  # rounded once: a float of Python first, as callers have it
        number = rounded_to_bf16(float(number)) if parameter.element == "bf16" else float(number)
    scalar = np.asarray(number).astype(wanted)
    return scalar.view(f"i{wanted.itemsize}") if wanted.kind == "u" else scalar


def _tensor(parameter: Parameter, array: Any) -> Array:
    name, wanted = parameter.name, np.dtype(DTYPES[parameter.element])
    assert parameter.extents is not None
    if not isinstance(array, np.ndarray):
        raise BrokenContract(f"`{name}` is a tensor, got {type(array).__name__}")
    if array.dtype != wanted:
        raise BrokenContract(f"`{name}` has elements `{parameter.element}`, got {array.dtype}")
    if array.ndim != len(parameter.extents):
        raise BrokenContract(f"`{name}` has rank {len(parameter.extents)}, got rank {array.ndim}")
    # NumPy gives empty arrays strides of its own.
    if array.size and array.ndim and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        raise BrokenContract(f"the last stride of `{name}` is 1, got {strides_of(array)[-1]}")
    if (span := _span_bytes(array)) > SPAN_LIMIT:
        raise BrokenContract(
            f"`{name}`: strides {strides_of(array)} spread the elements of shape {array.shape} "
            f"over {span} bytes, above the limit of {SPAN_LIMIT}"
        )
    return array


def _span_bytes(array: Array) -> int:
    """From the lowest byte of an element to past the highest."""
    if not array.size:
        return 0
    span: int = array.itemsize
    for extent, stride in zip(array.shape, array.strides, strict=True):
        span += abs(stride) * (extent - 1)
    return span


def strides_of(array: Array) -> tuple[int, ...]:
    """The strides of a tensor in elements."""
    return tuple(stride // array.itemsize for stride in array.strides)


def _bind_extents(parameter: Parameter, array: Array, dims: dict[str, tuple[int, str]]) -> None:
    assert parameter.extents is not None
    for axis, (extent, got) in enumerate(zip(parameter.extents, array.shape, strict=True)):
        place = f"axis {axis} of `{parameter.name}`"
        if isinstance(extent, int):
            if extent != got:
                raise BrokenContract(f"{place} has extent {extent}, got {got}")
            continue
        known, owner = dims.setdefault(extent, (got, place))
        if known != got:
            raise BrokenContract(f"{place} is `{extent}`, which is {known} by {owner}, got {got}")
