"""The members of one family at one shape: who can, whether all agree, who is fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import tilec.runtime as rt
from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel
from tilec.artifact.tuning_file import Loser, Trial
from tilec.bench.buffers import Buffers
from tilec.bench.gpu import Array, Gpu
from tilec.bench.sampling import Sampler, Settings, sampled, sampler
from tilec.tune.arguments import Arguments, Values

_TRIES = 3  # of one launch, of which the shortest says how long a sample is to be
_FAR = 3.0  # times the fastest, from which on one launch says enough


class DisagreementError(Exception):
    """Two members give different results: they are no family, or one of them is wrong."""


class NoMemberError(Exception):
    """No member takes these arguments, or can be launched; says why of each."""


@dataclass(frozen=True)
class Outcome:
    """What was measured, and what a launcher would have chosen without it."""

    trial: Trial
    guess: str
    times: Mapping[str, float]  # of each member that was timed, in microseconds

    @property
    def guess_slowdown(self) -> float | None:
        """The time of the launcher's guess by that of the fastest; None if it was not timed."""
        if self.guess not in self.times:
            return None
        return self.times[self.guess] / self.trial.us


@dataclass(frozen=True)
class _Restored(Sampler):
    """Samples that begin with what kernels change put back."""

    restore: Callable[[], None]

    def sample_us(self) -> float:
        self.restore()
        return super().sample_us()


def tried(
    gpu: Gpu,
    module: rt.Module,
    family: Family,
    extents: tuple[int, ...],
    values: Values,
    settings: Settings,
) -> Outcome:
    """Measures all members at these extents, one after the other in each round.

    Raises:   DisagreementError, NoMemberError; what the GPU raises once it takes no more work
    """
    kernels = {kernel.symbol: kernel for kernel in module.manifest.kernels}
    members = [kernels[symbol] for symbol in family.members]
    dims = dict(zip(family.dims, extents, strict=True))
    arguments = Arguments(gpu, members[0], dims, values)
    losers: dict[str, str] = {}
    fit = [kernel for kernel in members if _is_launched(gpu, module, kernel, arguments, losers)]
    if not fit:
        raise NoMemberError("; ".join(f"`{name}`: {why}" for name, why in losers.items()))
    launches = {kernel.symbol: _launching(module, kernel, arguments) for kernel in fit}
    times = _single_launches(gpu, launches, arguments)
    samplers = _samplers(gpu, launches, times, arguments, settings)
    times |= {name: median(found) for name, found in sampled(samplers, settings.rounds).items()}
    winner = min(times, key=lambda name: (times[name], family.members.index(name)))
    lost = tuple(
        Loser(name, _rounded(times[name]), f"slower: {times[name] / times[winner]:.3f} times")
        if name in times
        else Loser(name, None, losers[name])
        for name in family.members
        if name != winner
    )
    first = arguments.of(arguments.sets[0])
    guess = module[family.name].plan(*first).kernel.symbol
    return Outcome(Trial(extents, winner, _rounded(times[winner]), lost), guess, times)


def _is_launched(
    gpu: Gpu, module: rt.Module, kernel: Kernel, arguments: Arguments, losers: dict[str, str]
) -> bool:
    """Whether a member takes the arguments; if not, `losers` says why."""
    try:
        module.instance(kernel.symbol).plan(*arguments.of(arguments.sets[0]))
    except rt.ContractError as error:
        reason = str(error).removeprefix(f"`{kernel.symbol}`: ")
        losers[kernel.symbol] = f"not applicable: {reason}"
        return False
    try:
        module.instance(kernel.symbol)(*arguments.of(arguments.sets[0]))
    except rt.LaunchError as error:
        gpu.synchronise()  # raises if the GPU takes no more work
        losers[kernel.symbol] = f"failed: {error}".splitlines()[0]
        return False
    return True


def _single_launches(
    gpu: Gpu, launches: Mapping[str, Callable[[Buffers], None]], arguments: Arguments
) -> dict[str, float]:
    """What one launch of each member takes at best, once all are known to give the same."""
    first = next(iter(launches))
    expected: list[Array] | None = None
    times: dict[str, float] = {}
    for symbol, launch in launches.items():
        arguments.poison()
        launch(arguments.sets[0])
        gpu.synchronise()
        if expected is None:
            expected = arguments.results()
        else:
            off = arguments.difference(arguments.results(), expected)
            if not off <= 1:
                raise DisagreementError(
                    f"`{symbol}` and `{first}` differ by {off:.3g} times what rounding explains"
                )
        once = lambda launch=launch: launch(arguments.sets[0])  # noqa: E731
        times[symbol] = min(gpu.time_us(once) for _ in range(_TRIES))
    return times


def _samplers(
    gpu: Gpu,
    launches: Mapping[str, Callable[[Buffers], None]],
    times: Mapping[str, float],
    arguments: Arguments,
    settings: Settings,
) -> dict[str, Sampler]:
    """A sampler for each member that is not far behind: all have the same number of calls."""
    shortest = min(times.values())
    made = {}
    for symbol, launch in launches.items():
        if times[symbol] > _FAR * shortest:
            continue
        arguments.restore()
        found = sampler(gpu, launch, arguments.sets, shortest, settings)
        if arguments.changes_inputs:
            found = _Restored(
                found.gpu, found.enqueue, found.calls, found.repeats, found.method,
                arguments.restore,
            )  # fmt: skip
        made[symbol] = found
    return made


def _launching(
    module: rt.Module, kernel: Kernel, arguments: Arguments
) -> Callable[[Buffers], None]:
    launcher = module.instance(kernel.symbol)

    def launch(buffers: Buffers) -> None:
        launcher.launch(*arguments.of(buffers))

    return launch


def _rounded(us: float) -> float:
    return float(f"{us:.4g}")
