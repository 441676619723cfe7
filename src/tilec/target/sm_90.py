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
their peak, shared memory, and copies by lines of 128 bytes at 90 % of 64 bytes a cycle. Memory:
4.2 TB/s at 1.83 GHz of an H200. An H100 has 3.0 TB/s, and the same choices at all measured shapes;
by its rate, products of few rows are taken for as fast on few multiprocessors as on all. Latencies
and meetings of blocks: docs/notes.md.

Roles: PTX ISA, "setmaxnreg": counts of registers are multiples of 8 from 24 to 240; a warpgroup
that copies and two that multiply have 64512 of the 65536 of a multiprocessor. All else is measured
on an H100: six slots of 128x128 were 8 % slower than five at 8192^3, and 2 % faster at 2048^3; by
turns, tiles of 128x128 are at 0.83 to 0.9 of cuBLAS (short loops of 8 turns 1.08), for their
programs read more for each sum than L2 gives to all multiprocessors, and 128x192, whose threads
have the most sums of what was measured, up to 1.05. Clusters: docs/notes.md.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.target.description import KIB, PARAMETERS_PTX, Rates, Roles, Target

SM_90 = Target(
    name="sm_90",
    capability=(9, 0),
    ptx_version=PARAMETERS_PTX,
    smem_per_sm_bytes=228 * KIB,
    smem_per_block_bytes=227 * KIB,
    warps_per_sm=64,
    blocks_per_sm=32,
    multiprocessors=132,
    cluster_blocks=8,
    rates=Rates(product_bytes=4096, shared_bytes=32 * 4, l2_bytes=64, memory_bytes=2300),
)

SM_90A = replace(
    SM_90,
    name="sm_90a",
    roles=Roles(
        math_groups=2,
        registers=504,
        few_rings=2,
        loader_registers=24,
        loader_registers_of_many=40,
        held_registers=192,
        ahead_registers=216,
        depth=8,
        depth_of_several=5,
        sums_by_turns=128,
        l2_bytes=40,
        cluster_cycles=768,
        rows_together=8,
        rest_bytes=2 * KIB,
    ),
)

TARGETS = (SM_90, SM_90A)
