"""Contenders made ready: each compiled, tuned and checked before anything is timed.

A rival that cannot be imported, raises, or is wrong is a `Contender` with a failure, and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec

from tilec.bench.buffers import Buffers
from tilec.bench.description import Benchmark, Case, Rival
from tilec.bench.gpu import Array, Gpu
from tilec.bench.kernels import Kernels
from tilec.bench.samples import OURS, Contender
from tilec.bench.tuning import configurations_of

# A call on a set of buffers: what it returns are outputs that it allocated, or None.
Work = Callable[[Buffers], "tuple[Array, ...] | None"]

_TRIES = 3  # of each configuration, of which the shortest counts
_CALLS = 8  # in a try, at least


@dataclass(frozen=True)
class Ready:
    """A contender that is right and can be sampled."""

    contender: Contender
    work: Work


@dataclass(frozen=True)
class Reference:
    """The exact outputs of a case on the first of its sets of buffers, and how results are compared
    with them."""

    gpu: Gpu
    case: Case
    observed: Callable[..., object] | None
    sets: tuple[Buffers, ...]
    exact: tuple[Array, ...]

    @property
    def buffers(self) -> Buffers:
        return self.sets[0]

    def error_of(self, work: Work) -> float:
        """The largest error of the outputs by their tolerance."""
        for output in self.buffers.outputs:
            self.gpu.poison(output)
        returned = work(self.buffers)
        self.gpu.synchronise()
        found = self.buffers.outputs if returned is None else returned
        if len(found) != len(self.case.outputs):
            raise ValueError(f"expected {len(self.case.outputs)} outputs, got {len(found)}")
        if self.observed is not None:
            found = as_tuple(self.observed(*self.buffers.inputs, *found))
        pairs = zip(found, self.exact, self.case.outputs, strict=True)
        return max(self.gpu.error(f, e, spec) for f, e, spec in pairs)


def reference_of(
    gpu: Gpu, benchmark: Benchmark, case: Case, sets: tuple[Buffers, ...]
) -> Reference:
    """The exact outputs of a case, by its operation in float64."""
    wide = tuple(map(gpu.wide, sets[0].inputs))
    exact = as_tuple(resolved(benchmark.operation)(*wide, *case.scalars))
    observed = None if benchmark.observed is None else resolved(benchmark.observed)
    if observed is not None:
        exact = as_tuple(observed(*wide, *exact))
    return Reference(gpu, case, observed, sets, exact)


def ours(benchmark: Benchmark, kernels: Kernels, reference: Reference) -> Ready | Contender:
    """Our kernels."""
    scalars = reference.case.scalars

    def prepared() -> Work:
        launch = benchmark.ours(kernels)

        def work(buffers: Buffers) -> None:
            launch(*buffers.outputs, *buffers.scratch, *buffers.inputs, *scalars)

        return work

    return _checked(OURS, prepared, reference)


def rival(rival: Rival, reference: Reference) -> Ready | Contender:
    """A rival, compiled and tuned."""
    missing = [name for name in rival.needs if find_spec(name) is None]
    if missing:
        return Contender(rival.name, failure=f"needs {', '.join(missing)}")
    return _checked(
        rival.name, lambda: _work_of(rival, reference), reference, is_part=rival.is_part
    )


def _checked(
    name: str, prepared: Callable[[], Work], reference: Reference, *, is_part: bool = False
) -> Ready | Contender:
    try:
        work = prepared()
        if is_part:
            work(reference.buffers)
            reference.gpu.synchronise()
            return Ready(Contender(name), work)
        error = reference.error_of(work)
    except Exception as fault:
        reference.gpu.synchronise()  # raises if the GPU takes no more work
        return Contender(name, failure=_in_a_line(fault))
    contender = Contender(name, error=error)
    if error <= 1:
        return Ready(contender, work)
    return replace(contender, failure=f"wrong: {error:.3g} times what is allowed")


def _in_a_line(fault: Exception) -> str:
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return f"{type(fault).__name__}: {lines[0][:200] if lines else 'no reason given'}"


def _work_of(rival: Rival, reference: Reference) -> Work:
    scalars = reference.case.scalars
    function = resolved(rival.operation)
    if rival.style == "kernel":
        return _tuned(function, reference)
    if rival.style == "compiled":
        function = reference.gpu.compiled(function)
    return lambda buffers: as_tuple(function(*buffers.inputs, *scalars))


def _tuned(function: Callable[..., object], reference: Reference) -> Work:
    """A kernel in the fastest of its configurations.

    Raises:   what the last configuration raised, if none can be launched
    """
    case, buffers, gpu = reference.case, reference.buffers, reference.gpu
    choices = configurations_of(function, (*buffers.outputs, *buffers.inputs, *case.scalars))
    times: list[tuple[float, Work]] = []
    fault: Exception | None = None
    for choice in choices:

        def work(buffers: Buffers, choice: object = choice) -> None:
            arguments = (*buffers.outputs, *buffers.inputs, *case.scalars)
            function(*arguments, **choice)  # type: ignore[arg-type]

        if len(choices) == 1:
            return work
        try:
            work(buffers)
            gpu.synchronise()
            times.append((_shortest_us(gpu, work, reference.sets), work))
        except Exception as refused:
            fault = refused
    if not times:
        assert fault is not None, "a kernel has configurations"
        raise fault
    return min(times, key=lambda found: found[0])[1]


def _shortest_us(gpu: Gpu, work: Work, sets: tuple[Buffers, ...]) -> float:
    """What some calls take, at best, on all sets in turn."""

    def several() -> None:
        for number in range(max(_CALLS, len(sets))):
            work(sets[number % len(sets)])

    replay = gpu.captured(several)
    replay()
    return min(gpu.time_us(replay) for _ in range(_TRIES))


def resolved(operation: str) -> Callable[..., object]:
    """The function that `module:function` names."""
    module, _, name = operation.partition(":")
    function: Callable[..., object] = getattr(import_module(module), name)
    return function


def as_tuple(found: object) -> tuple[Array, ...]:
    """Outputs as a tuple, where a function gives one alone."""
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)
