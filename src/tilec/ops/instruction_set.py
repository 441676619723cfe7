"""Which instructions there are where code is being emitted."""

from __future__ import annotations

import re
from functools import lru_cache

from mlir import ir

from tilec.target.instructions import STMATRIX


def capability() -> int:
    """The compute capability that the code at the insertion point is for: 90 for 9.0.

    It is that of the `gpu.module` around it.
    """
    op = ir.InsertionPoint.current.block.owner.operation
    while "targets" not in op.attributes:
        op = op.parent
        assert op is not None, "code for the GPU stands in a `gpu.module` that names its target"
    return _capability(str(op.attributes["targets"]))


def has_stmatrix() -> bool:
    """Whether matrices can be stored to shared memory from the registers of a warp."""
    return capability() >= STMATRIX


@lru_cache(maxsize=64)
def _capability(targets: str) -> int:
    chip = re.search(r'chip = "sm_(\d+)', targets)
    assert chip is not None, f"{targets} names no chip"
    return int(chip[1])
