"""What small launches of a kernel do: its races, and which elements its accesses touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mlir import ir

from tests.proofs.random_kernels import Launch
from tilec.interpret.contract import DTYPES, BrokenContract, Parameter, parameters_of
from tilec.interpret.machine import Code, code_of
from tilec.interpret.memory import Array, Observer
from tilec.interpret.run import run_kernel
from tilec.interpret.sanitize import Program, Race, Sanitizer, Touch

Place = tuple[int, int]  # of the source, from one: line, column

# A launch that makes more accesses is cut short: what it did until then is seen.
MOST_ACCESSES = 250
# How many launches are tried for each that is wanted: some break `requires!`.
MOST_TRIES = 5


@dataclass(frozen=True)
class SeenRace:
    """A race that happened, and at which sizes."""

    code: str  # E0501, E0502
    launch: Launch
    tensor: str
    element: tuple[int, ...]
    programs: tuple[Program, Program]
    places: tuple[Place, Place]

    def __str__(self) -> str:
        one, other = self.programs
        return (
            f"{self.code}: {one} at {self.places[0]} and {other} at {self.places[1]} meet at "
            f"`{self.tensor}{list(self.element)}`, at {self.launch}"
        )


@dataclass(frozen=True)
class Access:
    """What became of an access in all launches."""

    inside: int
    outside: int
    outside_at: Launch | None  # the first launch in which an element was outside
    inside_at: Launch | None


@dataclass(frozen=True)
class Observed:
    """What the launches of a kernel did; an access that is not there was never executed."""

    races: tuple[SeenRace, ...] = ()
    accesses: Mapping[Place, Access] = field(default_factory=dict)
    launches: int = 0
    accessed: int = 0


class _Enough(Exception):  # noqa: N818, no error
    """The launch has shown enough."""


class _Bounded(Sanitizer):
    """A sanitizer that ends a launch which goes on and on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.accessed = 0

    def starts(self, program: Program) -> None:
        super().starts(program)
        self._count()

    def touched(self, op: ir.OpView, tensor: str, elements: Array, **kinds: Any) -> None:
        super().touched(op, tensor, elements, **kinds)
        self._count()

    def _count(self) -> None:
        self.accessed += 1
        if self.accessed > MOST_ACCESSES:
            raise _Enough


def kernel_of(module: ir.Module) -> ir.OpView:
    """The one kernel of a module."""
    [kernel] = (op for op in module.body.operations if "tile.kernel" in op.attributes)
    return kernel


def arguments_of(parameters: Sequence[Parameter], launch: Launch) -> dict[str, Any]:
    """Tensors of the launch's extents, of small numbers; its scalars."""
    source = np.random.default_rng(0)
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.extents is None:
            arguments[parameter.name] = launch.scalars[parameter.name]
            continue
        shape = [launch.dims[e] if isinstance(e, str) else e for e in parameter.extents]
        arguments[parameter.name] = source.integers(-2, 9, shape).astype(DTYPES[parameter.element])
    return arguments


def observed_launch(
    function: ir.OpView, launch: Launch, observer: Observer, code: Code | None = None
) -> bool:
    """Run one launch; False if the kernel does not allow it.

    Raises:   nothing of the launch's own: a failed `assert!` ends it
    """
    try:
        arguments = arguments_of(parameters_of(function), launch)
        run_kernel(function, arguments, observer=observer, code=code)
    except BrokenContract:
        return False
    except _Enough:
        pass
    return True


def small_launches(function: ir.OpView, most: int = 7) -> Iterator[Launch]:
    """Launches of any kernel: all extents and scalars alike, then different ones."""
    parameters = parameters_of(function)
    dims = list(dict.fromkeys(e for p in parameters for e in p.extents or () if isinstance(e, str)))
    scalars = [p.name for p in parameters if p.extents is None]
    for size in range(most):
        yield Launch(dict.fromkeys(dims, size), dict.fromkeys(scalars, size))
    source = np.random.default_rng(0)
    while True:
        yield Launch(
            {dim: int(source.integers(0, most)) for dim in dims},
            {scalar: int(source.integers(-3, most)) for scalar in scalars},
        )


def observe(
    module: ir.Module, launches: Iterable[Launch] | None = None, count: int = 10
) -> Observed:
    """What the kernel of a module does in `count` launches that it allows.

    `launches` are tried in order, `MOST_TRIES` for each that is wanted; without, small ones.
    """
    function = kernel_of(module)
    code = code_of(function)
    tried = iter(small_launches(function) if launches is None else launches)
    parameters = parameters_of(function)
    races: dict[tuple[str, Place, Place], SeenRace] = {}
    accesses: dict[Place, Access] = {}
    done = accessed = 0
    for launch, _ in zip(tried, range(count * MOST_TRIES), strict=False):
        if done == count:
            break
        sanitizer = _Bounded(shapes_of(parameters, launch))
        if not observed_launch(function, launch, sanitizer, code):
            continue
        done += 1
        accessed += sanitizer.accessed
        for race in (_seen(race, launch) for race in sanitizer.races()):
            races.setdefault((race.code, *race.places), race)
        for op, touch in sanitizer.seen.items():
            place = place_of(op.location)
            accesses[place] = _with(accesses.get(place), touch, launch)
    return Observed(tuple(races.values()), accesses, done, accessed)


def shapes_of(parameters: Sequence[Parameter], launch: Launch) -> dict[str, tuple[int, ...]]:
    """The extents of each tensor."""
    return {
        p.name: tuple(launch.dims[e] if isinstance(e, str) else e for e in p.extents)
        for p in parameters
        if p.extents is not None
    }


def _seen(race: Race, launch: Launch) -> SeenRace:
    one, other = (place_of(op.location) for op in race.ops)
    code = "E0502" if race.is_read else "E0501"
    return SeenRace(code, launch, race.tensor, race.element, race.programs, (one, other))


def place_of(location: ir.Location) -> Place:
    """Where an operation stands in the source; of several merged ones, the first."""
    if location.is_a_fused():
        return place_of(location.locations[0])
    if location.is_a_callsite():
        return place_of(location.callee)
    return location.start_line, location.start_col


def _with(access: Access | None, touch: Touch, launch: Launch) -> Access:
    before = access or Access(0, 0, None, None)
    return Access(
        before.inside + touch.inside,
        before.outside + touch.outside,
        before.outside_at or (launch if touch.outside else None),
        before.inside_at or (launch if touch.inside else None),
    )
