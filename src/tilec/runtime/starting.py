"""Functions that launch what a frame's cells hold: one for each frame, made once.

They call `cuLaunchKernel` themselves, since the cells are made once: cuda.core converts each
argument at each launch (benchmarks/launch_cost.py compares them). Where the C path was built they
are its own (hot_path.c), and cost half a microsecond less.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import NamedTuple

from cuda.bindings import driver as bindings
from cuda.core import Device, Kernel

from tilec.artifact.geometry import ALONE
from tilec.runtime import native
from tilec.runtime.clusters import configuration, extended_launch
from tilec.runtime.devices import (
    SUCCESS,
    address_of,
    current_device,
    device_count,
    made_current,
    require_device,
    text_of,
)
from tilec.runtime.encoding import EncodedMap, encoded
from tilec.runtime.entry import Cells, Entry, MapSlot, Start
from tilec.runtime.errors import failure
from tilec.runtime.machine_code import Code
from tilec.runtime.streams import PER_THREAD_STREAM, QUEUES, check_device, queue_of

_REMEMBERED_MAPS = 64  # addresses of each tensor of an entry, after which all are forgotten

_launch_kernel = bindings.cuLaunchKernel
# Functions of the driver, and the CUDA that had them first as they are called here.
_LAUNCH = "cuLaunchKernel", 4000
_LAUNCH_EXTENDED = "cuLaunchKernelEx", 11060
_DEVICE_OF_STREAM = "cuStreamGetDevice", 12080
_CURRENT_DEVICE = "cuCtxGetDevice", 2000


class _Frame(NamedTuple):
    """What a launch is told, and what the driver knows of it by address only.

    `pointers` say where each parameter lies: in the cells, and behind them tensor maps. With a
    `config` it is launched by `cuLaunchKernelEx`.
    """

    code: Code
    entry: Entry
    kernel: Kernel
    cells: Cells
    pointers: array[int]
    config: bindings.CUlaunchConfig | None

    @property
    def parameters(self) -> int:
        """The address of `pointers`."""
        address, _ = self.pointers.buffer_info()
        return address

    @property
    def function(self) -> int:
        return int(self.kernel.handle)


def prepared(code: object, entry: Entry, cells: Cells, early: bool = False) -> Start:
    """A function that launches an entry with what the cells hold when it is called.

    `early` is for a variant that `starts_early`: it may start while the kernel before it on its
    stream still runs, which it waits for itself.

    The kernel is one of a context-free library: a stream other than the default ones says by itself
    on which device it runs.

    Raises:   ArchitectureError, ArtifactError, LaunchError; the function LaunchError, and
              ContractError of a stream of another device
    """
    assert isinstance(code, Code), "the code is what `loaded` gave"
    assert entry.grid is not None, "an empty grid is not launched"
    with made_current(entry.device) as device:
        kernel = code.kernel(entry.variant, device)
        config = None
        if entry.variant.cluster != ALONE or early:
            function = bindings.CUfunction(int(kernel.handle))
            config = configuration(entry.grid, entry.variant, function, early)
    frame = _Frame(code, entry, kernel, cells, _pointers(entry, cells), config)
    built = native.built()
    # Without tensors the device is whichever is current: the C path knows one only.
    if built is not None and (entry.device is not None or device_count() == 1):
        launch = address_of(*(_LAUNCH if config is None else _LAUNCH_EXTENDED))
        if launch:  # else Python says what the driver does not have
            return _native_start(frame, built, launch)
    return _interpreted_start(frame)


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


def _native_start(frame: _Frame, built: native.Built, launch: int) -> Start:
    """A function of the C path, which calls what is at the address `launch`."""
    entry, several = frame.entry, device_count() > 1
    renew = _renewal(frame)

    def refused(status: int, stream: int) -> None:
        _give_context(entry, bindings.CUresult(status))
        start(stream)

    def elsewhere(stream: int) -> None:
        _start_elsewhere(frame, start, stream)

    assert entry.grid is not None, "an empty grid is not launched"
    start: Start = built.Start(
        launch=launch,
        function=frame.function,
        grid=entry.grid,
        threads=entry.variant.threads,
        shared_bytes=entry.variant.dynamic_smem_bytes,
        parameters=frame.parameters,
        cells=frame.cells.buffer_info()[0],
        config=0 if frame.config is None else int(frame.config.getPtr()),
        maps=tuple(one.pointer for one in entry.maps),
        device=entry.device if several and entry.device is not None else -1,
        device_of_stream=address_of(*_DEVICE_OF_STREAM),
        current_device=address_of(*_CURRENT_DEVICE),
        renew=renew,
        refused=refused,
        elsewhere=elsewhere,
        held=frame,
    )
    return start


def _interpreted_start(frame: _Frame) -> Start:
    """As `_native_start`, where the C path was not built."""
    start = _start_of(frame) if frame.config is None else _start_by(frame)
    if frame.entry.maps:
        start = _with_maps(frame, start)
    if device_count() == 1:
        return start

    def start_on_its_device(stream: int) -> None:
        if stream > PER_THREAD_STREAM:
            check_device(frame.entry, stream)
            start(stream)
        elif current_device() == frame.entry.device:
            start(stream)
        else:
            _start_elsewhere(frame, start, stream)

    return start_on_its_device


def _start_elsewhere(frame: _Frame, start: Start, stream: int) -> None:
    """Starts on a default stream, which is that of the current device, where that is another.

    Raises:   ContractError of a stream of another device
    """
    check_device(frame.entry, stream)
    with made_current(frame.entry.device) as device:
        frame.code.kernel(frame.entry.variant, device)
        start(stream)


def _start_of(frame: _Frame) -> Start:
    """The path of almost every launch without the C path, so written for speed."""
    entry = frame.entry
    assert entry.grid is not None, "an empty grid is not launched"
    function = bindings.CUfunction(frame.function)
    parameters = frame.parameters
    x, y, z = entry.grid
    threads, smem_bytes = entry.variant.threads, entry.variant.dynamic_smem_bytes

    def start(stream: int, _held: _Frame = frame) -> None:
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


def _start_by(frame: _Frame) -> Start:
    """As `_start_of`, with a config."""
    entry, function, parameters = frame.entry, bindings.CUfunction(frame.function), frame.parameters
    launch = extended_launch(frame.config, function, parameters)

    def start(stream: int, _held: _Frame = frame) -> None:
        queue = QUEUES.get(stream) or queue_of(stream)
        status = launch(queue)
        if status is not SUCCESS:
            _give_context(entry, status)
            _check_launch(entry, launch(queue))

    return start


def _with_maps(frame: _Frame, start: Start) -> Start:
    """As `start`, with the tensor maps of the addresses in the cells behind the other parameters.

    A frame that is launched again with the same addresses has its maps already.
    """
    cells = frame.cells
    slots = [one.pointer for one in frame.entry.maps]
    last = [0] * len(slots)  # no tensor is at address 0
    renew = _renewal(frame)

    def start_with_maps(stream: int) -> None:
        for number, slot in enumerate(slots):
            address = cells[slot]
            if address != last[number]:
                renew(number)
                last[number] = address
        start(stream)

    return start_with_maps


def _renewal(frame: _Frame) -> Callable[[int], None]:
    """A function that makes a tensor map anew, for the address that its cell holds."""
    entry, cells, pointers = frame.entry, frame.cells, frame.pointers
    held: list[EncodedMap | None] = [None] * len(entry.maps)  # alive while `pointers` has them

    def renew(number: int) -> None:
        one = entry.maps[number]
        held[number] = found = _map_at(entry, one, cells[one.pointer])
        pointers[len(cells) + number] = found.place

    return renew


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
    require_device()  # not so in a process that was forked
    _, context = bindings.cuCtxGetCurrent()
    if int(context):
        _check_launch(entry, status)
    Device(entry.device or 0).set_current()


def _check_launch(entry: Entry, status: bindings.CUresult) -> None:
    if status != SUCCESS:
        raise failure(f"`{entry.kernel.symbol}` was not launched", text_of(status))
