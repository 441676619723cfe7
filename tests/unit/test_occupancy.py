"""How many blocks fit: the numbers of NVIDIA's occupancy calculator."""

from __future__ import annotations

import pytest

from tilec.target.occupancy import Occupancy, occupancy
from tilec.target.resolve import TARGETS


@pytest.mark.parametrize(
    ("target", "threads", "registers", "smem_bytes", "blocks", "share", "limits"),
    [
        ("sm_90a", 128, 32, 0, 16, 1.0, ("registers", "threads")),
        # 40 registers: 1280 of a warp, 12 warps of each quarter's 16384 registers.
        ("sm_90a", 128, 40, 0, 12, 0.75, ("registers",)),
        ("sm_90a", 32, 16, 0, 32, 0.5, ("blocks",)),
        ("sm_90a", 1024, 64, 0, 1, 0.5, ("registers",)),
        # 233472 bytes a multiprocessor; 50176 and 1024 of a block: four.
        ("sm_90a", 256, 32, 50_100, 4, 0.5, ("shared memory",)),
        ("sm_80", 256, 32, 50_100, 3, 0.375, ("shared memory",)),
        ("sm_86", 128, 32, 0, 12, 1.0, ("threads",)),
        ("sm_90a", 96, 255, 0, 2, 6 / 64, ("registers",)),
    ],
)
def test_blocks_of_a_multiprocessor(target, threads, registers, smem_bytes, blocks, share, limits):
    found = occupancy(threads, registers, smem_bytes, TARGETS[target])
    assert found == Occupancy(blocks, share, limits)
