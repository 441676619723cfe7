"""How much launchers take: tensors and grids of so many axes.

Of parameters, `Dim`s and tensor maps they take as many as a kernel can be passed.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilec.artifact.manifest import Manifest
from tilec.diagnostics.setup_error import SetupError

# As `header/support/arguments.h` and `rust/support/tables.rs` have it.
_RANK_LIMIT = 8


def check_sizes(manifests: Iterable[Manifest]) -> None:
    """Raises SetupError if a kernel or a pipeline has more than launchers take."""
    for manifest in manifests:
        for kernel in manifest.kernels:
            _check_rank(kernel.symbol, [len(kernel.grid), *(p.rank for p in kernel.parameters)])
        for pipeline in manifest.pipelines:
            ranks = [p.rank for p in pipeline.parameters]
            _check_rank(pipeline.symbol, [*ranks, *(len(t.extents) for t in pipeline.temporaries)])


def _check_rank(symbol: str, ranks: Iterable[int]) -> None:
    rank = max(ranks, default=0)
    if rank > _RANK_LIMIT:
        raise SetupError(f"`{symbol}` has {rank} axes, and launchers take {_RANK_LIMIT} at most")
