"""Compute capability 9.0: Hopper, with and without its architecture-specific instructions.

Source: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per
Compute Capability", and "Thread Block Clusters" (8 is the portable limit); PTX ISA, "Release
Notes": sm_90 came with 7.8, sm_90a (wgmma, setmaxnreg) with 8.0.

Rates: "NVIDIA H100 Tensor Core GPU Architecture", tables of the H100 SXM5: 989.4 TFLOPS in f16 (a
product and a sum are two) on 132 multiprocessors at 1830 MHz are 2048 products a cycle, twice as
many of 8 bits, half as many of tf32. Programming Guide, "Shared Memory" of compute capability 5.0
and later: 32 banks of 4 bytes. L2: nothing is published; matrix products on an H100 that read 46
bytes a cycle on each multiprocessor have been measured, and 64 bytes a cycle is what its way to L2
carries on Volta (arXiv 1804.06826).

Measured on an H100, for costs: turns of loops of wgmma from shared memory, tiles from 64x64 to
128x256, in all blocks at one time, which take 1.0 to 1.1 of the largest of tensor cores at 90 % of
their peak, shared memory, and copies by lines of 128 bytes at 64 bytes a cycle.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.target.description import KIB, Rates, Target

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
    rates=Rates(product_bytes=4096, shared_bytes=32 * 4, l2_bytes=64, memory_bytes=1650),
)

SM_90A = replace(SM_90, name="sm_90a")

TARGETS = (SM_90, SM_90A)
