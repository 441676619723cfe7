"""Compute capabilities 10.0 and 12.0: Blackwell, in data centres and on desks.

The general instructions (sm_80 and later) run here; there is no code for tcgen05.

Source: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per
Compute Capability"; PTX ISA, "Release Notes": sm_100 came with 8.6, sm_120 with 8.7.
"""

from __future__ import annotations

from tilec.target.description import KIB, Target

SM_100 = Target(
    name="sm_100",
    capability=(10, 0),
    ptx_version=86,
    smem_per_sm_bytes=228 * KIB,
    smem_per_block_bytes=227 * KIB,
    warps_per_sm=64,
    blocks_per_sm=32,
    multiprocessors=148,
    cluster_blocks=8,
)

SM_120 = Target(
    name="sm_120",
    capability=(12, 0),
    ptx_version=87,
    smem_per_sm_bytes=100 * KIB,
    smem_per_block_bytes=99 * KIB,
    warps_per_sm=48,
    blocks_per_sm=24,
    multiprocessors=170,
    cluster_blocks=8,
)

TARGETS = (SM_100, SM_120)
