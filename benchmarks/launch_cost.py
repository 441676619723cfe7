"""What a launch costs the caller: contract, arguments, driver; not what the GPU does.

    python -m benchmarks.launch_cost [--save]

Needs a GPU, torch, and a built `kernels/add.tile` (benchmarks/README.md). Each contender launches
work on 1024 elements; a sample is the time of a burst of launches, shorter than the GPU's queue so
that no launch waits for room in it, by their number. Contenders take turns.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from unittest import mock

import torch
from cuda.bindings import driver as bindings
from cuda.core import LaunchConfig, Stream
from cuda.core import launch as core_launch

import tilec.runtime as rt
from tilec.bench.samples import Contender
from tilec.bench.target import target_of
from tilec.bench.torch_gpu import torch_gpu
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.python import emit_python
from tilec.runtime import native

RESULTS = Path(__file__).parent / "results"
# Where the cubins are: `tilec build kernels/*.tile -o build` puts them there.
BUILD = Path(os.environ.get("TILEC_BUILD", "build"))
ELEMENTS = 1024
BURST = 256
ROUNDS = 101
# By what launches are compared, since hosts differ by a half.
BARE = "bare cuda.bindings cuLaunchKernel"

Calls = dict[str, Callable[[], object]]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a launch costs the caller.")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/")
    save = parser.parse_args().save
    with torch.cuda.stream(torch.cuda.Stream()):
        contenders = measured(
            {
                **_launchers(),
                **_by_questions(),
                **_by_python_alone(),
                **_on_two_streams(),
                **_operations(),
                **_bare_launches(),
                **_torch_operations(),
                **_triton(),
            }
        )
    built_by = asdict(_module().manifest.toolchain)
    environment = {
        **torch_gpu().environment(),
        "built_by": built_by,
        "by_c": native.built() is not None,
        "reads_torch_in_c": native.reads_torch(),
    }
    print(f"Host time of a launch, {environment['card']}, Python {environment['python']}")
    way = native.why_not() or "launches go by C"
    read = "in one call" if native.reads_torch() else "by six questions"
    print(f"{way}; tensors of torch {torch.__version__} are read {read}\n")
    [bare] = (one.median_us for one in contenders if one.name == BARE)
    print("| contender | µs (median) | IQR | by bare |\n| --- | ---: | ---: | ---: |")
    for one in contenders:
        times = f"{one.median_us:.2f} | {one.spread_us:.2f} | {one.median_us / bare:.2f}"
        print(f"| {one.name} | {times} |")
    if save:
        _save(contenders, environment)


def measured(calls: Calls) -> list[Contender]:
    """The samples of every contender, taken in turns in random order."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        _burst_us(call)  # warm-up: the first call loads modules
    order = list(calls)
    shuffle = random.Random(0).shuffle
    for _ in range(ROUNDS):
        shuffle(order)
        for name in order:
            samples[name].append(_burst_us(calls[name]))
    return [Contender(name, tuple(samples[name])) for name in calls]


