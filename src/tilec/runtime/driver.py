"""Where the runtime meets CUDA: devices, streams, arrays of other libraries, code, launches.

Over `cuda.core`; `cuda.bindings` for the three things that it lacks: asking for a driver without
side effects, the current device, and the limit of dynamic shared memory. Every public function
here first makes sure that there is a device (`NoDevice` otherwise).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from threading import Lock

from cuda.bindings import driver as bindings
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    Device,
    Event,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Stream,
    launch,
)
from cuda.core.utils import StridedMemoryView

from tilec.artifact.manifest import Variant
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.cuda_driver import HostArray
from tilec.runtime.elements import element_of, numpy_dtype
from tilec.runtime.errors import (
    ArchitectureError,
    ArtifactError,
    ContractError,
    LaunchError,
    NoDevice,
    TilecError,
)
from tilec.runtime.fitted import LaunchPlan

_DLPACK_CPU = 1  # kDLCPU of dlpack.h

# Above this, a kernel must ask for its dynamic shared memory (CUDA C++ Programming Guide,
# "Shared Memory", compute capability 7.x and later).
_SMEM_WITHOUT_ASKING = 48 * 1024


@cache
def require_device() -> None:
    """Makes sure that there is a driver and a device.

    Raises:   NoDevice. (A success is remembered, a failure is not. cuda.core is asked only after
              this: without a driver its second call may wait for ever.)
    """
    try:
        [status] = bindings.cuInit(0)
    except Exception as error:
        raise NoDevice(f"there is no CUDA driver: {error}") from None
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise NoDevice(f"there is no GPU: {status.name}")


def current_device() -> int:
    """The device of this thread's current context, else device 0, which becomes current."""
    require_device()
    status, device = bindings.cuCtxGetDevice()
    if status == bindings.CUresult.CUDA_SUCCESS:
        return int(device)
    Device(0).set_current()
    return 0


@contextmanager
def made_current(device: int | None) -> Iterator[int]:
    """With a device current, or whichever is; the one that was is current again afterwards."""
    before = current_device()
    if device is None or device == before:
        yield before
        return
    Device(device).set_current()
    try:
        yield device
    finally:
        Device(before).set_current()


def stream_of(given: object) -> Stream:
    """The stream that a caller means; the default stream if nothing is given.

    Takes streams of cuda.core, addresses, and what has `__cuda_stream__` (PyTorch, CuPy) or
    `cuda_stream` (older PyTorch).
    """
    require_device()
    if given is None:
        return LEGACY_DEFAULT_STREAM
    if isinstance(given, Stream):
        return given
    if hasattr(given, "__cuda_stream__"):
        address = given.__cuda_stream__()[1]
    else:
        address = getattr(given, "cuda_stream", given)
    if not isinstance(address, int):
        raise TilecError(f"expected a CUDA stream, got {given!r}")
    return Stream.from_handle(address) if address else LEGACY_DEFAULT_STREAM


def array_of(name: str, given: object, stream: Stream) -> Array:
    """What the tensor of any library is; `stream` waits for the work that makes its values."""
    try:
        view = StridedMemoryView.from_any_interface(given, stream_ptr=int(stream.handle))
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
    return Array(view.ptr, element, shape, strides, device, bool(view.readonly))


def _is_on_host(given: object) -> bool:
    try:
        return bool(given.__dlpack_device__()[0] == _DLPACK_CPU)  # type: ignore[attr-defined]
    except Exception:
        return False


def _host_memory(name: str) -> ContractError:
    return ContractError(
        f"`{name}` lies in host memory; `to_device` of tilec.runtime copies it to the GPU"
    )


def loaded(cubin: bytes, target: str, name: str) -> Code:
    """The code of a cubin; the driver sees it when a kernel of it is first launched."""
    return Code(cubin, target, name)


