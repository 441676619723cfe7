"""Where the runtime meets CUDA: what `Driver` asks for, over the modules that it is imported from.

Over `cuda.core`; `cuda.bindings` for what it lacks (asking for a driver without side effects, the
current context, the limit of dynamic shared memory, the state of a capture) and for launches, where
it costs more. Every function here first makes sure that there is a device (`NoDevice` otherwise),
or takes something that only a device can have given.
"""

from __future__ import annotations

from cuda.bindings import driver as bindings
from cuda.core import LEGACY_DEFAULT_STREAM, Buffer, Device
from cuda.core.utils import StridedMemoryView

from tilec.runtime.array import Array, Imported, contiguous_strides
from tilec.runtime.cuda_driver import HostArray
from tilec.runtime.devices import (
    SUCCESS,
    capability,
    card,
    current_device,
    device_count,
    made_current,
    require_device,
    sm_count,
)
from tilec.runtime.elements import element_of, numpy_dtype
from tilec.runtime.errors import ContractError, failure
from tilec.runtime.graph_nodes import built_graph
from tilec.runtime.machine_code import loaded
from tilec.runtime.starting import prepared
from tilec.runtime.stream_memory import (
    free_stream_memory,
    made_event,
    record,
    side_streams,
    stream_memory,
    wait_for,
)
from tilec.runtime.streams import (
    LEGACY_STREAM,
    device_of,
    finish,
    finish_device,
    is_captured,
    is_over,
    order,
    recorded,
    stream_of,
    tail,
    waits_for_legacy,
)

__all__ = [
    "allocated",
    "array_of",
    "built_graph",
    "capability",
    "card",
    "copy_to_device",
    "copy_to_host",
    "current_device",
    "device_count",
    "device_of",
    "exported",
    "finish",
    "finish_device",
    "free_stream_memory",
    "is_captured",
    "is_over",
    "loaded",
    "made_event",
    "order",
    "prepared",
    "record",
    "recorded",
    "side_streams",
    "sm_count",
    "stream_memory",
    "stream_of",
    "tail",
    "wait_for",
    "waits_for_legacy",
]

_DLPACK_CPU = 1  # kDLCPU of dlpack.h


def array_of(name: str, given: object, stream: int) -> Array:
    """What the tensor of any library is; `stream` waits for the work that makes its values."""
    require_device()
    try:
        view = StridedMemoryView.from_any_interface(given, stream_ptr=stream or LEGACY_STREAM)
    except Exception as error:
        if _is_on_host(given):
            raise _host_memory(name) from None
        raise ContractError(
            f"`{name}`: expected a tensor (DLPack or `__cuda_array_interface__`), "
            f"got {type(given).__name__}: {error}"
        ) from None
    if not view.is_device_accessible:
        raise _host_memory(name)
    # The library's own dtype first: NumPy's, which the view asks for, may not have bf16.
    dtype = getattr(given, "dtype", None)
    element = element_of(view.dtype if dtype is None else dtype)
    if element is None:
        raise ContractError(f"`{name}`: no element type of kernels is `{dtype}`")
    shape = tuple(view.shape)
    strides = contiguous_strides(shape) if view.strides is None else tuple(view.strides)
    device = current_device() if view.device_id < 0 else view.device_id
    array = Imported(view.ptr, element, shape, strides, device, bool(view.readonly))
    array.held = view  # at its end the other library may do with the memory what it likes
    return array


def _is_on_host(given: object) -> bool:
    try:
        return bool(given.__dlpack_device__()[0] == _DLPACK_CPU)  # type: ignore[attr-defined]
    except Exception:
        return False


def _host_memory(name: str) -> ContractError:
    return ContractError(
        f"`{name}` lies in host memory; `to_device` of tilec.runtime copies it to the GPU"
    )


def allocated(size_bytes: int, device: int) -> Buffer:
    """Memory of a device, for use on any stream; one byte at least, so that it has an address."""
    with made_current(device):
        buffer = Device(device).allocate(max(size_bytes, 1), stream=LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.sync()  # allocation is ordered on its own stream only
        return buffer


def exported(array: Array, memory: object) -> StridedMemoryView:
    """A tensor as other libraries import it; `memory` lives as long as they need it."""
    require_device()
    buffer = Buffer.from_handle(array.pointer, array.span_bytes, owner=memory)
    return StridedMemoryView.from_buffer(
        buffer, array.shape, array.strides, dtype=numpy_dtype(array.element)
    )


def copy_to_device(address: int, host: HostArray, device: int) -> None:
    """Copies a dense host array, and waits until that is done."""
    with made_current(device):
        [status] = bindings.cuMemcpyHtoD(address, host.ctypes.data, host.nbytes)
        _check_copy(status)
        # From pageable memory the call returns when the values are staged, not when they are there.
        LEGACY_DEFAULT_STREAM.sync()


def copy_to_host(host: HostArray, address: int, device: int) -> None:
    """Fills a dense host array, after all that the device was given to do."""
    with made_current(device):
        try:
            Device(device).sync()
        except Exception as error:
            raise failure(f"work on device {device} failed", error) from error
        [status] = bindings.cuMemcpyDtoH(host.ctypes.data, address, host.nbytes)
        _check_copy(status)


def _check_copy(status: bindings.CUresult) -> None:
    if status != SUCCESS:
        raise failure("a copy between host and device failed", status.name)
