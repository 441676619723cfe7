"""What GPUs can do at most, for floors of what is bound by arithmetic."""

from __future__ import annotations

from typing import Literal

Unit = Literal["f32", "f64", "tf32 mma", "16-bit mma", "8-bit mma"]

# Operations of one SM in one clock, an addition and a multiplication counted apart, dense matrices,
# by compute capability.
# Source: CUDA C++ Programming Guide, "Arithmetic Instructions"; for the tensor cores the peaks of
# NVIDIA's A100 and H100 architecture whitepapers by SMs and boost clock.
_OF_AN_SM: dict[tuple[int, int], dict[Unit, int]] = {
    (8, 0): {"f32": 128, "f64": 64, "tf32 mma": 1024, "16-bit mma": 2048, "8-bit mma": 4096},
    (9, 0): {"f32": 256, "f64": 128, "tf32 mma": 2048, "16-bit mma": 4096, "8-bit mma": 8192},
}


def operations_per_us(capability: tuple[int, int], sms: int, clock_mhz: float, unit: Unit) -> float:
    """The most operations that the GPU does in a microsecond; 0 where this is not known."""
    of_an_sm = _OF_AN_SM.get(capability, {})
    return float(of_an_sm.get(unit, 0) * sms * clock_mhz)
