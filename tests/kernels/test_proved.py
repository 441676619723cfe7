"""What is proved of the kernel library: pinned, so that a check that comes back is noticed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tilec.compilation import Options
from tilec.driver import check_sources
from tilec.sources import read_sources

LIBRARY = Path(__file__).parents[2] / "kernels"

# Accesses of one instance: (proved, launch-checked, in-kernel).
PINNED = {
    "add": (0, 3, 0),
    "add_rmsnorm": (0, 5, 0),
    "add_rmsnorm_long": (0, 6, 0),
    "argmax": (1, 1, 0),
    "axpy": (0, 3, 0),
    "bias_gelu": (0, 3, 0),
    "column_sum": (0, 2, 0),
    "cross_entropy": (2, 1, 1),  # the target's logit: where it is depends on data
    "cumsum": (0, 2, 0),
    "embedding": (0, 2, 1),
    "gated_mlp": (0, 4, 0),
    "gelu": (0, 2, 0),
    "gemv": (1, 2, 0),
    "gemv_t": (0, 3, 0),
    "group_blocks": (0, 3, 1),  # nobody says that the first end is there
    "histogram": (0, 1, 1),
    "layernorm": (0, 4, 0),
    "layernorm_backward": (0, 8, 0),
    "layernorm_long": (0, 5, 0),
    "logsumexp": (1, 1, 0),
    "matmul": (0, 3, 0),
    "matmul_batched": (0, 3, 0),
    "matmul_bias_gelu": (0, 4, 0),
    "matmul_f8": (0, 3, 0),
    "matmul_f8_rows": (0, 5, 0),
    "matmul_grouped": (2, 0, 4),  # which rows, depends on data
    "matmul_nt": (0, 3, 0),
    "matmul_residual": (0, 6, 0),
    "matmul_skinny": (0, 3, 0),
    "matmul_split": (0, 3, 0),
    "matmul_tf32": (0, 3, 0),
    "matmul_tf32_nt": (0, 3, 0),
    "matmul_tn": (0, 3, 0),
    "matmul_w4a16": (0, 5, 0),
    "matmul_w8a16": (0, 4, 0),
    "permute_heads": (0, 2, 0),
    "quantise": (1, 2, 0),
    "quantise_f8": (1, 2, 0),
    "rmsnorm": (0, 3, 0),
    "rmsnorm_long": (0, 4, 0),
    "rope": (0, 6, 0),
    "row_sum": (1, 1, 0),
    "scatter_add": (0, 2, 1),
    "silu_mul": (0, 3, 0),
    "skinny_w4a16": (0, 4, 0),
    "softmax": (0, 2, 0),
    "softmax_long": (0, 3, 0),
    "split_heads": (0, 2, 0),
    "sum_all": (1, 1, 0),
    "sum_parts": (0, 2, 0),
    "topk": (2, 1, 1),
    "transpose": (0, 2, 0),
}
# Where programs have several rows, the last one may have some too many.
OF_INSTANCE = {
    f"gemv__{element}_{tile}": (0, 3, 0)
    for element in ("f16", "bf16")
    for tile in ("2_1024", "4_512__warps2")
}
# What they write they read before; add_rmsnorm_long reads only what it wrote itself.
IN_PLACE = ("axpy",)
# Of elements that data chooses nobody knows what is written.
IN_PART = {"histogram", "matmul_grouped", "scatter_add"}
KERNELS = sorted(path.stem for path in LIBRARY.glob("*.tile"))


@pytest.mark.parametrize("name", KERNELS)
def test_every_instance_has_the_verdicts_that_are_pinned(name: str) -> None:
    compiled = check_sources(read_sources(str(LIBRARY / f"{name}.tile")), Options(report=True))
    assert compiled.reports
    for report in compiled.reports:
        counts = Counter(access.verdict for access in report.accesses)
        found = tuple(counts[v] for v in ("proved", "launch-checked", "in-kernel"))
        assert found == OF_INSTANCE.get(report.symbol, PINNED[name]), report.symbol
        assert sum(found) == len(report.accesses)


def test_the_table_is_of_the_library() -> None:
    assert sorted(PINNED) == KERNELS


@pytest.mark.parametrize("name", sorted(set(KERNELS) - IN_PART))
def test_outputs_are_written_in_full(name: str) -> None:
    compiled = check_sources(read_sources(str(LIBRARY / f"{name}.tile")), Options(report=True))
    for report in compiled.reports:
        assert report.coverage
        assert all(c.writes_all for c in report.coverage), report.symbol
        assert any(c.reads_first for c in report.coverage) == (name in IN_PLACE)
