"""Attention, its formula in a loop (`attention.tile`), against the back ends that torch has.

    tilec build benchmarks/attention.tile -o build
    python -m benchmarks.attention [--save]

Needs a GPU of compute capability 9.0 and torch. Each is compared with float64 first. A sample is
the time of some calls by events, after a pause; contenders take turns, each round another one
first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import tilec.runtime as rt
from tilec.bench.samples import Contender
from tilec.bench.target import target_of
from tilec.bench.torch_gpu import torch_gpu

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("TILEC_BUILD", "build"))
DEPTHS = (128, 64)
# Keys, and heads of all batches: 16k tokens of 16 heads.
SHAPES = ((1024, 256), (4096, 64), (16384, 16))
ROUNDS, CALLS = 9, 6
LARGEST_ERROR = 4e-3  # of the norm; bf16 rounds by 2e-3
PAUSE_CYCLES = 8_000_000
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}

Call = Callable[[], torch.Tensor]


def calls(
    kernel: rt.Launcher, keys: int, heads: int, depth: int, *, is_causal: bool
) -> dict[str, Call]:
    q, k, v = (
        torch.randn(heads, keys, depth, device="cuda", dtype=torch.bfloat16) for _ in range(3)
    )
    o = torch.empty_like(q)
    scale = math.log2(math.e) / math.sqrt(depth)

    def ours() -> torch.Tensor:
        kernel(o, q, k, v, scale)
        return o

    def of(backend: SDPBackend) -> Call:
        def call() -> torch.Tensor:
            with sdpa_kernel(backend):
                return functional.scaled_dot_product_attention(
                    q[None], k[None], v[None], is_causal=is_causal
                )[0]

        return call

    found = {"tilec": ours, **{name: of(backend) for name, backend in BACKENDS.items()}}
    scores = q[:1].double() @ k[:1].double().mT / math.sqrt(depth)
    if is_causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    exact = torch.softmax(scores, -1) @ v[:1].double()
    for name, call in found.items():
        o.fill_(math.nan)
        error = ((call()[:1].double() - exact).norm() / exact.norm()).item()
        if not error <= LARGEST_ERROR:
            raise SystemExit(f"{name}, {keys} keys of {depth}: off by {error:.1e} of the norm")
    return found


def measured(found: dict[str, Call]) -> Iterator[Contender]:
    samples: dict[str, list[float]] = {name: [] for name in found}
    names = list(found)
    for turn in range(ROUNDS):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            found[name]()
            torch.cuda._sleep(PAUSE_CYCLES)
            start.record()
            for _ in range(CALLS):
                found[name]()
            end.record()
            torch.cuda.synchronize()
            samples[name].append(start.elapsed_time(end) * 1000 / CALLS)
    for name, times in samples.items():
        yield Contender(name, tuple(times))


def main() -> None:
    parser = argparse.ArgumentParser(description="Attention against torch's back ends.")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/")
    save = parser.parse_args().save
    module = rt.load(BUILD / f"attention.{target_of(torch_gpu().capability)}.cubin")
    environment = {**torch_gpu().environment(), "built_by": asdict(module.manifest.toolchain)}
    print(
        f"TFLOP/s, {environment['card']}\n\n"
        "| mask | D | keys | tilec | cudnn | flash | best rival by ours |"
    )
    print("| :--- | ---: | ---: | ---: | ---: | ---: | ---: |")
    told = {}
    for is_causal, depth, (keys, heads) in product((False, True), DEPTHS, SHAPES):
        kernel = module.causal_attention if is_causal else module.attention
        found = calls(kernel, keys, heads, depth, is_causal=is_causal)
        contenders = list(measured(found))
        flops = 4 * heads * keys * keys * depth / (1 + is_causal)
        rates = [f"{flops / one.median_us / 1e6:.0f}" for one in contenders]
        best = min(one.median_us for one in contenders[1:]) / contenders[0].median_us
        mask = "causal" if is_causal else "none"
        row = (mask, str(depth), str(keys), *rates, f"{best:.3f}")
        print(f"| {' | '.join(row)} |", flush=True)
        name = f"{heads}x{keys}x{depth}" + (" causal" if is_causal else "")
        told[name] = {
            one.name: {"median": one.median_us, "iqr": one.spread_us, "samples": one.samples}
            for one in contenders
        }
    if save:
        name = f"attention-{str(environment['card']).replace(' ', '-').lower()}.json"
        path = HERE / "results" / name
        path.write_text(
            json.dumps({"environment": environment, "microseconds": told}, indent=1) + "\n"
        )
        print(f"\n{path}")


if __name__ == "__main__":
    main()
