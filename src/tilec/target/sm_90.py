"""Compute capability 9.0: Hopper, with and without its architecture-specific instructions.

Source: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per
Compute Capability", and "Thread Block Clusters" (8 is the portable limit); PTX ISA, "Release
Notes": sm_90 came with 7.8, sm_90a (wgmma, setmaxnreg) with 8.0.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.target.description import KIB, Target

SM_90 = Target(
    name="sm_90",
    capability=(9, 0),
    ptx_version=80,
    smem_per_sm_bytes=228 * KIB,
    smem_per_block_bytes=227 * KIB,
    warps_per_sm=64,
    blocks_per_sm=32,
    multiprocessors=132,
    cluster_blocks=8,
)

SM_90A = replace(SM_90, name="sm_90a")

TARGETS = (SM_90, SM_90A)