def _burst_us(call: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(BURST):
        call()
    took_us = (time.perf_counter_ns() - start) / 1e3
    torch.cuda.synchronize()
    return took_us / BURST


def _torch_tensors() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(ELEMENTS, device="cuda")
    return torch.empty_like(x), x


def _runtime_tensors() -> tuple[rt.Tensor, rt.Tensor]:
    return rt.empty((ELEMENTS,), "f32"), rt.to_device(torch.ones(ELEMENTS).numpy())


def _module() -> rt.Module:
    target = os.environ.get("TILEC_TARGET") or target_of(torch_gpu().capability)
    return rt.load(BUILD / f"add.{target}.cubin")


def _launchers() -> Calls:
    """Our launches, contract and all, each checked once."""
    add = _module().add
    z, x = _torch_tensors()
    own_z, own_x = _runtime_tensors()
    stream = torch.cuda.current_stream()
    add(z, x, x)
    add(own_z, own_x, own_x)
    if not torch.equal(z, x + x) or (own_z.numpy() != 2).any():
        raise SystemExit("wrong results")
    return {
        "tilec, torch tensors": lambda: add.launch(z, x, x),
        "tilec, torch tensors, stream given": lambda: add.launch(z, x, x, stream=stream),
        "tilec, rt.Tensor": lambda: add.launch(own_z, own_x, own_x),
        "tilec, rt.Tensor, stream given": lambda: add.launch(own_z, own_x, own_x, stream=stream),
        # Who gives an address may destroy its stream: it is asked about at once.
        "tilec, torch tensors, address of the stream given": lambda: add.launch(
            z, x, x, stream=stream.cuda_stream
        ),
    }


class _Asked(torch.Tensor):
    """Is read by the questions of Python's protocols, as tensors of PyTorch before 2.10 are."""

    __torch_function__ = torch._C._disabled_torch_function_impl


def _by_questions() -> Calls:
    """Ours where PyTorch does not say to C what its tensors are."""
    z, x = (one.as_subclass(_Asked) for one in _torch_tensors())
    add = _module().add
    add(z, x, x)
    return {"tilec, torch tensors by six questions": lambda: add.launch(z, x, x)}


def _by_python_alone() -> Calls:
    """Ours where there is no C compiler."""
    if native.built() is None:
        return {}
    z, x = _torch_tensors()
    own_z, own_x = _runtime_tensors()
    add = _module().add
    with mock.patch.object(native, "_BUILT", None):
        for _ in range(2):  # the first tells how many devices there are
            add.launch(z, x, x).wait()
            add.launch(own_z, own_x, own_x).wait()
    return {
        "tilec by Python alone, torch tensors": lambda: add.launch(z, x, x),
        "tilec by Python alone, rt.Tensor": lambda: add.launch(own_z, own_x, own_x),
    }


def _triton() -> Calls:
    """The same by Triton, where it is."""
    try:
        from benchmarks.triton_add import add
    except ImportError:
        return {}
    z, x = _torch_tensors()
    add(z, x, x)
    if not torch.equal(z, x + x):
        raise SystemExit("wrong results")
    return {"Triton": lambda: add(z, x, x)}


def _on_two_streams() -> Calls:
    """Launches in turns on two streams, of tensors that are apart: all borrows are compared."""
    add = _module().add
    streams = [torch.cuda.Stream() for _ in range(2)]
    tensors = [_runtime_tensors() for _ in streams]
    turns = cycle(zip(streams, tensors, strict=True))

    def launch() -> None:
        stream, (z, x) = next(turns)
        add.launch(z, x, x, stream=stream)

    return {"tilec, rt.Tensor, two streams in turn": launch}


def _operations() -> Calls:
    """The operations of PyTorch that `--emit python` gives, beside one that PyTorch makes of a
    function."""
    module = _module()
    folder = Path(mkdtemp())
    cubin = BUILD / f"add.{module.manifest.target}.cubin"
    (folder / cubin.name).write_bytes(cubin.read_bytes())
    artifact = Artifact(module.manifest, cubin.read_bytes())
    for name, content in emit_python([artifact], "add", EmitOptions()).items():
        (folder / name).write_bytes(content)
    sys.path.insert(0, str(folder))
    operations = importlib.import_module("add_torch")
    z, x = _torch_tensors()
    add = module.add

    def by_custom_op(z: torch.Tensor, x: torch.Tensor) -> None:
        add.launch(z, x, x)

    custom = torch.library.custom_op("launch_cost::add", by_custom_op, mutates_args=("z",))
    operations.add_out(z, x, x)
    if not torch.equal(z, x + x) or not torch.equal(operations.add(x, x), z):
        raise SystemExit("wrong results")
    return {
        "tilec, operation add_out(z, x, y)": lambda: operations.add_out(z, x, x),
        "tilec, operation z = add(x, y)": lambda: operations.add(x, x),
        "tilec in torch.library.custom_op": lambda: custom(z, x),
        "torch z = x + y": lambda: torch.add(x, x),
    }


def _bare_launches() -> Calls:
    """The same kernel by the two ways that Python has, with arguments that are ready: no contract.

    `cuLaunchKernel` is what `tilec.runtime` uses.
    """
    module = _module()
    z, x = _torch_tensors()
    plan = module.add.plan(z, x, x)
    module.add(z, x, x)
    assert plan.grid is not None and plan.device is not None, "there are elements and a device"
    kernel = module.code().kernel(plan.variant, plan.device)
    address = torch.cuda.current_stream().cuda_stream

    config = LaunchConfig(grid=plan.grid, block=(plan.variant.threads, 1, 1))
    core_stream = Stream.from_handle(address)

    cells = array("Q", plan.arguments)
    base, count = cells.buffer_info()
    pointers = array("Q", [base + cells.itemsize * index for index in range(count)])
    parameters, _ = pointers.buffer_info()
    function, stream = bindings.CUfunction(int(kernel.handle)), bindings.CUstream(address)
    geometry = (*plan.grid, plan.variant.threads, 1, 1, 0)

    def by_bindings(_held: object = (cells, pointers)) -> None:
        bindings.cuLaunchKernel(function, *geometry, stream, parameters, 0)

    return {
        "bare cuda.core.launch": lambda: core_launch(core_stream, config, kernel, *plan.arguments),
        BARE: by_bindings,
    }


def _torch_operations() -> Calls:
    z, x = _torch_tensors()
    one = torch.zeros(1, device="cuda")
    return {
        "torch.add(out=)": lambda: torch.add(x, x, out=z),
        "torch add_ of one element": lambda: one.add_(1),
    }


def _save(contenders: list[Contender], environment: dict[str, object]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"launch_cost-{str(environment['card']).replace(' ', '-').lower()}.json"
    found = {
        "environment": environment,
        "microseconds": {
            c.name: {"median": median(c.samples), "iqr": c.spread_us, "samples": c.samples}
            for c in contenders
        },
    }
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
