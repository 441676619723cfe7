"""Arguments as they come: the address of each tensor, and all else of it as a key to look up."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilec.artifact.signature import Parameter
from tilec.runtime.array import Array, Imported
from tilec.runtime.elements import element_of
from tilec.runtime.errors import BorrowError, ContractError
from tilec.runtime.foreign import DEFAULT_STREAM, current_stream
from tilec.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tilec.runtime.cuda_driver import Driver


# The addresses of the tensors; a key, the same for arguments that differ in addresses, and in
# scalars that decide nothing, only; all bits that an address has set; the device of a tensor of
# PyTorch, -1 if there is none.
Read: TypeAlias = "tuple[list[int], tuple[object, ...], int, int]"


def read(
    given: Sequence[Any],
    tensor_at: Sequence[int],
    deciding_at: Sequence[int],
    several: bool = True,
) -> Read | None:
    """What the arguments are; None if some must be described first.

    `several` says that there may be several devices. The path of every launch, so written for
    speed: what PyTorch says of a tensor takes most of the time.
    """
    addresses: list[int] = []
    key: list[object] = []
    bits = 0
    torch_device = -1
    try:
        for index in tensor_at:
            tensor = given[index]
            kind = type(tensor)
            if kind is Tensor:
                address = tensor.pointer
                key.append(tensor.facts)
            elif kind is Array:
                address = tensor[0]
                key.append(tensor[1:])
            else:
                # One that is negated when it is read looks like another one in all else.
                if not tensor.is_cuda or tensor.is_neg():
                    return None
                address = tensor.data_ptr()
                key.append(tensor.dtype)
                key.append(tensor.shape)
                if not tensor.is_contiguous():  # else the strides follow, as far as they matter
                    key.append(tensor.stride())
                if several:
                    torch_device = tensor.get_device()
                    key.append(torch_device)
                else:
                    torch_device = 0
            addresses.append(address)
            bits |= address
    except (AttributeError, RuntimeError, TypeError):  # no tensor of PyTorch, or no address
        return None
    for index in deciding_at:
        argument = given[index]
        key.append(type(argument))
        key.append(argument)
    return addresses, tuple(key), bits, torch_device


def described(
    given: Sequence[Any],
    parameters: Sequence[Parameter],
    driver: Callable[[], Driver],
    stream: int,
    held: list[object] | None = None,
) -> list[object]:
    """The arguments with an `Array` for each tensor; `stream` waits for the values of those that
    come by a protocol, and what keeps their memory is added to `held`.

    Raises:   ContractError if a tensor is none
    """
    return [
        array_of(parameter.name, argument, driver, stream, held)
        if parameter.is_tensor
        else argument
        for parameter, argument in zip(parameters, given, strict=True)
    ]


def array_of(
    name: str,
    given: Any,
    driver: Callable[[], Driver],
    stream: int,
    held: list[object] | None = None,
) -> Array:
    """What a tensor is; if it comes by a protocol `stream` waits for its values, and what keeps its
    memory is added to `held`.

    Raises:   ContractError if it is none
    """
    if isinstance(given, Tensor):
        if given.is_freed:
            raise BorrowError(f"`{name}` was freed")
        return given.array
    if isinstance(given, Array):
        return _with_address(name, given)
    if _is_torch(given):
        return _with_address(name, _array_of_torch(name, given))
    found = driver().array_of(name, given, stream)
    if not isinstance(found, Imported):
        return found
    if held is not None:
        held.append(found.held)
    return Array(*found)


def _with_address(name: str, array: Array) -> Array:
    try:
        return array._replace(pointer=operator.index(array.pointer))
    except TypeError:
        raise ContractError(f"`{name}`: expected an address, got {array.pointer!r}") from None


def stream_for(given: Sequence[Any], tensor_at: Sequence[int]) -> int:
    """The stream that a caller who names none means."""
    for index in tensor_at:
        if _is_torch(given[index]):
            return current_stream(given[index].get_device())
    return DEFAULT_STREAM


def _is_torch(tensor: Any) -> bool:
    if getattr(tensor, "is_cuda", False) is not True:
        return False
    return all(hasattr(tensor, name) for name in ("data_ptr", "stride", "get_device"))


def _array_of_torch(name: str, tensor: Any) -> Array:
    element = element_of(tensor.dtype)
    if element is None:
        raise ContractError(f"`{name}`: no element type of kernels is `{tensor.dtype}`")
    # The imaginary part of a conjugate: what lies in memory has the other sign.
    if getattr(tensor, "is_neg", bool)():
        raise ContractError(f"`{name}` is negated when it is read: `resolve_neg()` gives a copy")
    try:
        return Array(
            tensor.data_ptr(),
            element,
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.get_device(),
        )
    except (RuntimeError, TypeError) as error:  # it is sparse, or stands for one in a trace
        raise ContractError(
            f"`{name}`: expected a tensor with memory and strides, "
            f"got {type(tensor).__name__}: {error}"
        ) from None
