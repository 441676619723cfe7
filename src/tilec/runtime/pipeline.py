"""Pipelines as callables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tilec.artifact.expression import Expression, Value, names_in
from tilec.artifact.manifest import Manifest
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.workspace import Workspace
from tilec.printable import printable, printable_lines
from tilec.runtime.array import Array
from tilec.runtime.choice import LazyMachine
from tilec.runtime.contract import check_type
from tilec.runtime.errors import ContractError, TilecError
from tilec.runtime.foreign import DEFAULT_STREAM, current_stream
from tilec.runtime.frames import Frames
from tilec.runtime.graph import Graph
from tilec.runtime.launch import UNDER_WAY, Launch, is_passing
from tilec.runtime.pipeline_plan import SOMEWHERE, Addressed, PipelinePlan, PlannedPipeline
from tilec.runtime.plan import Planner, positional
from tilec.runtime.reading import array_of, described, read, stream_for
from tilec.runtime.scalars import may_be_looked_up

if TYPE_CHECKING:
    from tilec.runtime.borrows import Touched
    from tilec.runtime.cuda_driver import Driver
    from tilec.runtime.fitted import Argument
    from tilec.runtime.launcher import Loaded

_REMEMBERED = 1024  # combinations of shapes for each pipeline, after which all are forgotten


class Call(NamedTuple):
    """Arguments that meet the contract: what they launch, and what fills it.

    `values` are those of `Dim`s and scalars, if scalars of launches follow from them; `stream` is
    the one that the caller means; `is_foreign` says that a tensor is of another library, and
    `held` keeps the memory of those that came by a protocol.
    """

    planned: PlannedPipeline
    addressed: Addressed
    addresses: list[int]
    bits: Sequence[int]
    values: Mapping[str, Value] | None
    stream: int
    is_foreign: bool = False
    held: Sequence[object] = ()

    def touched(self, workspace: int) -> Touched:
        """What a launch borrows, with a workspace at this address, or none of the caller's (0)."""
        return self.planned, [*self.addresses, workspace], self.is_foreign


