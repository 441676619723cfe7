"""What pipelines cost by each way to run them: the caller's time, and the time until all is done.

    tilec build tests/pipelines/programs/{mlp,chain,diamond}.tile -o build/pipelines
    python -m benchmarks.pipeline_cost [--save]

Needs a GPU and torch. The kernels are so small that launching them is what takes the time: an MLP
of four launches, a chain of a hundred. A sample is the time of a burst of calls by their number,
with no more launches than the GPU's queue holds. Contenders take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import quantiles

import torch

import tilec.runtime as rt
from tilec.bench.target import target_of
from tilec.bench.torch_gpu import torch_gpu

RESULTS = Path(__file__).parent / "results"
# Where the cubins are: `tilec build` puts them there.
BUILD = Path(os.environ.get("TILEC_BUILD", "build")) / "pipelines"
QUEUED = 512  # launches in a burst
ROUNDS = 51
M, D, F = 64, 128, 256  # of the MLP
ELEMENTS = 4096  # of the chain

Calls = dict[str, Callable[[], object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/")
    save = parser.parse_args().save
    with torch.cuda.stream(torch.cuda.Stream()):
        found = {
            "mlp, 4 launches": measured(_of_mlp(), 4),
            "chain, 100 launches": measured(_of_chain(), 100),
        }
    built_by = asdict(_module("mlp").manifest.toolchain)
    environment = {**torch_gpu().environment(), "built_by": built_by}
    print(f"Pipelines, {environment['card']}, Python {environment['python']}; µs (median, IQR)\n")
    print("| pipeline | by | caller | until done |\n| --- | --- | ---: | ---: |")
    for pipeline, ways in found.items():
        for way, times in ways.items():
            told = (f"{one['median']:.2f} ({one['iqr']:.2f})" for one in times.values())
            print(f"| {pipeline} | {way} | {' | '.join(told)} |")
    if save:
        card = str(environment["card"]).replace(" ", "-").lower()
        path = RESULTS / f"pipeline_cost-{card}.json"
        told = {"environment": environment, "microseconds": found}
        path.write_text(json.dumps(told, indent=1) + "\n")
        print(f"\n{path}")


def measured(calls: Calls, launches: int) -> dict[str, dict[str, dict[str, float]]]:
    """Of each contender the caller's time and the time until all is done."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    burst = max(1, QUEUED // launches)
    for call in calls.values():
        _burst_us(call, burst)  # warm-up: the first call loads modules
    order = list(calls)
    shuffle = random.Random(0).shuffle
    for _ in range(ROUNDS):
        shuffle(order)
        for name in order:
            samples[name].append(_burst_us(calls[name], burst))
    return {
        name: {
            what: _spread([one[number] for one in taken])
            for number, what in enumerate(("caller", "until_done"))
        }
        for name, taken in samples.items()
    }


def _burst_us(call: Callable[[], object], burst: int) -> tuple[float, float]:
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(burst):
        call()
    given = time.perf_counter_ns()
    torch.cuda.synchronize()
    done = time.perf_counter_ns()
    return (given - start) / 1e3 / burst, (done - start) / 1e3 / burst


def _spread(samples: list[float]) -> dict[str, float]:
    low, middle, high = quantiles(samples, n=4)
    return {"median": middle, "iqr": high - low, "n": len(samples)}


def _module(name: str) -> rt.Module:
    target = os.environ.get("TILEC_TARGET") or target_of(torch_gpu().capability)
    return rt.load(BUILD / f"{name}.{target}.cubin")


def _of_mlp() -> Calls:
    module = _module("mlp")
    shapes = (M, D), (M, D), (D, F), (F, D), (D, F), (M, F), (M, F), (M, F)
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]
    y, x, w1, w2, w3, g, u, h = tensors

    def one_by_one() -> None:
        module.matmul.launch(g, x, w1)
        module.matmul.launch(u, x, w3)
        module.gate.launch(h, g, u)
        module.matmul.launch(y, h, w2)

    one_by_one()
    expected = y.clone()
    calls = _ways(module.mlp, (y, x, w1, w2, w3))
    for name, call in calls.items():
        y.zero_()
        call()
        if not torch.equal(y, expected):
            raise SystemExit(f"{name}: wrong results")
    return {"its kernels, launched one by one": one_by_one, **calls}


def _of_chain() -> Calls:
    x = torch.zeros(ELEMENTS, device="cuda")
    y = torch.empty_like(x)
    calls = _ways(_module("chain").chain, (y, x))
    expected = 4950.0 * (torch.arange(ELEMENTS, device="cuda") % 8)
    for name, call in calls.items():
        y.zero_()
        call()
        if not torch.equal(y, expected):
            raise SystemExit(f"{name}: wrong results")
    return calls


def _ways(pipeline: rt.PipelineLauncher, given: tuple[torch.Tensor, ...]) -> Calls:
    """All ways to run a pipeline, each with what it needs; and PyTorch's capture as a rival."""
    workspace = torch.empty(
        max(1, pipeline.workspace_bytes(*given)), dtype=torch.uint8, device="cuda"
    )
    graph = pipeline.graph(*given)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        pipeline.launch(*given)
    return {
        "launch": lambda: pipeline.launch(*given),
        "launch, workspace given": lambda: pipeline.launch(*given, workspace=workspace),
        "launch, 4 streams": lambda: pipeline.launch(*given, streams=4),
        "graph, replay": graph.replay,
        "captured by PyTorch, replay": captured.replay,
    }


if __name__ == "__main__":
    main()
