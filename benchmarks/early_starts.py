"""Rows of launches with and without early starts: whether the results are the same, and how long.

    tilec build benchmarks/early_starts.tile -o build
    python -m benchmarks.early_starts [--save]

Needs a GPU of compute capability 9.0 or later, torch, a C compiler and cuda.h (`CUDA_HOME`). Every
kernel waits for the one before, whether or not it was started early; so the same code is compared
with itself, and what waiting costs alone is not told. A sample is the time of several rows by
events, divided by their number; the four ways take turns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import torch
from cuda.bindings import driver as bindings

import tilec.runtime as rt
from tilec.bench.samples import Contender
from tilec.bench.target import target_of
from tilec.bench.torch_gpu import torch_gpu
from tilec.runtime.encoding import encoded
from tilec.runtime.tiled_map import TiledMap

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("TILEC_BUILD", "build"))
CUDA = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
ROUNDS = 15
BLOCK = 1024  # elements of a program of `step`
WAYS = tuple((how, early) for how in ("stream", "graph") for early in (False, True))

Check = Callable[[], object]


class _Launch(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint),
        ("shared_bytes", ctypes.c_uint),
        ("cluster", ctypes.c_uint * 3),
        ("slots", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class Row:
    """Launches one after the other. `results` are what they write; `reset` makes all as before."""

    name: str
    launches: Sequence[_Launch]
    reset: Callable[[], None]
    results: Callable[[], list[torch.Tensor]]
    repeats: int


class Library:
    """`early_starts.c`, compiled."""

    def __init__(self, folder: Path) -> None:
        made = folder / "early_starts.so"
        command = ["cc", "-std=c99", "-O2", "-shared", "-fPIC", f"-I{CUDA / 'include'}"]
        subprocess.run([*command, HERE / "early_starts.c", "-o", made, "-ldl"], check=True)
        self._code = ctypes.CDLL(str(made))
        self._code.time_of.restype = ctypes.c_double
        for name in ("start_all", "make_graph", "replay", "time_of"):
            getattr(self._code, name).argtypes = _ARGUMENTS[name]
        if self._code.begin():
            raise SystemExit("the CUDA driver is older than 12.3")

    def graph(self, row: Row, early: bool) -> int:
        made = ctypes.c_void_p()
        self._expect(self._code.make_graph(*self._row(row), early, ctypes.byref(made)))
        assert made.value is not None, "a graph was made"
        return made.value

    def run(self, row: Row, early: bool, graph: int | None) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        if graph is None:
            self._expect(self._code.start_all(*self._row(row), early, stream))
        else:
            self._expect(self._code.replay(graph, stream))

    def time_us(self, row: Row, early: bool, graph: int | None, repeats: int) -> float:
        stream = torch.cuda.current_stream().cuda_stream
        took = float(self._code.time_of(*self._row(row), early, graph, repeats, stream))
        self._expect(took < 0)
        return took

    def _row(self, row: Row) -> tuple[Any, int]:
        return (_Launch * len(row.launches))(*row.launches), len(row.launches)

    def _expect(self, failed: int) -> None:
        if failed:
            raise SystemExit(f"the CUDA driver refuses: {failed}")


_ARGUMENTS: dict[str, Sequence[Any]] = {
    "start_all": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p),
    "make_graph": (ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p),
    "replay": (ctypes.c_void_p, ctypes.c_void_p),
    "time_of": (
        ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    ),
}  # fmt: skip


class Kernels:
    """Makes launches of the kernels of `early_starts.tile`; keeps what they name by address."""

    def __init__(self) -> None:
        target = os.environ.get("TILEC_TARGET") or target_of(torch_gpu().capability)
        self.module = rt.load(BUILD / f"early_starts.{target}.cubin")
        self._held: list[object] = []

    def launch(self, name: str, *arguments: object) -> _Launch:
        plan = self.module[name].plan(*arguments)
        assert plan.grid is not None and plan.device is not None, "there are elements and a device"
        assert plan.variant.starts_early, f"`{name}` is launched by pipelines"
        kernel = cast(Any, self.module.code()).kernel(plan.variant, plan.device)
        status, function = bindings.cuKernelGetFunction(kernel.handle)
        assert status == bindings.CUresult.CUDA_SUCCESS, status
        places = [self._place(one, plan) for one in plan.arguments]
        slots = (ctypes.c_void_p * len(places))(*places)
        self._held += [kernel, slots, arguments]
        variant = plan.variant
        return _Launch(
            int(function), plan.grid, variant.threads, variant.dynamic_smem_bytes, variant.cluster,
            ctypes.addressof(slots),
        )  # fmt: skip

    def _place(self, argument: Any, plan: Any) -> int:
        """Where an argument lies on the host."""
        if isinstance(argument, TiledMap):
            where = SimpleNamespace(device=plan.device, kernel=plan.kernel)
            made = encoded(argument, cast(Any, where))
            self._held.append(made)
            return made.place
        is_plain = isinstance(argument, int)
        text = argument.to_bytes(8, "little", signed=True) if is_plain else argument.tobytes()
        cell = ctypes.create_string_buffer(text, 8)
        self._held.append(cell)
        return ctypes.addressof(cell)


# ---- rows of launches ----------------------------------------------------------------------------


def rows(kernels: Kernels) -> Iterator[Row]:
    for blocks in (1, 132, 1056):
        yield _steps(kernels, blocks)
    for blocks, turns in ((16, 4000), (132, 1500), (1056, 150)):
        yield _stress(kernels, blocks, turns)
    for rows_, wide, inner in (
        (16, 2048, 4096),
        (128, 1024, 2048),
        (512, 2048, 4096),
        (2048, 4096, 4096),
    ):
        yield _layers(kernels, rows_, wide, inner)


def _numbers(count: int) -> torch.Tensor:
    return torch.randint(-(2**31), 2**31 - 1, (count,), dtype=torch.int32, device="cuda")


def _steps(kernels: Kernels, blocks: int) -> Row:
    """A hundred steps to and fro: each block reads what two blocks of the step before wrote."""
    first = _numbers(blocks * BLOCK)
    one, other = first.clone(), first.clone()
    pairs = [(other, one), (one, other)] * 50
    launches = [kernels.launch("step", *pair) for pair in pairs]
    name = f"100 steps of {blocks} blocks"
    return Row(name, launches, lambda: _reset((one, first)), lambda: [one, other], 20)


def _stress(kernels: Kernels, blocks: int, turns: int) -> Row:
    """A long launch that reads and writes at its very end, and short ones that write what it reads
    and read what it wrote, also by way of one that has nothing to do with either."""
    first = _numbers(blocks * BLOCK)
    x, y, z, few = first.clone(), first.clone(), first.clone(), _numbers(5 * BLOCK)
    few_too = few.clone()
    launches = [
        kernels.launch("slow", y, x, turns),
        kernels.launch("step", few_too, few),
        kernels.launch("step", x, y),
        kernels.launch("step", few, few_too),
        kernels.launch("step", z, y),
    ]
    kept = few.clone()
    name = f"{turns} turns of {blocks} blocks, then short ones"
    return Row(name, launches, lambda: _reset((x, first), (few, kept)), lambda: [x, y, z], 10)


def _layers(kernels: Kernels, count: int, wide: int, inner: int) -> Row:
    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda").to(torch.bfloat16)

    x, n, y = normal(count, wide), normal(count, wide), normal(count, wide)
    h, s = normal(count, inner), normal(count, inner)
    up, down = normal(inner, wide) / wide**0.5, normal(wide, inner) / inner**0.5
    layer = [
        kernels.launch("normed", n, x),
        kernels.launch("product", h, n, up),
        kernels.launch("silu", s, h),
        kernels.launch("product", y, s, down),
    ]
    name = f"6 layers of {count}x{wide}x{inner}"
    return Row(name, layer * 6, lambda: _reset((y, x)), lambda: [h, y], 10)


def _reset(*pairs: tuple[torch.Tensor, torch.Tensor]) -> None:
    for one, kept in pairs:
        one.copy_(kept)


# ---- measuring -----------------------------------------------------------------------------------


def measured(row: Row, library: Library) -> list[Contender]:
    """Each way, after its results were compared with those of a stream without early starts."""
    graphs = {
        (how, early): library.graph(row, early) if how == "graph" else None for how, early in WAYS
    }
    wanted: list[torch.Tensor] = []
    for (how, early), graph in graphs.items():
        for _ in range(20):
            row.reset()
            library.run(row, early, graph)
            found = [tensor.clone() for tensor in row.results()]
            wanted = wanted or found
            if not all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True)):
                raise SystemExit(f"{row.name}, {how}, early {early}: wrong results")
    samples: dict[tuple[str, bool], list[float]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, graph in graphs.items():
            took = library.time_us(row, way[1], graph, row.repeats)
            samples[way].append(took / len(row.launches))
    return [Contender(_name(way), tuple(samples[way])) for way in WAYS]


def _name(way: tuple[str, bool]) -> str:
    how, early = way
    return f"{how}, {'early' if early else 'in turn'}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows of launches, with and without early starts.")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/")
    save = parser.parse_args().save
    kernels, found = Kernels(), {}
    environment = {
        **torch_gpu().environment(),
        "built_by": asdict(kernels.module.manifest.toolchain),
    }
    print(f"Microseconds a launch, {environment['card']}\n")
    print(f"| row | {' | '.join(map(_name, WAYS))} |\n| --- |{' ---: |' * len(WAYS)}")
    with tempfile.TemporaryDirectory() as folder, torch.cuda.stream(torch.cuda.Stream()):
        library = Library(Path(folder))
        for row in rows(kernels):
            found[row.name] = measured(row, library)
            times = (f"{one.median_us:.2f} ± {one.spread_us:.2f}" for one in found[row.name])
            print(f"| {row.name} | {' | '.join(times)} |", flush=True)
    if save:
        _save(found, environment)


def _save(found: dict[str, list[Contender]], environment: dict[str, object]) -> None:
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"early_starts-{str(environment['card']).replace(' ', '-').lower()}.json"
    told = {
        "environment": environment,
        "microseconds_a_launch": {
            row: {
                one.name: {
                    "median": median(one.samples),
                    "iqr": one.spread_us,
                    "samples": one.samples,
                }
                for one in contenders
            }
            for row, contenders in found.items()
        },
    }
    path.write_text(json.dumps(told, indent=1) + "\n")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
