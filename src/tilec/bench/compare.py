"""One case: all contenders checked, then timed against each other and against a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from tilec.bench.buffers import Buffers, buffers_of, set_count
from tilec.bench.contenders import Ready, ours, reference_of, rival
from tilec.bench.description import Benchmark, Case, Rival, Scratch
from tilec.bench.gpu import Gpu
from tilec.bench.kernels import Kernels
from tilec.bench.samples import COPY, Comparison, Contender
from tilec.bench.sampling import Settings, sampled, sampler

_LARGE_BYTES = 2**31  # read and written by the copy that the floor is measured by
_LARGE_COPIES = 9


@dataclass(frozen=True)
class Floor:
    """What limits any kernel. Units: bytes in a microsecond, as a large copy has it."""

    gpu: Gpu
    copy_rate: float

    def of(self, case: Case) -> tuple[float, str]:
        """The least that a call can take, in microseconds, and what bounds it."""
        moving = case.floor_bytes / self.copy_rate
        if case.operations is None:
            return moving, "memory"
        rate = self.gpu.operations_per_us(case.operations.unit)
        computing = case.operations.count / rate if rate else 0.0
        return max((moving, "memory"), (computing, "compute"))


def measured_floor(gpu: Gpu) -> Floor:
    """The floor of this GPU, by the median of some large copies."""
    moved = min(_LARGE_BYTES, gpu.free_bytes() // 4)
    target, source = (gpu.empty(Scratch((moved // 2,), "u8")) for _ in range(2))
    gpu.copy(target, source)
    times = [gpu.time_us(lambda: gpu.copy(target, source)) for _ in range(_LARGE_COPIES)]
    return Floor(gpu, moved / median(times))


def compare(
    floor: Floor,
    benchmark: Benchmark,
    case: Case,
    rivals: Sequence[Rival],
    kernels: Kernels,
    settings: Settings,
) -> Comparison:
    """Every contender of a case."""
    gpu = floor.gpu
    kernels.used.clear()
    sets = tuple(buffers_of(gpu, case, number) for number in range(set_count(gpu, case)))
    reference = reference_of(gpu, benchmark, case, sets)
    entered = [ours(benchmark, kernels, reference), *(rival(r, reference) for r in rivals)]
    del reference  # its exact outputs may be large
    floor_us, bound = floor.of(case)
    contenders = _timed(gpu, (*entered, _copying(gpu, case, sets)), sets, floor_us, settings)
    return Comparison(
        benchmark=benchmark.name,
        case=case.name,
        floor_bytes=case.floor_bytes,
        floor_us=floor_us,
        bound=bound,
        contenders=contenders,
        set_count=len(sets),
        used=tuple(kernels.used),
    )


def _copying(gpu: Gpu, case: Case, sets: Sequence[Buffers]) -> Ready:
    """A copy that moves as many bytes as the case must, on as many sets."""
    half = Scratch((max(case.floor_bytes // 2, 1),), "u8")
    copies = {id(buffers): (gpu.empty(half), gpu.empty(half)) for buffers in sets}

    def work(buffers: Buffers) -> None:
        gpu.copy(*copies[id(buffers)])

    return Ready(Contender(COPY), work)


def _timed(
    gpu: Gpu,
    entered: Sequence[Ready | Contender],
    sets: Sequence[Buffers],
    floor_us: float,
    settings: Settings,
) -> tuple[Contender, ...]:
    """The contenders with their samples; those that failed are as they were."""
    samplers, found = {}, {}
    for entry in entered:
        contender = entry.contender if isinstance(entry, Ready) else entry
        found[contender.name] = contender
        if not isinstance(entry, Ready):
            continue
        try:
            samplers[contender.name] = sampler(gpu, entry.work, sets, floor_us, settings)
        except Exception as fault:
            gpu.synchronise()  # raises if the GPU takes no more work
            reason = f"not timed: {type(fault).__name__}: {fault}".splitlines()[0]
            found[contender.name] = replace(contender, failure=reason)
    for name, samples in sampled(samplers, settings.rounds).items():
        found[name] = replace(found[name], samples=samples, method=samplers[name].method)
    return tuple(found.values())
