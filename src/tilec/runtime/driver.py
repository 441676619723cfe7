"""Where the runtime meets CUDA: devices, streams, arrays of other libraries, code, launches.

Over `cuda.core`; `cuda.bindings` for what it lacks (asking for a driver without side effects, the
current context, the limit of dynamic shared memory, the state of a capture) and for launches, where
it costs more. Every public function here first makes sure that there is a device (`NoDevice`
otherwise), or takes something that only a device can have given.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock

from cuda.bindings import driver as bindings
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    Device,
    Event,
    Kernel,
    ObjectCode,
    Stream,
)
from cuda.core.utils import StridedMemoryView

from tilec.artifact.manifest import Variant
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.cuda_driver import HostArray
from tilec.runtime.elements import element_of, numpy_dtype
from tilec.runtime.entry import Cells, Entry, Start
from tilec.runtime.errors import (
    ArchitectureError,
    ArtifactError,
    ContractError,
    LaunchError,
    NoDevice,
    TilecError,
)

_DLPACK_CPU = 1  # kDLCPU of dlpack.h

# Streams that every device has, of cuda.h. An address of 0 is one of the two, by what the process
# was set up for, so the legacy one is always asked for by name.
_LEGACY_STREAM = 1
_PER_THREAD_STREAM = 2

_SUCCESS = bindings.CUresult.CUDA_SUCCESS
_NO_CAPTURE = bindings.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
# What the legacy stream answers while a stream that waits for it is captured.
_CAPTURES = (bindings.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,)
_launch_kernel = bindings.cuLaunchKernel

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
    if status != _SUCCESS:
        raise NoDevice(f"there is no GPU: {status.name}")


def current_device() -> int:
    """The device of this thread's current context, else device 0, which becomes current."""
    require_device()
    status, device = bindings.cuCtxGetDevice()
    if status == _SUCCESS:
        return int(device)
    Device(0).set_current()
    return 0


@cache
def _device_count() -> int:
    require_device()
    status, count = bindings.cuDeviceGetCount()
    return int(count) if status == _SUCCESS else 1


@contextmanager
def made_current(device: int | None) -> Iterator[int]:
    """With a device current, or whichever is; the context that was is current again afterwards.

    cuda.core refuses to work with a device that it has not made current itself in this thread,
    even if another library did: so it does, each time. For its own contexts and those of the
    CUDA runtime (the primary ones) this changes nothing.
    """
    index = current_device() if device is None else device
    current_device()  # some context is there to come back to
    _, context = bindings.cuCtxGetCurrent()
    Device(index).set_current()
    try:
        yield index
    finally:
        bindings.cuCtxSetCurrent(context)


def stream_of(given: object) -> int:
    """The address of the stream that a caller means; 0 is the default stream.

    Takes streams of cuda.core, addresses, and what has `cuda_stream` (PyTorch) or
    `__cuda_stream__` (PyTorch, CuPy).
    """
    require_device()
    address = getattr(given, "cuda_stream", given)
    if isinstance(given, Stream) and getattr(given, "is_closed", False):
        raise TilecError(f"the stream {given!r} is closed")
    if hasattr(given, "__cuda_stream__"):
        address = given.__cuda_stream__()[1]
    if not isinstance(address, int):
        raise TilecError(f"expected a CUDA stream, got {given!r}")
    return address


def array_of(name: str, given: object, stream: int) -> Array:
    """What the tensor of any library is; `stream` waits for the work that makes its values."""
    require_device()
    try:
        view = StridedMemoryView.from_any_interface(given, stream_ptr=stream or _LEGACY_STREAM)
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
    if status != _SUCCESS:
        raise LaunchError(
            f"`{variant.symbol}` needs {smem_bytes} bytes of shared memory: {status.name}"
        )


def prepared(code: object, entry: Entry, cells: Cells) -> Start:
    """A function that launches an entry with what the cells hold when it is called.

    `cuLaunchKernel` itself, since the cells are made once: cuda.core converts each argument at each
    launch (benchmarks/launch_cost.py compares them). The kernel is one of a context-free library: a
    stream other than the default ones says by itself on which device it runs.

    Raises:   ArchitectureError, ArtifactError, LaunchError; the function LaunchError
    """
    assert isinstance(code, Code), "the code is what `loaded` gave"
    assert entry.grid is not None, "an empty grid is not launched"
    with made_current(entry.device) as device:
        kernel = code.kernel(entry.variant, device)
    base, count = cells.buffer_info()
    pointers = array("Q", [base + cells.itemsize * index for index in range(count)])
    parameters, _ = pointers.buffer_info()
    function = bindings.CUfunction(int(kernel.handle))
    x, y, z = entry.grid
    threads, smem_bytes = entry.variant.threads, entry.variant.dynamic_smem_bytes

    # The last parameter keeps alive what the driver only knows by address.
    def start(stream: int, _held: object = (kernel, cells, pointers)) -> None:
        queue = _QUEUES.get(stream) or _queue(stream)
        [status] = _launch_kernel(
            function, x, y, z, threads, 1, 1, smem_bytes, queue, parameters, 0
        )
        if status is not _SUCCESS:
            _give_context(entry, status)
            [status] = _launch_kernel(
                function, x, y, z, threads, 1, 1, smem_bytes, queue, parameters, 0
            )
            _check_launch(entry, status)

    if _device_count() == 1:
        return start

    def start_on_its_device(stream: int) -> None:
        if stream > _PER_THREAD_STREAM:
            _check_device(entry, stream)
            start(stream)
            return
        with made_current(entry.device) as device:
            code.kernel(entry.variant, device)
            start(stream)

    return start_on_its_device


