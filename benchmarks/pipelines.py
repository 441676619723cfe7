"""What pipelines take: synchronous, on one stream, on several, as graphs; against PyTorch.

    tilec build benchmarks/pipelines.tile -I kernels
    python -m benchmarks.pipelines [--save] [--times FOLDER]

Needs a GPU and torch. `wall` is the time of a call in a row of calls, until all of them are done;
`host` is what a call keeps the caller for. Contenders take turns, in random order. Before they are
timed, all ways must give the same bits, and the right ones.

The trace is what CUPTI tells `torch.profiler` of one call in each way: which launch ran from when
to when, on which stream. `--times` writes it for `tilec inspect --dot --times`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)

import tilec.runtime as rt
from tilec.bench.samples import Contender
from tilec.bench.target import target_of
from tilec.bench.torch_gpu import torch_gpu

RESULTS = Path(__file__).parent / "results"
BUILD = Path(os.environ.get("TILEC_BUILD", "build"))
ROUNDS = 25
SAMPLE_MS = 2.0
STREAMS = 4

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A pipeline on some tensors. `torch_calls` are rivals that compute the same."""

    name: str
    pipeline: str
    arguments: tuple[object, ...]
    launches: int
    outputs: tuple[torch.Tensor, ...]
    expected: tuple[torch.Tensor, ...]
    tolerance: float  # the largest difference, by the largest number that is expected
    torch_calls: Mapping[str, Call]


def main() -> None:
    parser = argparse.ArgumentParser(description="What pipelines take.")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/")
    parser.add_argument("--times", type=Path, help="where to write times for `tilec inspect`")
    parser.add_argument("--only", default="", help="cases with this in their name")
    given = parser.parse_args()
    target = os.environ.get("TILEC_TARGET") or target_of(torch_gpu().capability)
    module = rt.load(BUILD / f"pipelines.{target}.cubin")
    environment = {**torch_gpu().environment(), "built_by": asdict(module.manifest.toolchain)}
    print(f"{environment['card']}, Python {environment['python']}, torch {environment['torch']}")
    found: dict[str, object] = {}
    with torch.cuda.stream(torch.cuda.Stream()):
        for case in _cases():
            if given.only in case.name:
                found[case.name] = _measured(module, case, given.times)
    if given.save:
        card = str(environment["card"]).replace(" ", "-").lower()
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"pipelines-{card}.json"
        path.write_text(json.dumps({"environment": environment, "cases": found}, indent=1) + "\n")
        print(f"\n{path}")


# ---- the cases -----------------------------------------------------------------------------------


def _cases() -> Iterator[Case]:
    yield _chain(1024)
    yield _mlp(128)
    yield _mlp(4096)
    yield _branches(16 * 1024, 40_000)


def _chain(n: int) -> Case:
    x, y = torch.randn(n, device="cuda"), torch.empty(n, device="cuda")
    buffers = [torch.empty_like(x) for _ in range(2)]

    def by_torch() -> None:
        last = x
        for turn in range(99):
            torch.add(last, 1.0, out=buffers[turn % 2])
            last = buffers[turn % 2]
        torch.add(last, 1.0, out=y)

    by_torch()
    expected = (y.clone(),)
    return Case(f"chain {n}", "chain", (y, x, 1.0), 100, (y,), expected, 0.0, _torch_ways(by_torch))


def _mlp(m: int, d: int = 1024, f: int = 4096) -> Case:
    def made(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(shape, device="cuda") * scale).bfloat16()

    x, before, after, bias = made(m, d), made(d), made(d), made(f)
    up, down = made(f, d, scale=d**-0.5), made(d, f, scale=f**-0.5)
    z, total = torch.empty_like(x), torch.empty_like(x)

    def by_torch() -> tuple[torch.Tensor, torch.Tensor]:
        normal = F.rms_norm(x, (d,), before, 1e-5)
        wide = F.gelu(F.linear(normal, up, bias), approximate="tanh")
        added = x + F.linear(wide, down)
        return F.rms_norm(added, (d,), after, 1e-5), added

    def exact() -> tuple[torch.Tensor, torch.Tensor]:
        wide = [one.double() for one in (x, before, up, bias, down, after)]
        x64, before64, up64, bias64, down64, after64 = wide
        normal = F.rms_norm(x64, (d,), before64, 1e-5)
        added = x64 + F.linear(F.gelu(F.linear(normal, up64, bias64), approximate="tanh"), down64)
        return F.rms_norm(added, (d,), after64, 1e-5), added

    arguments = (z, total, x, before, up, bias, down, after, 1e-5)
    # Five roundings to bf16 of 2^-9 each, of numbers that are not larger than the largest.
    ways = _torch_ways(by_torch)
    return Case(f"mlp {m}x{d}x{f}", "mlp", arguments, 4, (z, total), exact(), 5 * 2.0**-9, ways)


def _branches(n: int, turns: int) -> Case:
    x, y = torch.randn(n, device="cuda"), torch.empty(n, device="cuda")
    t = x.clone()
    for _ in range(min(turns, 200)):  # by then it is 2, and stays so
        t = t * 0.5 + 1.0
    return Case(f"branches {n}", "branches", (y, x, turns), 5, (y,), (t + t + t + t,), 0.0, {})