class Code:
    """The machine code of one cubin, loaded on each device when it is first launched there."""

    def __init__(self, cubin: bytes, target: str, name: str) -> None:
        self._cubin = cubin
        self._target = target
        self._name = name
        self._object: ObjectCode | None = None
        self._kernels: dict[tuple[str, int], Kernel] = {}
        self._lock = Lock()

    def kernel(self, variant: Variant, device: int) -> Kernel:
        """A variant's entry point, ready to launch on a device, which is current.

        Raises:   ArchitectureError, ArtifactError
        """
        known = self._kernels.get((variant.symbol, device))
        if known is not None:
            return known
        with self._lock:
            return self._kernels.setdefault((variant.symbol, device), self._loaded(variant, device))

    def _loaded(self, variant: Variant, device: int) -> Kernel:
        capability = Device(device).compute_capability
        if not runs_on(self._target, capability.major, capability.minor):
            raise ArchitectureError(
                f"{self._name} is built for {self._target}, device {device} "
                f"({Device(device).name}) is sm_{capability.major}{capability.minor}"
            )
        try:
            if self._object is None:
                self._object = ObjectCode.from_cubin(self._cubin, name=self._name)
            kernel = self._object.get_kernel(variant.symbol)
        except Exception as error:
            raise ArtifactError(
                f"{self._name}: the driver does not load `{variant.symbol}`: {error}"
            ) from error
        _allow_dynamic_smem(kernel, variant, device)
        return kernel


def runs_on(target: str, major: int, minor: int) -> bool:
    """Whether a cubin for a target such as `sm_80` or `sm_90a` runs on a compute capability.

    Plain targets run on later minor revisions of their major one, `f` targets too; `a` targets on
    exactly their own (CUDA C++ Programming Guide, "Compute Capability").
    """
    number = target.removeprefix("sm_").rstrip("af")
    if not number.isdigit():
        return False
    built_major, built_minor = int(number) // 10, int(number) % 10
    if target.endswith("a"):
        return (built_major, built_minor) == (major, minor)
    return built_major == major and built_minor <= minor


def _allow_dynamic_smem(kernel: Kernel, variant: Variant, device: int) -> None:
    smem_bytes = variant.static_smem_bytes + variant.dynamic_smem_bytes
    if not variant.dynamic_smem_bytes or smem_bytes <= _SMEM_WITHOUT_ASKING:
        return
    attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    [status] = bindings.cuKernelSetAttribute(
        attribute, variant.dynamic_smem_bytes, kernel.handle, bindings.CUdevice(device)
    )
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise LaunchError(
            f"`{variant.symbol}` needs {smem_bytes} bytes of shared memory: {status.name}"
        )


def start(code: object, plan: LaunchPlan, stream: Stream) -> None:
    """Launches what was planned; a plan without programs launches nothing."""
    assert isinstance(code, Code), "the code is what `loaded` gave"
    if plan.grid is None:
        return
    device = current_device()
    if plan.device not in (None, device):
        with made_current(plan.device):
            start(code, plan, stream)
        return
    kernel = code.kernel(plan.variant, device)
    config = _config(plan.grid, plan.variant.threads, plan.variant.dynamic_smem_bytes)
    try:
        launch(stream, config, kernel, *plan.arguments)
    except Exception as error:
        raise LaunchError(f"`{plan.kernel.symbol}` was not launched: {error}") from error


@lru_cache(maxsize=1024)
def _config(grid: tuple[int, int, int], threads: int, smem_bytes: int) -> LaunchConfig:
    return LaunchConfig(grid=grid, block=(threads, 1, 1), shmem_size=smem_bytes)


def finish(plan: LaunchPlan, stream: Stream) -> None:
    """Waits until the stream has done all that it was given."""
    with made_current(plan.device):
        try:
            stream.sync()
        except Exception as error:
            raise LaunchError(f"`{plan.kernel.symbol}` failed on the GPU: {error}") from error


def recorded(plan: LaunchPlan, stream: Stream) -> Event:
    """An event that is done when the stream has done all that it was given so far."""
    with made_current(plan.device):
        try:
            return stream.record()
        except Exception as error:
            raise LaunchError(f"`{plan.kernel.symbol}`: {error}") from error


def allocated(size_bytes: int, device: int) -> Buffer:
    """Memory of a device, for use on any stream; one byte at least, so that it has an address."""
    with made_current(device):
        buffer = Device(device).allocate(max(size_bytes, 1), stream=LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.sync()  # allocation is ordered on its own stream only
        return buffer


def exported(array: Array, memory: Buffer) -> StridedMemoryView:
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
            raise LaunchError(f"work on device {device} failed: {error}") from error
        [status] = bindings.cuMemcpyDtoH(host.ctypes.data, address, host.nbytes)
        _check_copy(status)


def _check_copy(status: bindings.CUresult) -> None:
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"a copy between host and device failed: {status.name}")
