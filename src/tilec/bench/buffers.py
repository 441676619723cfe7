"""Sets of the tensors of a case: together more than the L2 cache holds."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tilec.bench.description import Case
from tilec.bench.gpu import Array, Gpu

_L2_MULTIPLE = 4  # how many times the L2 the sets are together
_MOST_SETS = 256
_SEED = 20261127


@dataclass(frozen=True)
class Buffers:
    """The tensors of one call."""

    outputs: tuple[Array, ...]
    scratch: tuple[Array, ...]
    inputs: tuple[Array, ...]


def buffers_of(gpu: Gpu, case: Case, number: int) -> Buffers:
    """A set of tensors for a case; its inputs differ from those of other numbers."""
    seeds = range(_SEED + number * len(case.inputs), _SEED + (number + 1) * len(case.inputs))
    return Buffers(
        tuple(map(gpu.empty, case.outputs)),
        tuple(map(gpu.empty, case.scratch)),
        tuple(gpu.filled(spec, seed) for spec, seed in zip(case.inputs, seeds, strict=True)),
    )


def set_count(gpu: Gpu, case: Case) -> int:
    """How many sets a case needs, within a quarter of the free memory.

    A quarter: copies of as many bytes lie beside them, and rivals that allocate their outputs.
    """
    size = max(1, sum(tensor.size_bytes for tensor in case.tensors))
    wanted = ceil(_L2_MULTIPLE * gpu.l2_bytes / size)
    return max(1, min(wanted, _MOST_SETS, gpu.free_bytes() // (4 * size)))