def _give_context(entry: Entry, status: bindings.CUresult) -> None:
    """Gives this thread a context if that is what a launch lacked.

    Raises:   LaunchError if it has one
    """
    if bindings.cuCtxGetDevice()[0] == _SUCCESS:
        _check_launch(entry, status)
    Device(entry.device or 0).set_current()


def _check_launch(entry: Entry, status: bindings.CUresult) -> None:
    if status != _SUCCESS:
        raise LaunchError(f"`{entry.kernel.symbol}` was not launched: {_text_of(status)}")


def _check_device(entry: Entry, stream: int) -> None:
    """That a stream is one of the device that the tensors are on; for machines with several."""
    status, device = bindings.cuStreamGetDevice(_queue(stream))
    if status == _SUCCESS and entry.device not in (None, int(device)):
        raise ContractError(
            f"`{entry.kernel.symbol}`: the tensors are on device {entry.device}, "
            f"the stream on device {int(device)}"
        )


def _text_of(status: bindings.CUresult) -> str:
    answer, text = bindings.cuGetErrorString(status)
    return f"{status.name}: {text.decode()}" if answer == _SUCCESS else str(status.name)


# Streams as the driver takes them. These objects are numbers only, and may outlive their streams.
_QUEUES: dict[int, bindings.CUstream] = {}
_REMEMBERED_QUEUES = 256


def _queue(stream: int) -> bindings.CUstream:
    if len(_QUEUES) >= _REMEMBERED_QUEUES:
        _QUEUES.clear()
    return _QUEUES.setdefault(stream, bindings.CUstream(stream or _LEGACY_STREAM))


def finish(entry: Entry, stream: int) -> None:
    """Waits until the stream has done all that it was given."""
    if _device_count() == 1:
        [status] = bindings.cuStreamSynchronize(_queue(stream))
    else:
        with made_current(entry.device):
            [status] = bindings.cuStreamSynchronize(_queue(stream))
    if status != _SUCCESS:
        raise LaunchError(f"`{entry.kernel.symbol}` failed on the GPU: {_text_of(status)}")


def finish_device(entry: Entry) -> None:
    """Waits until nothing runs on a device; after a failure nothing does either."""
    with suppress(Exception), made_current(entry.device), _outside_capture():
        bindings.cuCtxSynchronize()


def recorded(entry: Entry, stream: int) -> Event | None:
    """An event that is done when the stream has done all that it was given so far.

    None while the stream is being captured into a graph: nothing runs, and an event would become
    part of the graph.
    """
    with made_current(entry.device), _outside_capture():
        status, capture = bindings.cuStreamIsCapturing(_queue(stream))
        if status in _CAPTURES or capture != _NO_CAPTURE:
            return None
        try:
            return _core_stream(stream).record()
        except Exception as error:
            raise LaunchError(f"`{entry.kernel.symbol}` failed on the GPU: {error}") from error


def is_over(event: Event) -> bool:
    """Whether what an event waits for is done; after a device error nothing runs any more."""
    with _outside_capture():
        try:
            return bool(event.is_done)
        except Exception:
            return True


@contextmanager
def _outside_capture() -> Iterator[None]:
    """Lets this thread ask for events while it captures another stream into a graph, which would
    otherwise spoil the graph."""
    relaxed = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    _, before = bindings.cuThreadExchangeStreamCaptureMode(relaxed)
    try:
        yield
    finally:
        bindings.cuThreadExchangeStreamCaptureMode(before)


def _core_stream(stream: int) -> Stream:
    if stream in (0, _LEGACY_STREAM):
        return LEGACY_DEFAULT_STREAM
    if stream == _PER_THREAD_STREAM:
        return PER_THREAD_DEFAULT_STREAM
    return Stream.from_handle(stream)


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
    if status != _SUCCESS:
        raise LaunchError(f"a copy between host and device failed: {status.name}")
