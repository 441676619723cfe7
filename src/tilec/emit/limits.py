"""How much launchers take: their tables and stacks have room for so much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Pipeline
from tilec.diagnostics.setup_error import SetupError

# As `header/support/tables.h` has them; `rust/support/tables.rs` has the first.
_RANK_LIMIT = 8
_ARGUMENT_LIMIT = 64
_DIM_LIMIT = 32
_SLOT_LIMIT = 256
_MAP_LIMIT = 8


def check_sizes(manifests: Iterable[Manifest]) -> None:
    """Raises SetupError if a kernel or a pipeline has more than launchers take."""
    for manifest in manifests:
        for kernel in manifest.kernels:
            _check_kernel(kernel)
        for pipeline in manifest.pipelines:
            _check_pipeline(pipeline)


def _check_kernel(kernel: Kernel) -> None:
    slots = max(len(variant.slots) for variant in kernel.variants)
    maps = max(len(variant.tensor_maps) for variant in kernel.variants)
    rank = max([len(kernel.grid), *(p.rank for p in kernel.parameters)])
    _check_limits(
        kernel.symbol,
        {
            "axes": (rank, _RANK_LIMIT),
            "parameters": (len(kernel.parameters), _ARGUMENT_LIMIT),
            "`Dim`s": (len(kernel.dims), _DIM_LIMIT),
            "values": (slots, _SLOT_LIMIT),
            "tensor maps": (maps, _MAP_LIMIT),
        },
    )


def _check_pipeline(pipeline: Pipeline) -> None:
    ranks = [p.rank for p in pipeline.parameters] + [len(t.extents) for t in pipeline.temporaries]
    _check_limits(
        pipeline.symbol,
        {
            "axes": (max(ranks, default=0), _RANK_LIMIT),
            "parameters": (len(pipeline.parameters), _ARGUMENT_LIMIT),
            "`Dim`s": (len(pipeline.dims), _DIM_LIMIT),
        },
    )


def _check_limits(symbol: str, sizes: Mapping[str, tuple[int, int]]) -> None:
    for what, (size, limit) in sizes.items():
        if size > limit:
            raise SetupError(f"`{symbol}` has {size} {what}, and launchers take {limit} at most")
