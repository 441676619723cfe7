"""A pipeline with its arguments as a CUDA graph: launched as a whole, as often as one likes."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from tilec.printable import printable
from tilec.runtime.entry import Node
from tilec.runtime.errors import TilecError
from tilec.runtime.launch import UNDER_WAY, Launch, is_passing
from tilec.runtime.tensor import Tensor

if TYPE_CHECKING:
    from types import TracebackType

    from tilec.artifact.pipeline import Pipeline
    from tilec.runtime.cuda_driver import Completion, Executable, Memory
    from tilec.runtime.pipeline import Call, PipelineLauncher


class Replayed(NamedTuple):
    """What a launch of a graph is to those who hold it. It borrows no memory that would be free
    without it: the graph has it anyway."""

    kernel: Pipeline
    device: int | None
    grid: tuple[int, int, int] | None
    weight: int = 1


class Graph:
    """The launches of a pipeline with the same arguments each time.

    It owns its arguments and its workspace: they live as long as it does and as a launch of it
    runs, whatever becomes of the caller's references. One launch of it begins when the one before
    is done, on whatever streams they are.
    """

    def __init__(self, pipeline: PipelineLauncher, given: tuple[object, ...]) -> None:
        """Made by `graph` of a pipeline.

        Raises:   ContractError, LaunchError, NoDevice, ArchitectureError
        """
        self._pipeline = pipeline
        self._driver = pipeline.driver()
        # A finalizer that Python runs in the midst of a replay may close the graph.
        self._lock = RLock()
        self._last: ref[Launch] | None = None  # it lives as long as it runs
        self._before: Completion | None = None  # what ran when another executable took over
        self._previous: ref[Launch] | None = None  # the launch that this tells of
        self._given: tuple[object, ...] | None = given
        self._call = pipeline.call_of(given, None)
        self._memory = self._allocated(self._call)
        self._executable = self._built(self._call, self._memory)
        self._lend(given)

    def replay(self, stream: object = None, order: bool = False) -> Launch:
        """Launches all of it on a stream and returns at once.

        Without a stream, on PyTorch's current one if a tensor is PyTorch's, else on the default
        stream. With `order`, after whatever under way on other streams conflicts with it.

        Raises:   TilecError if the graph is closed; BorrowError; LaunchError
        """
        with self._lock:
            given = self._open()
            call = self._call
            if stream is not None:
                on = self._driver.stream_of(stream)
            else:
                on = self._pipeline.stream_for(given)
            executable = self._executable
            borrowed = given, call.held, self._memory, executable, stream
            touched = call.touched(0)
            what = Replayed(call.planned.kernel, call.planned.device, call.planned.grid)
            handle = Launch(self._driver, what, on, borrowed, touched)
            if executable is None:
                return handle
            if self._before is not None:
                self._driver.wait_for(self._before, on)
            if on != UNDER_WAY.only:  # something may be under way on another one
                # CUDA runs one launch of an executable after the other.
                last = self._last or self._previous
                follows = None if last is None else last()
                UNDER_WAY.admit(self._driver, touched, call.planned, on, order, follows)
            passing = is_passing(on, stream)
            UNDER_WAY.start(handle, executable.launch, what.weight, passing)
            self._before = self._previous = None
            self._last = ref(handle)
            return handle

    def update(self, **changes: object) -> None:
        """Has later launches take other arguments, by their names; the rest stay as they are.

        Launches that are under way are not changed.

        Raises:   ContractError, LaunchError; the graph is then as it was
        """
        with self._lock:
            given = self._pipeline.arguments_of(self._open(), changes)
            call = self._pipeline.call_of(given, None)
            memory = self._memory
            if memory is None or memory.size < call.planned.workspace.bytes:
                memory = self._allocated(call)
            nodes = _nodes(call, memory)
            moves = call.planned.device != self._call.planned.device
            executable = None if moves or not nodes else self._executable
            if executable is None or not executable.update(nodes):
                # Another executable is not ordered with this one, nor may it share its workspace.
                memory = self._allocated(call)
                executable = self._built(call, memory)
                self._before = self._running()
                self._previous = self._last or self._previous
                self._executable, self._last = executable, None
            self._take_back(self._open())
            self._lend(given)
            self._given, self._call, self._memory = given, call, memory

    def close(self) -> None:
        """Lets go of the arguments and the workspace, once the last launch is done with them."""
        with self._lock:
            self._take_back(self._given or ())
            self._given = self._memory = self._executable = None
            self._call = self._call._replace(held=())
            self._before = self._last = self._previous = None

    def __enter__(self) -> Graph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._given is None else f"{len(self._call.planned.steps)} launches"
        return printable(f"Graph({self._pipeline.name}, {state})")

    def _lend(self, given: tuple[object, ...]) -> None:
        """Tensors of the runtime are not freed by hand while the graph has them."""
        for one in given:
            if isinstance(one, Tensor):
                one.lend(self)

    def _take_back(self, given: tuple[object, ...]) -> None:
        for one in given:
            if isinstance(one, Tensor):
                one.take_back(self)

    def _open(self) -> tuple[object, ...]:
        """The arguments.

        Raises:   TilecError if the graph is closed
        """
        if self._given is None:
            raise TilecError(f"the graph of `{self._pipeline.name}` is closed")
        return self._given

    def _running(self) -> Completion | None:
        """What tells when the last launch is done; None if nothing runs."""
        if self._last is None:
            return self._before
        last = self._last()
        return None if last is None else last._recorded()

    def _allocated(self, call: Call) -> Memory | None:
        size = call.planned.workspace.bytes
        if not size or call.planned.grid is None:
            return None
        device = call.planned.device
        on = self._driver.current_device() if device is None else device
        return self._driver.allocated(size, on)

    def _built(self, call: Call, memory: Memory | None) -> Executable | None:
        if call.planned.grid is None:
            return None
        return self._driver.built_graph(self._pipeline.code(), call.planned, _nodes(call, memory))


def _nodes(call: Call, memory: Memory | None) -> list[Node]:
    """The launches, with all arguments filled in."""
    planned = call.planned
    bases = [*call.addresses, 0 if memory is None else int(memory.handle)]
    nodes = []
    for step, entry, after in zip(
        planned.steps, call.addressed.entries, planned.after, strict=True
    ):
        cells = step.cells(entry)
        step.fill_pointers(cells, bases)
        step.fill_scalars(cells, call.bits, call.values)
        early = entry.variant.starts_early and len(after) == 1
        nodes.append(Node(entry, cells, after, early))
    return nodes