def _torch_ways(call: Call) -> dict[str, Call]:
    """PyTorch as it is, and its calls captured into a CUDA graph."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return {"torch": call, "torch, graph": graph.replay}


# ---- measuring -----------------------------------------------------------------------------------


def _measured(module: rt.Module, case: Case, times: Path | None) -> dict[str, object]:
    pipeline = getattr(module, case.pipeline)
    graph = pipeline.graph(*case.arguments)
    calls: dict[str, Call] = {
        "synchronous": lambda: pipeline(*case.arguments),
        "one stream": lambda: pipeline.launch(*case.arguments),
        f"{STREAMS} streams": lambda: pipeline.launch(*case.arguments, streams=STREAMS),
        "graph": graph.replay,
    }
    _check(case, calls)
    calls |= case.torch_calls
    workspace = pipeline.workspace_bytes(*case.arguments)
    samples = _samples(calls)
    print(f"\n{case.name}: {case.launches} launches, {workspace} bytes of workspace\n")
    print("| | µs a call (wall) | IQR | µs a launch | µs of the caller |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, (wall, host) in samples.items():
        each = wall.median_us / case.launches
        print(f"| {name} | {wall.median_us:.2f} | {wall.spread_us:.2f} | {each:.3f} "
              f"| {host.median_us:.2f} |", flush=True)  # fmt: skip
    traces = {name: trace for name in ("one stream", f"{STREAMS} streams", "graph")
              if (trace := _trace(calls[name], in_order=name != "graph"))}  # fmt: skip
    for name, trace in traces.items():
        busy, span, beside = _overlap(trace)
        print(f"{name}: kernels take {busy:.2f} µs in all, from first to last {span:.2f} µs; "
              f"for {beside:.2f} µs more than one runs")  # fmt: skip
    if times is not None and len(traces.get("one stream", ())) == case.launches:
        times.mkdir(parents=True, exist_ok=True)
        own = {str(n): us for n, us in enumerate(_own(traces["one stream"]))}
        (times / f"{case.name.replace(' ', '-')}.json").write_text(json.dumps(own) + "\n")
    return {
        "launches": case.launches,
        "workspace_bytes": workspace,
        "microseconds": {
            name: {"wall": median(wall.samples), "iqr": wall.spread_us,
                   "a_launch": median(wall.samples) / case.launches,
                   "host": median(host.samples), "samples": wall.samples}
            for name, (wall, host) in samples.items()
        },
        "traces": traces,
    }  # fmt: skip


def _check(case: Case, calls: Mapping[str, Call]) -> None:
    """Each way is right, and all give the same bits."""
    first: list[torch.Tensor] = []
    for name, call in calls.items():
        for output in case.outputs:
            output.view(torch.uint8).fill_(0xFF)
        call()
        torch.cuda.synchronize()
        for output, expected in zip(case.outputs, case.expected, strict=True):
            off = (output.double() - expected.double()).abs().max().item()
            allowed = case.tolerance * expected.double().abs().max().item()
            if not off <= allowed:
                raise SystemExit(f"{case.name}, {name}: off by {off}, allowed is {allowed}")
        got = [output.clone() for output in case.outputs]
        first = first or got
        if not all(map(torch.equal, first, got)):
            raise SystemExit(f"{case.name}, {name}: other bits than the first way")


def _samples(calls: Mapping[str, Call]) -> dict[str, tuple[Contender, Contender]]:
    """Of each contender the time of a call as a whole, and of the caller."""
    counts = {name: _count(call) for name, call in calls.items()}
    wall: dict[str, list[float]] = {name: [] for name in calls}
    host: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    shuffle = random.Random(0).shuffle
    for _ in range(ROUNDS):
        shuffle(order)
        for name in order:
            returned, done = _sample_us(calls[name], counts[name])
            host[name].append(returned)
            wall[name].append(done)
    return {
        name: (Contender(name, tuple(wall[name])), Contender(name, tuple(host[name])))
        for name in calls
    }


def _count(call: Call) -> int:
    """How many calls make a sample."""
    _sample_us(call, 3)
    return max(3, min(200, int(SAMPLE_MS * 1e3 / _sample_us(call, 3)[1])))


def _sample_us(call: Call, count: int) -> tuple[float, float]:
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(count):
        call()
    returned = time.perf_counter_ns() - start
    torch.cuda.synchronize()
    return returned / 1e3 / count, (time.perf_counter_ns() - start) / 1e3 / count


# ---- the trace -----------------------------------------------------------------------------------


def _trace(call: Call, *, in_order: bool) -> list[dict[str, object]]:
    """The kernels of one call, in the order in which they were launched, or else began.

    Nothing where the profiler sees no kernels.
    """
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True
    ) as profiled:
        call()
        torch.cuda.synchronize()
    events = [
        one
        for one in profiled.profiler.kineto_results.events()
        if "CUDA" in str(one.device_type()) and not one.name().startswith(("Mem", "Event", "Cont"))
    ]
    key = (lambda one: one.correlation_id()) if in_order else (lambda one: one.start_ns())
    events.sort(key=key)
    begin = min((one.start_ns() for one in events), default=0)
    return [
        {
            "launch": number,
            "kernel": one.name(),
            "stream": one.device_resource_id(),
            "start_us": (one.start_ns() - begin) / 1e3,
            "end_us": (one.start_ns() - begin + one.duration_ns()) / 1e3,
            "us": one.duration_ns() / 1e3,
        }
        for number, one in enumerate(events)
    ]


def _own(trace: list[dict[str, object]]) -> Iterator[float]:
    """What each launch of one stream takes; one that starts early waits for the one before it."""
    before = 0.0
    for one in trace:
        yield one["end_us"] - max(one["start_us"], before)
        before = one["end_us"]


def _overlap(trace: list[dict[str, object]]) -> tuple[float, float, float]:
    """What kernels take in all, from the first start to the last end, and while two or more run."""
    edges = sorted([(one["start_us"], 1) for one in trace] + [(one["end_us"], -1) for one in trace])
    beside, running, last = 0.0, 0, 0.0
    for at, change in edges:
        if running > 1:
            beside += at - last
        running, last = running + change, at
    busy = sum(one["us"] for one in trace)
    return busy, edges[-1][0] - edges[0][0], beside


if __name__ == "__main__":
    main()
