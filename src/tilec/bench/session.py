"""A run over benchmarks, from the first case to the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tilec.bench.compare import Floor, compare, measured_floor
from tilec.bench.description import Benchmark, Case, Rival
from tilec.bench.gpu import Gpu
from tilec.bench.kernels import Kernels
from tilec.bench.record import save
from tilec.bench.samples import OURS, Comparison, Contender
from tilec.bench.sampling import Settings
from tilec.bench.table import failures, head, is_wrong, line
from tilec.bench.target import target_of

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What to measure, and where things are. Without names of rivals, against all of them."""

    benchmarks: Sequence[Benchmark]
    build: Path
    target: str | None = None
    rivals: Sequence[str] | None = None
    settings: Settings = field(default_factory=Settings)
    results: Path | None = None


def run(request: Request, gpu: Gpu, say: Say, warn: Say) -> bool:
    """Measures everything, says a table as it comes, and saves each case when it is done.

    Returns whether all of our kernels were launched and right.

    Raises:   what the GPU raises once it takes no more work
    """
    target = request.target or target_of(gpu.capability)
    kernels = Kernels(request.build, target)
    floor = measured_floor(gpu)
    environment = {**gpu.environment(), "target": target, "copy_gbs": floor.copy_rate / 1e3}
    say(f"{environment['card']}, {target}; a large copy runs at {floor.copy_rate / 1e3:.0f} GB/s\n")
    is_right = True
    for benchmark in request.benchmarks:
        rivals = [r for r in benchmark.rivals if request.rivals is None or r.name in request.rivals]
        done: list[Comparison] = []
        say(head([rival.name for rival in rivals]))
        for case in benchmark.cases:
            found = _compared(floor, benchmark, case, rivals, kernels, request.settings)
            is_right &= not is_wrong(found)
            done.append(found)
            say(line(found, [rival.name for rival in rivals]))
            if request.results is not None:
                save(request.results, done, {**environment, **_toolchain(kernels)})
        say("")
        for comparison in done:
            for failure in failures(comparison):
                warn(failure)
    return is_right


def _compared(
    floor: Floor,
    benchmark: Benchmark,
    case: Case,
    rivals: Sequence[Rival],
    kernels: Kernels,
    settings: Settings,
) -> Comparison:
    """The comparison of a case; if it cannot even be set up, one in which all failed."""
    try:
        return compare(floor, benchmark, case, rivals, kernels, settings)
    except Exception as fault:
        floor.gpu.synchronise()  # raises if the GPU takes no more work
        reason = f"{type(fault).__name__}: {fault}".splitlines()[0]
        ours = Contender(OURS, failure=reason)
        floor_us, bound = floor.of(case)
        return Comparison(benchmark.name, case.name, case.floor_bytes, floor_us, bound, (ours,))


def _toolchain(kernels: Kernels) -> Mapping[str, object]:
    return {} if kernels.toolchain is None else {"built_by": asdict(kernels.toolchain)}