class PipelineLauncher:
    """Launches a pipeline: all its kernels, in an order that its borrows allow.

    Of several instances, the first that takes the arguments. These are tensors of any library,
    `Tensor`s, and numbers, in the order of the parameters or by their names. Raises ContractError,
    and launches nothing, if they break the contract of the pipeline or of one of its launches.
    """

    def __init__(self, module: Loaded, pipelines: Sequence[Pipeline], manifest: Manifest) -> None:
        self.pipelines = tuple(pipelines)
        self.parameters = pipelines[0].parameters
        self.name = pipelines[0].symbol if len(pipelines) == 1 else pipelines[0].name
        self._module = module
        self._known_driver: Driver | None = None
        self._several = True  # devices, for all that is known before the first launch
        self._planners = _planners(pipelines, manifest, LazyMachine(self.driver))
        self._tensor_at = tuple(i for i, p in enumerate(self.parameters) if p.is_tensor)
        self._deciding_at = _deciding_scalars(self.pipelines, self._planners)
        self._known: dict[object, PlannedPipeline] = {}
        self.__doc__ = printable_lines(pipelines[0].documentation) or None

    def __call__(self, *arguments: object, **named: object) -> None:
        """Launches as `launch` does without options, and waits until all of it is done.

        Raises:   ContractError, LaunchError, NoDevice, ArchitectureError
        """
        given = self._positional(arguments, named)
        handle = self._start(given, None, 1, None, False, given, weight=1)
        if handle.is_over:
            return
        try:
            self.driver().finish(handle.entry, handle.stream)
        except TilecError:  # nothing runs after a failure; after an interrupt of the user it may
            handle.let_go()
            raise
        handle.let_go()

    def launch(
        self,
        *arguments: object,
        stream: object = None,
        streams: int = 1,
        workspace: object = None,
        order: bool = False,
        **named: object,
    ) -> Launch:
        """Launches on a stream and returns at once.

        Without a stream, on PyTorch's current one if a tensor is PyTorch's, else on the default
        stream. With several `streams`, launches that have no order run side by side; what the
        stream is given later comes after all of them. `workspace` is memory for the temporaries
        (`workspace_bytes` of it, at a multiple of 256 bytes), which nobody else may use until the
        launches are done; without it, it comes from the device's pool. With `order`, all of it
        comes after whatever under way on other streams conflicts with it.

        Raises:   as a call does; what fails later is raised by the handle
        """
        given = self._positional(arguments, named)
        if isinstance(streams, bool) or not isinstance(streams, int) or streams < 1:
            raise ContractError(f"`{self.name}`: expected a number of streams, got {streams!r}")
        driver = self.driver()
        asked = None if stream is None else driver.stream_of(stream)
        borrowed = given, stream, workspace
        passing = asked is not None and is_passing(asked, stream)
        return self._start(given, asked, streams, workspace, order, borrowed, passing)

    def workspace_bytes(self, *arguments: object, **named: object) -> int:
        """How many bytes of workspace these arguments need; launches nothing."""
        return self._workspace(self._positional(arguments, named)).bytes

    def plan(self, *arguments: object, workspace: int = SOMEWHERE, **named: object) -> PipelinePlan:
        """What these arguments would launch with a workspace at this address; launches nothing."""
        given = self._described(self._positional(arguments, named), DEFAULT_STREAM)
        addresses = [given[index].pointer for index in self._tensor_at]
        return self._planned(given).plan(addresses, workspace)

    def graph(self, *arguments: object, **named: object) -> Graph:
        """A CUDA graph of what these arguments launch, with a workspace of its own.

        Raises:   as a call does, but for what fails later
        """
        return Graph(self, self._positional(arguments, named))

    def call_of(self, given: Sequence[Any], stream: int | None) -> Call:
        """What arguments launch; the stream waits for the values of those that come by a protocol.

        Raises:   ContractError
        """
        found = read(given, self._tensor_at, self._deciding_at, self._several)
        if found is None:
            if stream is None:
                stream = self.stream_for(given)
            held: list[object] = []
            call = self.call_of(self._described(given, stream, held), stream)
            return call._replace(is_foreign=True, held=held)
        addresses, key, address_bits, torch_device = found
        if stream is None:
            stream = DEFAULT_STREAM if torch_device < 0 else current_stream(torch_device)
        try:
            planned = self._known[key]
        except KeyError:
            planned = self._planned(self._described(given, stream))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            if all(may_be_looked_up(given[index]) for index in self._deciding_at):
                self._known[key] = planned
        except TypeError:  # a scalar that cannot be hashed is no number: the contract says so
            planned = self._planned(self._described(given, stream))
        addressed = planned.first
        if (
            addressed is None
            or address_bits & planned.low_bits
            or not 0 <= address_bits <= planned.last_address
            or not all(addresses)
        ):
            addressed = planned.at(addresses)
        for i, j, i_bytes, j_bytes in planned.pairs:
            if (
                addresses[i] < addresses[j] + j_bytes and addresses[j] < addresses[i] + i_bytes
            ):  # they may still interleave
                addressed = planned.at(addresses)
                break
        bits = planned.bits(given) if planned.scalars else ()
        values = planned.values(given) if planned.computes else None
        is_foreign = torch_device >= 0
        return Call(planned, addressed, addresses, bits, values, stream, is_foreign)

    def arguments_of(
        self, given: tuple[object, ...], changes: Mapping[str, object]
    ) -> tuple[object, ...]:
        """The arguments with some changed, by name.

        Raises:   ContractError if a name is no parameter's
        """
        names = [p.name for p in self.parameters]
        for name in changes:
            if name not in names:
                raise ContractError(
                    f"`{self.name}`: expected names of parameters ({', '.join(names)}), "
                    f"got `{name}`"
                )
        return tuple(changes.get(name, one) for name, one in zip(names, given, strict=True))

    def stream_for(self, given: Sequence[Any]) -> int:
        """The stream that a caller who names none means."""
        return stream_for(given, self._tensor_at)

    def code(self) -> object:
        return self._module.code()

    def driver(self) -> Driver:
        if self._known_driver is None:
            self._known_driver = self._module.driver()
        return self._known_driver

    def _start(
        self,
        given: Sequence[Any],
        stream: int | None,
        streams: int,
        workspace: object,
        order: bool,
        borrowed: object,
        passing: bool = False,
        weight: int | None = None,
    ) -> Launch:
        """Checks the contract and launches: the path of every call."""
        call = self.call_of(given, stream)
        planned, stream = call.planned, call.stream
        held = [*call.held]
        own = self._address_of(workspace, call, stream, held)
        driver = self.driver()
        touched = call.touched(own)
        handle = Launch(driver, planned, stream, (borrowed, held) if held else borrowed, touched)
        if planned.grid is None:
            return handle
        if stream != UNDER_WAY.only:  # something may be under way on another one
            UNDER_WAY.admit(driver, touched, planned, stream, order)
        pool = call.addressed.frames.setdefault(streams, [])
        try:
            frames = pool.pop()
        except IndexError:
            frames = self._new_frames(call, streams)
        if planned.scalars:
            frames.fill_scalars(call.bits, call.values)
        size = planned.workspace.bytes
        address = own or (driver.stream_memory(size, planned, stream) if size else 0)
        frames.fill_pointers([*call.addresses, address])

        def start(on: int) -> None:
            try:
                frames.start(on, planned)
            finally:
                if address and not own:
                    driver.free_stream_memory(address, planned, on)

        UNDER_WAY.start(handle, start, weight or planned.weight, passing, is_one=False)
        pool.append(frames)
        return handle

    def _new_frames(self, call: Call, streams: int) -> Frames:
        planned = call.planned
        self._several = self.driver().device_count() > 1
        return Frames(
            planned.steps,
            call.addressed.entries,
            planned.schedule(streams),
            self.driver(),
            self._module.code(),
        )

    def _address_of(self, workspace: object, call: Call, stream: int, held: list[object]) -> int:
        """Where the caller's workspace is; 0 without one. What keeps it is added to `held`.

        Raises:   ContractError if it will not do
        """
        if workspace is None:
            return 0
        try:
            array = array_of("workspace", workspace, self.driver, stream, held)
        except ContractError as error:
            raise call.planned.refusal(error) from None
        call.planned.check_workspace(array, call.addresses)
        return array.pointer if call.planned.workspace.bytes else 0

    def _workspace(self, given: Sequence[Any]) -> Workspace:
        return self.call_of(given, DEFAULT_STREAM).planned.workspace

    def _planned(self, given: Sequence[Argument]) -> PlannedPipeline:
        """The first instance that takes the arguments, as far as addresses do not matter.

        Raises:   ContractError, which names it, the launch and the argument
        """
        mistyped: list[str] = []
        refused: list[str] = []
        for pipeline in self.pipelines:
            try:
                for index in self._tensor_at:
                    array = given[index]
                    assert isinstance(array, Array), "tensors are described"
                    check_type(pipeline.parameters[index], array)
            except ContractError as error:
                mistyped.append(f"`{pipeline.symbol}`: {error}")
                continue
            try:
                return PlannedPipeline(pipeline, self._planners, given)
            except ContractError as error:
                refused.append(str(error))
        reasons = refused or mistyped
        if len(reasons) == 1:
            raise ContractError(reasons[0])
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise ContractError(f"no instance of `{self.name}` takes these arguments{listed}")

    def _positional(
        self, arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[object, ...]:
        if not named and len(arguments) == len(self.parameters):
            return arguments
        return positional(self.name, self.parameters, arguments, named)

    def _described(
        self, given: Sequence[Any], stream: int, held: list[object] | None = None
    ) -> list[Any]:
        return described(given, self.parameters, self.driver, stream, held)

    def __repr__(self) -> str:
        return printable(f"PipelineLauncher({', '.join(one.symbol for one in self.pipelines)})")


def _planners(
    pipelines: Sequence[Pipeline], manifest: Manifest, machine: LazyMachine
) -> dict[tuple[str, ...], Planner]:
    """Planners of the instances that launches may be of."""
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    wanted = {launch.instances for pipeline in pipelines for launch in pipeline.launches}
    return {
        instances: Planner([kernels[one] for one in instances], machine, manifest.families)
        for instances in wanted
    }


def _deciding_scalars(
    pipelines: Sequence[Pipeline], planners: Mapping[tuple[str, ...], Planner]
) -> tuple[int, ...]:
    """Positions of the scalars on which more depends than what a launch is given for a scalar."""
    named = {
        name
        for pipeline in pipelines
        for expression in _deciding_expressions(pipeline, planners)
        for name in names_in(expression)
    }
    parameters = pipelines[0].parameters
    return tuple(
        index
        for index, parameter in enumerate(parameters)
        if not parameter.is_tensor
        and (
            parameter.name in named or len({one.parameters[index].element for one in pipelines}) > 1
        )
    )


def _deciding_expressions(
    pipeline: Pipeline, planners: Mapping[tuple[str, ...], Planner]
) -> Iterator[Expression]:
    yield from (requirement.expression for requirement in pipeline.requires)
    for temporary in pipeline.temporaries:
        yield from temporary.extents
    for launch in pipeline.launches:
        for index in planners[launch.instances].deciding_at:
            value = launch.arguments[index].value
            assert value is not None, "a scalar is given a value"
            yield value
