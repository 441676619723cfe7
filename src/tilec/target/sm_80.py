"""Compute capability 8.x: Ampere and Ada.

Source: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per
Compute Capability". PTX ISA, "Release Notes": these came with 7.0, 7.1 and 7.8, conversions with
f8 with 8.1 ("cvt", PTX ISA notes).

Rates of 8.0: "NVIDIA A100 Tensor Core GPU Architecture": 1024 products of f16 in a cycle of a
multiprocessor, with factors that threads hold; L2 gives 5120 bytes a cycle to 108 multiprocessors;
memory 2039 GB/s, at 1410 MHz, of which nine tenths are taken.
"""

from __future__ import annotations

from tilec.target.description import KIB, PARAMETERS_PTX, Rates, Target

SM_80 = Target(
    name="sm_80",
    capability=(8, 0),
    ptx_version=PARAMETERS_PTX,
    smem_per_sm_bytes=164 * KIB,
    smem_per_block_bytes=163 * KIB,
    warps_per_sm=64,
    blocks_per_sm=32,
    multiprocessors=108,
    cluster_blocks=1,
    rates=Rates(
        product_bytes=2048, shared_bytes=32 * 4, l2_bytes=47, memory_bytes=1300, fragment_percent=90
    ),
)

SM_86 = Target(
    name="sm_86",
    capability=(8, 6),
    ptx_version=PARAMETERS_PTX,
    smem_per_sm_bytes=100 * KIB,
    smem_per_block_bytes=99 * KIB,
    warps_per_sm=48,
    blocks_per_sm=16,
    multiprocessors=84,
    cluster_blocks=1,
)

SM_89 = Target(
    name="sm_89",
    capability=(8, 9),
    ptx_version=PARAMETERS_PTX,
    smem_per_sm_bytes=100 * KIB,
    smem_per_block_bytes=99 * KIB,
    warps_per_sm=48,
    blocks_per_sm=24,
    multiprocessors=142,
    cluster_blocks=1,
)

TARGETS = (SM_80, SM_86, SM_89)
