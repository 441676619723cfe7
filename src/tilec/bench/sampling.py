"""What one call of a contender takes: samples of many calls on rotating buffers.

A sample is the time between two events around several calls, by their number, queued behind a
kernel that sleeps, so that no latency of launches is in it. Calls of a case whose floor is short
are replayed from a CUDA graph, which has the same number of calls for every contender. Calls go
round over the sets of buffers, and what a contender allocates lives as long as a set lies idle, so
that its outputs are no warmer than those that are written in place.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from tilec.bench.buffers import Buffers
from tilec.bench.contenders import Work
from tilec.bench.gpu import Gpu

_SHORT_US = 250.0  # cases with a shorter floor are replayed from a graph
_LEAST_CALL_US = 2.0  # of one call in a graph: a node alone takes about 1
_MOST_CALLS = 512


@dataclass(frozen=True)
class Settings:
    """How many rounds there are, and about how long one sample takes."""

    rounds: int = 15
    sample_us: float = 3000.0


@dataclass(frozen=True)
class Sampler:
    """Enqueues `calls` calls `repeats` times, and gives what one call took."""

    gpu: Gpu
    enqueue: Callable[[], object]
    calls: int
    repeats: int
    method: str

    def sample_us(self) -> float:
        def enqueue() -> None:
            for _ in range(self.repeats):
                self.enqueue()

        return self.gpu.time_us(enqueue) / (self.calls * self.repeats)


def sampler(
    gpu: Gpu, work: Work, sets: Sequence[Buffers], floor_us: float, settings: Settings
) -> Sampler:
    """A contender on its buffers, warmed up."""
    alive: deque[object] = deque(maxlen=len(sets))

    def several(count: int) -> None:
        for number in range(count):
            alive.append(work(sets[number % len(sets)]))

    several(max(3, len(sets)))  # the first call of each set may prepare something
    gpu.synchronise()
    if floor_us < _SHORT_US:
        wanted = ceil(settings.sample_us / max(floor_us, _LEAST_CALL_US))
        calls = min(_MOST_CALLS, max(wanted, len(sets)))
        replay = gpu.captured(lambda: several(calls))
        replay()
        repeats = max(1, round(settings.sample_us / max(gpu.time_us(replay), 1.0)))
        return Sampler(gpu, replay, calls, repeats, f"{repeats} graphs of {calls} calls")
    once_us = gpu.time_us(lambda: several(3)) / 3
    calls = max(len(sets), ceil(settings.sample_us / once_us))
    return Sampler(gpu, lambda: several(calls), calls, 1, f"{calls} calls")


def sampled(samplers: Mapping[str, Sampler], rounds: int) -> dict[str, tuple[float, ...]]:
    """The samples of each contender: one a round, in random order.

    Ratios are then taken between neighbours in time: a card that throttles slows all alike.
    """
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    order = list(samplers)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            samples[name].append(samplers[name].sample_us())
    return {name: tuple(found) for name, found in samples.items()}
