"""Kernels as callables, and launches that are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from tilec.artifact.manifest import Kernel
from tilec.runtime.cuda_driver import Completion, Driver
from tilec.runtime.errors import LaunchError
from tilec.runtime.plan import Planner
from tilec.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tilec.runtime.fitted import LaunchPlan


class Loaded(Protocol):
    """A cubin together with the driver that runs it."""

    def driver(self) -> Driver: ...

    def code(self) -> object: ...


class Launcher:
    """Launches one kernel: whichever of its instances fits the arguments.

    Arguments are tensors of any library, `Tensor`s, and numbers, in the order of the kernel's
    parameters or by their names. Raises ContractError, and launches nothing, if they break the
    kernel's contract.
    """

    def __init__(self, module: Loaded, kernels: Sequence[Kernel]) -> None:
        self.kernels = tuple(kernels)
        self._module = module
        self._planner = Planner(kernels)
        self.__doc__ = kernels[0].documentation or None

    def __call__(self, *arguments: object, **named: object) -> None:
        """Launches on the default stream and waits until the kernel is done.

        Raises:   ContractError, LaunchError, NoDevice, ArchitectureError
        """
        driver = self._module.driver()
        stream = driver.stream_of(None)
        given = self._planner.positional(arguments, named)
        plan = self._started(driver, stream, given)
        if plan.grid is not None:
            driver.finish(plan, stream)

    def launch(self, *arguments: object, stream: object = None, **named: object) -> Launch:
        """Launches on a stream (the default one if none is given) and returns at once.

        Raises:   as a call does; what fails later is raised by the handle
        """
        driver = self._module.driver()
        _forget_done()
        on = driver.stream_of(stream)
        given = self._planner.positional(arguments, named)
        plan = self._started(driver, on, given)
        event = None if plan.grid is None else driver.recorded(plan, on)
        return Launch(plan.kernel.symbol, event, given)

    def plan(self, *arguments: object, **named: object) -> LaunchPlan:
        """What these arguments would launch; launches nothing."""
        driver = self._module.driver()
        given = self._planner.positional(arguments, named)
        return self._planner.plan(self._described(driver, driver.stream_of(None), given))

    def _started(self, driver: Driver, stream: object, given: list[object]) -> LaunchPlan:
        plan = self._planner.plan(self._described(driver, stream, given))
        driver.start(self._module.code(), plan, stream)
        return plan

    def _described(self, driver: Driver, stream: object, given: list[object]) -> list[object]:
        described = list(given)
        for index, name in self._planner.tensors:
            argument = given[index]
            described[index] = (
                argument.array
                if isinstance(argument, Tensor)
                else driver.array_of(name, argument, stream)
            )
        return described

    def __repr__(self) -> str:
        return f"Launcher({', '.join(kernel.symbol for kernel in self.kernels)})"


class Launch:
    """A launch under way. What it borrows stays alive until it is done, waited for or not."""

    __slots__ = ("_borrowed", "_event", "_symbol")

    def __init__(self, symbol: str, event: Completion | None, borrowed: list[object]) -> None:
        self._symbol = symbol
        self._event = event
        self._borrowed = borrowed

    @property
    def done(self) -> bool:
        """Whether the kernel has finished.

        Raises:   LaunchError if it, or work before it, failed
        """
        if self._event is None:
            return True
        try:
            return self._event.is_done
        except Exception as error:
            raise LaunchError(f"`{self._symbol}` failed on the GPU: {error}") from error

    def wait(self) -> None:
        """Returns when the kernel is done.

        Raises:   LaunchError if it, or work before it, failed
        """
        if self._event is None:
            return
        try:
            self._event.sync()
        except Exception as error:
            raise LaunchError(f"`{self._symbol}` failed on the GPU: {error}") from error
        self._event, self._borrowed = None, []

    def __del__(self) -> None:
        event = getattr(self, "_event", None)
        if event is not None and _abandoned is not None:
            _abandoned.append((event, self._borrowed))

    def __repr__(self) -> str:
        return f"Launch({self._symbol}, {'under way' if self._event is not None else 'done'})"


# Launches whose handle was dropped before they were waited for: their arguments live until a
# later launch finds them done.
_abandoned: deque[tuple[Completion, list[object]]] = deque()
_forgetting = Lock()


def _forget_done() -> None:
    if not _abandoned or not _forgetting.acquire(blocking=False):
        return
    try:
        while _abandoned and _is_over(_abandoned[0][0]):
            _abandoned.popleft()
    finally:
        _forgetting.release()


def _is_over(event: Completion) -> bool:
    """Whether nothing runs any more; after a device error nothing does."""
    try:
        return event.is_done
    except Exception:
        return True
