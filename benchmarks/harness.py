"""Contenders against each other on one GPU: interleaved, on rotating buffers, checked first.

Each round samples every contender once, in random order, so that ratios are taken between
neighbours in time and a throttling card slows all alike. Every case has a copy of as many bytes
among its contenders: the fraction of the copy rate is a ratio of the same rounds.

A sample is the time between two events around several calls, divided by their number, queued
behind a sleeping kernel so that no launch latency is in it. Short calls are replayed from a CUDA
graph. Calls go round over as many sets of buffers as do not fit the L2 cache together.
"""

from __future__ import annotations

import json
import platform
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from math import ceil
from pathlib import Path

import torch

from benchmarks.summary import Comparison, Contender, record, table

RESULTS = Path(__file__).parent / "results"
ROUNDS = 31
SHORT_US = 250.0  # below this, calls are replayed from a graph
SAMPLE_US = 4000.0  # about how long one sample takes
SLEEP_CYCLES = 400_000  # about 0.2 ms: more than queueing a sample takes
L2_MULTIPLE = 4  # how many times the L2 the sets of buffers are together
MOST_CALLS = 512

Buffers = tuple[torch.Tensor, ...]  # the output first


@dataclass(frozen=True)
class Case:
    """One workload at one size.

    `make` gives a set of buffers, the output first. `reference` gives the right output of a set
    in float64; `tolerance` is what a right output may differ by, relative and absolute.
    """

    name: str
    make: Callable[[], Buffers]
    contenders: dict[str, Callable[..., object]]  # called with the buffers; ours first
    reference: Callable[..., torch.Tensor]
    tolerance: float
    traffic_bytes: int


def run(name: str, cases: Sequence[Case], versions: dict[str, str]) -> None:
    """Run all cases, write `results/<name>-<card>.json` and print a table."""
    comparisons = [compare(case) for case in cases]
    environment = {**environment_of_card(), **versions}
    card = str(environment["card"]).replace(" ", "-").lower()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{card}.json"
    path.write_text(json.dumps(record(comparisons, environment), indent=1) + "\n")
    print(f"{name} on {environment['card']}, driver {environment['driver']}\n")
    print(table(comparisons))
    wrong = [f"{c.case}: {x.name}" for c in comparisons for x in c.contenders if (x.error or 0) > 1]
    if wrong:
        raise SystemExit(f"wrong results: {', '.join(wrong)}")


def compare(case: Case) -> Comparison:
    """Check every contender of a case, then time them against each other."""
    first = case.make()
    errors = {name: _error(call, first, case) for name, call in case.contenders.items()}
    sets = [first, *(case.make() for _ in range(_set_count(first) - 1))]
    copies = [_copy_buffers(case.traffic_bytes, first[0].device) for _ in sets]
    samplers = {
        name: _sampler(lambda i, call=call: call(*sets[i % len(sets)]), len(sets))
        for name, call in case.contenders.items()
    }
    samplers["copy"] = _sampler(
        lambda i: copies[i % len(copies)][0].copy_(copies[i % len(copies)][1]), len(sets)
    )
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    order = list(samplers)
    shuffle = random.Random(0).shuffle
    for _ in range(ROUNDS):
        shuffle(order)
        for name in order:
            samples[name].append(samplers[name].sample())
    contenders = tuple(Contender(n, tuple(s), errors.get(n)) for n, s in samples.items())
    method = ", ".join(f"{name}: {sampler.method}" for name, sampler in samplers.items())
    return Comparison(case.name, case.traffic_bytes, contenders, f"{len(sets)} sets; {method}")


def _error(call: Callable[..., object], buffers: Buffers, case: Case) -> float:
    """The largest difference from the reference by the tolerance; infinite if NaN is left."""
    output, *inputs = buffers
    output.fill_(float("nan"))
    call(*buffers)
    torch.cuda.synchronize()
    expected = case.reference(*inputs)
    allowed = case.tolerance * (1 + expected.abs())
    difference = ((output.double() - expected).abs() / allowed).max().item()
    return difference if difference == difference else float("inf")


def _set_count(buffers: Buffers) -> int:
    """How many sets are together `L2_MULTIPLE` times the L2, within half of the free memory."""
    size = sum(b.numel() * b.element_size() for b in buffers)
    properties = torch.cuda.get_device_properties(buffers[0].device)
    free, _ = torch.cuda.mem_get_info()
    wanted = ceil(L2_MULTIPLE * properties.L2_cache_size / size)
    return max(1, min(wanted, MOST_CALLS, free // (4 * size)))


def _copy_buffers(traffic_bytes: int, device: torch.device) -> Buffers:
    half = max(traffic_bytes // 2, 1)
    target = torch.empty(half, dtype=torch.uint8, device=device)
    return target, torch.zeros_like(target)


@dataclass(frozen=True)
class _Sampler:
    """Enqueues `calls` calls and gives what one took."""

    enqueue: Callable[[], object]
    calls: int
    method: str

    def sample(self) -> float:
        return _time_us(self.enqueue) / self.calls


def _sampler(call: Callable[[int], object], set_count: int) -> _Sampler:
    def several(count: int) -> None:
        for index in range(count):
            call(index)

    several(max(3, set_count))  # the first call of each set prepares it
    once_us = _time_us(lambda: several(8)) / 8
    calls = min(MOST_CALLS, max(set_count, ceil(SAMPLE_US / once_us)))
    if once_us >= SHORT_US:
        return _Sampler(lambda: several(calls), calls, f"{calls} calls")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        several(calls)
    graph.replay()
    return _Sampler(graph.replay, calls, f"graph of {calls} calls")


def _time_us(enqueue: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP_CYCLES)
    start.record()
    enqueue()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def environment_of_card() -> dict[str, object]:
    """The card, its driver and clocks, and the versions that rivals come in."""
    query = "name,driver_version,clocks.max.sm,clocks.max.memory,power.limit"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader", "-i", "0"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name, driver, sm_clock, memory_clock, power = (x.strip() for x in answer.split(","))
    return {
        "card": name,
        "driver": driver,
        "max_sm_clock": sm_clock,
        "max_memory_clock": memory_clock,
        "power_limit": power,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
    }
