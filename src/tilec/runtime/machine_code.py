"""The machine code of a cubin on the devices of this machine, and launches of it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from threading import Lock

from cuda.bindings import driver as bindings
from cuda.core import Device, Kernel, ObjectCode

from tilec.artifact.architecture import runs_on
from tilec.artifact.geometry import ALONE
from tilec.artifact.manifest import Variant
from tilec.runtime.clusters import extended_launch
from tilec.runtime.devices import SUCCESS, current_device, device_count, made_current, text_of
from tilec.runtime.encoding import EncodedMap, encoded
from tilec.runtime.entry import Cells, Entry, MapSlot, Start
from tilec.runtime.errors import (
    ArchitectureError,
    ArtifactError,
    LaunchError,
    failure,
)
from tilec.runtime.streams import PER_THREAD_STREAM, QUEUES, check_device, queue_of

# Above this, a kernel must ask for its dynamic shared memory (CUDA C++ Programming Guide,
# "Shared Memory", compute capability 7.x and later).
_SMEM_WITHOUT_ASKING = 48 * 1024

_REMEMBERED_MAPS = 64  # addresses of each tensor of an entry, after which all are forgotten

_launch_kernel = bindings.cuLaunchKernel


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


def _allow_dynamic_smem(kernel: Kernel, variant: Variant, device: int) -> None:
    smem_bytes = variant.static_smem_bytes + variant.dynamic_smem_bytes
    if not variant.dynamic_smem_bytes or smem_bytes <= _SMEM_WITHOUT_ASKING:
        return
    attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    [status] = bindings.cuKernelSetAttribute(
        attribute, variant.dynamic_smem_bytes, kernel.handle, bindings.CUdevice(device)
    )
    if status != SUCCESS:
        raise LaunchError(
            f"`{variant.symbol}` needs {smem_bytes} bytes of shared memory: {status.name}"
        )


def prepared(code: object, entry: Entry, cells: Cells, early: bool = False) -> Start:
    """A function that launches an entry with what the cells hold when it is called.

    `early` is for a variant that `starts_early`: it may start while the kernel before it on its
    stream still runs, which it waits for itself.

    `cuLaunchKernel` itself, since the cells are made once: cuda.core converts each argument at each
    launch (benchmarks/launch_cost.py compares them). The kernel is one of a context-free library: a
    stream other than the default ones says by itself on which device it runs.

    Raises:   ArchitectureError, ArtifactError, LaunchError; the function LaunchError
    """
    assert isinstance(code, Code), "the code is what `loaded` gave"
    assert entry.grid is not None, "an empty grid is not launched"
    with made_current(entry.device) as device:
        kernel = code.kernel(entry.variant, device)
    pointers = _pointers(entry, cells)
    parameters, _ = pointers.buffer_info()
    function = bindings.CUfunction(int(kernel.handle))
    if entry.variant.cluster == ALONE and not early:
        start = _start_of(entry, function, parameters, held=(kernel, cells, pointers))
    else:
        with made_current(entry.device):
            launch = extended_launch(entry.grid, entry.variant, function, parameters, early)
        start = _start_by(entry, launch, held=(kernel, cells, pointers))
    if entry.maps:
        start = _with_maps(entry, cells, pointers, start)
    if device_count() == 1:
        return start

    # A default stream is that of the current device, which may be another.
    def start_on_its_device(stream: int) -> None:
        if stream > PER_THREAD_STREAM:
            check_device(entry, stream)
            start(stream)
            return
        if current_device() == entry.device:
            start(stream)
            return
        with made_current(entry.device) as device:
            code.kernel(entry.variant, device)
            start(stream)

    return start_on_its_device


def passed(entry: Entry, cells: Cells) -> tuple[array[int], object]:
    """Where each parameter lies, tensor maps made for the addresses in the cells; and what must be
    alive, with the cells, as long as this is used.

    Raises:   LaunchError if the driver refuses a map
    """
    pointers = _pointers(entry, cells)
    maps = [_map_at(entry, one, cells[one.pointer]) for one in entry.maps]
    for place, made in enumerate(maps, len(cells)):
        pointers[place] = made.place
    return pointers, maps


def _pointers(entry: Entry, cells: Cells) -> array[int]:
    """Where each parameter lies: in the cells, and behind them those of tensor maps, not made."""
    base, count = cells.buffer_info()
    pointers = array("Q", [base + cells.itemsize * index for index in range(count)])
    pointers.extend([0] * len(entry.maps))
    return pointers


def _start_of(entry: Entry, function: bindings.CUfunction, parameters: int, held: object) -> Start:
    """The path of almost every launch, so written for speed.

    `held` is what the driver only knows by address: the function keeps it alive.
    """
    assert entry.grid is not None, "an empty grid is not launched"
    x, y, z = entry.grid
    threads, smem_bytes = entry.variant.threads, entry.variant.dynamic_smem_bytes

    def start(stream: int, _held: object = held) -> None:
        queue = QUEUES.get(stream) or queue_of(stream)
        [status] = _launch_kernel(
            function, x, y, z, threads, 1, 1, smem_bytes, queue, parameters, 0
        )
        if status is not SUCCESS:
            _give_context(entry, status)
            [status] = _launch_kernel(
                function, x, y, z, threads, 1, 1, smem_bytes, queue, parameters, 0
            )
            _check_launch(entry, status)

    return start


def _start_by(
    entry: Entry, launch: Callable[[bindings.CUstream], bindings.CUresult], held: object
) -> Start:
    """As `_start_of`, by another function that launches on a stream."""

    def start(stream: int, _held: object = held) -> None:
        queue = QUEUES.get(stream) or queue_of(stream)
        status = launch(queue)
        if status is not SUCCESS:
            _give_context(entry, status)
            _check_launch(entry, launch(queue))

    return start


def _with_maps(entry: Entry, cells: Cells, pointers: array[int], start: Start) -> Start:
    """As `start`, with the tensor maps of the addresses in the cells behind the other parameters.

    A frame that is launched again with the same addresses has its maps already.
    """
    last = [0] * len(entry.maps)  # no tensor is at address 0
    held: list[EncodedMap | None] = [None] * len(entry.maps)  # alive while `pointers` has them
    places = list(enumerate(entry.maps, len(cells)))

    def start_with_maps(stream: int) -> None:
        for number, (place, one) in enumerate(places):
            address = cells[one.pointer]
            if address != last[number]:
                held[number] = found = _map_at(entry, one, address)
                pointers[place] = found.place
                last[number] = address
        start(stream)

    return start_with_maps


def _map_at(entry: Entry, one: MapSlot, address: int) -> EncodedMap:
    """The map of a tensor at an address, which is remembered. Two threads may both make it."""
    known = one.known.get(address)
    if known is None:
        known = encoded(one.told._replace(address=address), entry)
        if len(one.known) >= _REMEMBERED_MAPS:
            one.known.clear()
        one.known[address] = known
    assert isinstance(known, EncodedMap), "the driver makes maps itself"
    return known


def _give_context(entry: Entry, status: bindings.CUresult) -> None:
    """Gives this thread a context if that is what a launch lacked.

    Raises:   LaunchError if it has one
    """
    _, context = bindings.cuCtxGetCurrent()
    if int(context):
        _check_launch(entry, status)
    Device(entry.device or 0).set_current()


def _check_launch(entry: Entry, status: bindings.CUresult) -> None:
    if status != SUCCESS:
        raise failure(f"`{entry.kernel.symbol}` was not launched", text_of(status))
