"""Descriptions: files, and which of their cases are wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tilec.bench.description import Benchmark
from tilec.diagnostics.setup_error import SetupError

FOLDER = Path("benchmarks")
PATTERN = "bench_*.py"


def default_files() -> list[Path]:
    """The descriptions of the current folder.

    Raises:   SetupError if there are none
    """
    found = sorted(FOLDER.glob(PATTERN))
    if not found:
        raise SetupError(f"there is no `{FOLDER}/{PATTERN}` here: name a description")
    return found


def benchmarks_of(path: Path) -> tuple[Benchmark, ...]:
    """The `BENCHMARKS` of a file, which may import modules that lie beside it.

    Raises:   SetupError if it cannot be read, or is no description
    """
    if not path.is_file():
        raise SetupError(f"cannot read `{path}`: no such file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that nothing in it hides what is installed
    spec = spec_from_file_location(f"tilec_description_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SetupError(f"`{path}` is no Python file")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as fault:
        raise SetupError(f"`{path}` fails: {type(fault).__name__}: {fault}") from fault
    found = getattr(module, "BENCHMARKS", None)
    if not isinstance(found, (list, tuple)) or not all(isinstance(b, Benchmark) for b in found):
        raise SetupError(f"`{path}` has no `BENCHMARKS`, a tuple of `tilec.bench.Benchmark`")
    return tuple(found)


def matching(benchmarks: Iterable[Benchmark], patterns: Sequence[str]) -> list[Benchmark]:
    """The benchmarks with those of their cases of which one pattern is a part of the name.

    A case is named `benchmark case`; `*` and `?` in a pattern stand for anything.
    """
    if not patterns:
        return list(benchmarks)
    chosen = []
    for benchmark in benchmarks:
        names = {case: f"{benchmark.name} {case.name}" for case in benchmark.cases}
        cases = tuple(
            case
            for case, name in names.items()
            if any(fnmatchcase(name, f"*{pattern}*") for pattern in patterns)
        )
        if cases:
            chosen.append(replace(benchmark, cases=cases))
    return chosen
