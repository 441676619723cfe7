"""How many blocks of a kernel fit on a multiprocessor at one time, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.target.description import Target


@dataclass(frozen=True)
class Occupancy:
    """`limits` are what no further block would find: "registers", "shared memory", "threads" (warps
    that can be resident) or "blocks".

    Units:    `share` of the warps that can be resident
    """

    blocks: int
    share: float
    limits: tuple[str, ...]


def occupancy(threads: int, registers: int, smem_bytes: int, target: Target) -> Occupancy:
    """Of blocks of so many threads, each with so many registers, and bytes of shared memory.

    Source:   CUDA Toolkit, cuda_occupancy.h: registers are given to warps, in units, and each
              quarter of a multiprocessor has its own; a block takes 1 KiB of shared memory itself
    """
    warps = -(-threads // target.threads_per_warp)
    room = {
        "registers": _by_registers(warps, registers, target),
        "shared memory": _by_smem(smem_bytes, target),
        "threads": target.warps_per_sm // warps,
        "blocks": target.blocks_per_sm,
    }
    blocks = min(room.values())
    limits = tuple(name for name, count in room.items() if count == blocks)
    return Occupancy(blocks, blocks * warps / target.warps_per_sm, limits)


def _by_registers(warps: int, registers: int, target: Target) -> int:
    of_warp = _up(max(1, registers) * target.threads_per_warp, target.register_unit)
    of_quarter = target.registers_per_sm // target.warp_schedulers
    return of_quarter // of_warp * target.warp_schedulers // warps


def _by_smem(smem_bytes: int, target: Target) -> int:
    return target.smem_per_sm_bytes // (
        _up(smem_bytes, target.smem_unit_bytes) + target.smem_of_block_bytes
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
