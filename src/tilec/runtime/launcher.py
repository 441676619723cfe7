"""Kernels as callables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel
from tilec.printable import printable, printable_lines
from tilec.runtime import native
from tilec.runtime.array import Array
from tilec.runtime.choice import LazyMachine
from tilec.runtime.cuda_driver import Driver
from tilec.runtime.errors import ContractError, TilecError
from tilec.runtime.foreign import DEFAULT_STREAM, current_stream
from tilec.runtime.launch import UNDER_WAY, Launch, is_passing
from tilec.runtime.native import is_native, no_hot_path
from tilec.runtime.plan import Planner
from tilec.runtime.reading import described, read, stream_for
from tilec.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tilec.runtime.entry import Entry, Frame
    from tilec.runtime.fitted import Fitted, LaunchPlan
    from tilec.runtime.native import HotPath, HotStart


class Loaded(Protocol):
    """A cubin together with the driver that runs it."""

    def driver(self) -> Driver: ...

    def code(self) -> object: ...


class Launcher:
    """Launches one kernel: whichever of its instances fits the arguments, and of a family the
    member for their shapes.

    Arguments are tensors of any library, `Tensor`s, and numbers, in the order of the kernel's
    parameters or by their names. Raises ContractError, and launches nothing, if they break the
    kernel's contract.
    """

    def __init__(
        self, module: Loaded, kernels: Sequence[Kernel], families: Sequence[Family] = ()
    ) -> None:
        self.kernels = tuple(kernels)
        self._module = module
        self._planner = Planner(kernels, LazyMachine(self._driver), families)
        self._count = len(self._planner.parameters)
        self._tensor_at = self._planner.tensor_at
        self._deciding_at = self._planner.deciding_at
        self._known_driver: Driver | None = None
        self._several = True  # devices, for all that is known before the first launch
        # Launches again what was launched before, once something was.
        self._hot_start: HotStart = no_hot_path
        self.__doc__ = printable_lines(kernels[0].documentation) or None

    def __call__(self, *arguments: object, **named: object) -> None:
        """Launches as `launch` does without a stream, and waits until the kernel is done.

        Raises:   ContractError, BorrowError, LaunchError, NoDevice, ArchitectureError
        """
        if named or len(arguments) != self._count:
            arguments = self._planner.positional(arguments, named)
        handle = self._hot_start(arguments, None, arguments, False, 1)
        if handle is None:
            handle = self._start(arguments, None, False, arguments, weight=1)
            if handle.is_over:
                return
        try:
            self._driver().finish(handle.entry, handle.stream)
        except TilecError:  # nothing runs after a failure; after an interrupt of the user it may
            handle.let_go()
            raise
        handle.let_go()

    def launch(
        self, *arguments: object, stream: object = None, order: bool = False, **named: object
    ) -> Launch:
        """Launches on a stream and returns at once.

        Without a stream, on PyTorch's current one if a tensor is PyTorch's, else on the default
        stream. With `order`, after whatever under way on other streams conflicts with it.

        Raises:   as a call does; what fails later is raised by the handle
        """
        if named or len(arguments) != self._count:
            arguments = self._planner.positional(arguments, named)
        if stream is None:
            handle = self._hot_start(arguments, None, arguments, False, None)
            if handle is None:
                handle = self._start(arguments, None, order, arguments)
            return handle
        on = self._driver().stream_of(stream)
        borrowed, passing = (arguments, stream), is_passing(on, stream)
        handle = self._hot_start(arguments, on, borrowed, passing, None)
        if handle is None:
            handle = self._start(arguments, on, order, borrowed, passing)
        return handle

    def plan(self, *arguments: object, **named: object) -> LaunchPlan:
        """What these arguments would launch; launches nothing."""
        given = self._planner.positional(arguments, named)
        return self._planner.plan(self._described(given, DEFAULT_STREAM))

    def _start(
        self,
        given: Sequence[Any],
        stream: int | None,
        order: bool,
        borrowed: object,
        passing: bool = False,
        weight: int | None = None,
        is_foreign: bool = False,
    ) -> Launch:
        """Checks the contract and launches: the path of every launch that the C path leaves to
        Python, and of all where there is none, so written for speed. hot_path.c follows it.

        What shapes decide was worked out when they were first seen. Each launch looks that up,
        looks at the addresses, and fills a frame. The handle keeps what is `borrowed`, some of it
        of another library where `is_foreign`; a `passing` stream may be gone, or another one,
        later.
        `weight` stands for that of the entry where the caller waits.
        """
        # 1. What the arguments are: the address of each tensor, and all else as a key.
        found = read(given, self._tensor_at, self._deciding_at, self._several)
        if found is None:  # described by the protocols of all libraries
            if stream is None:
                stream = stream_for(given, self._tensor_at)
            held: list[object] = []
            arrays = self._described(given, stream, held)
            return self._start(arrays, stream, order, (borrowed, held), passing, weight, True)
        addresses, key, bits, torch_device = found
        try:
            fitted = self._planner.known[key]
        except (KeyError, TypeError):
            fitted = self._planner.fitted(key, self._described(given, stream or 0))

        # 2. What addresses decide.
        entry = fitted.entries.get(tuple(addresses)) or fitted.entry_for(addresses, bits)

        # 3. The stream, the frame, the launch.
        if stream is None:
            stream = DEFAULT_STREAM if torch_device < 0 else current_stream(torch_device)
        driver = self._known_driver or self._driver()
        touched = fitted, addresses, is_foreign or torch_device >= 0
        if stream != UNDER_WAY.only:  # something may be under way on another one
            UNDER_WAY.admit(driver, touched, entry, stream, order)
        try:
            frame = entry.frames.pop()
        except IndexError:
            frame = self._new_frame(entry)
        cells, start = frame
        for slot, number in fitted.pointers:
            cells[slot] = addresses[number]
        if fitted.scalars:
            self._fill_scalars(fitted, frame, given)
        handle = Launch(driver, entry, stream, borrowed, touched)
        UNDER_WAY.start(handle, start, weight or entry.weight, passing)
        entry.frames.append(frame)
        return handle

    def _fill_scalars(self, fitted: Fitted, frame: Frame, given: Sequence[object]) -> None:
        cells = frame[0]
        try:
            for scalar in fitted.scalars:
                cells[scalar.slot] = scalar.bits(given[scalar.position])
        except ContractError as error:
            raise fitted.refusal(error) from None

    def _new_frame(self, entry: Entry) -> Frame:
        cells = entry.cells()
        if entry.grid is None:
            return cells, _start_nothing
        driver = self._driver()
        self._several = driver.device_count() > 1
        start = driver.prepared(self._module.code(), entry, cells)
        native.know_torch()
        if self._hot_start is no_hot_path and is_native(start, Launch):
            self._hot_start = self._hot_path(driver).start
        return cells, start

    def _hot_path(self, driver: Driver) -> HotPath:
        built = native.built()
        assert built is not None, "it has made a function already"
        return built.HotPath(
            count=self._count,
            tensor_at=self._tensor_at,
            deciding_at=self._deciding_at,
            several=self._several,
            known=self._planner.known,
            driver=driver,
            under_way=UNDER_WAY,
            launch=Launch,
            tensor=Tensor,
            array=Array,
            current_stream=current_stream,
        )

    def _described(
        self, given: Sequence[Any], stream: int, held: list[object] | None = None
    ) -> list[object]:
        return described(given, self._planner.parameters, self._driver, stream, held)

    def _driver(self) -> Driver:
        if self._known_driver is None:
            self._known_driver = self._module.driver()
        return self._known_driver

    def __repr__(self) -> str:
        return printable(f"Launcher({', '.join(kernel.symbol for kernel in self.kernels)})")


def _start_nothing(stream: int) -> None:
    """What an empty grid launches."""
