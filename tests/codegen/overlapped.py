"""Programs whose products are overlapped with copies, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from lowered import ALIGNED, Program, program
from simt_strands import EARLY, LATE, Timing

# A run with each of them shows what depends on who is first.
TIMINGS = (LATE, EARLY, Timing(seed=7), Timing(seed=8, split=True))
BF16 = ml_dtypes.bfloat16
TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": BF16, "i8": np.int8, "u8": np.uint8, "f32": np.float32,
    "i32": np.int32,
}  # fmt: skip
_RANDOM = np.random.default_rng(11)


def small(*shape: int, element: str = "bf16") -> np.ndarray:
    """Whole numbers that are 0 or near it: sums of products are exact in any order."""
    low = 0 if element[0] == "u" else -2
    return _RANDOM.integers(low, 3, shape).astype(TYPES[element])


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def run(
    text: str,
    arguments: dict[str, Any],
    wanted: dict[str, np.ndarray],
    *timings: Timing,
    overlaps: bool | None = True,
    checked: bool = False,
) -> None:
    """The kernel `k` gives what is wanted; with overlapping products, or without on purpose, or
    either (`overlaps` is None)."""
    # Of few slots each is filled again and again.
    hints = "" if "#[hint" in text else "#[hint(stages = 2)]\n"
    with program(hints + text, checked=checked) as threads:
        expect(threads, "k", arguments, wanted, *timings, overlaps=overlaps)


def expect(
    threads: Program,
    symbol: str,
    arguments: dict[str, Any],
    wanted: dict[str, np.ndarray],
    *timings: Timing,
    overlaps: bool | None = True,
) -> None:
    point, _ = threads.lowered(symbol, ALIGNED)
    assert overlaps in (None, bool(point.tensor_maps))
    for timing in timings or (LATE,):
        given = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in arguments.items()}
        threads.run(symbol, given, ALIGNED, timing=timing)
        for name, value in wanted.items():
            assert np.isfinite(wide(given[name])).all(), f"`{name}`, {timing}"
            np.testing.assert_array_equal(wide(given[name]), value, f"`{name}`, {timing}")


def trips(extent: int, block: int) -> int:
    return -(-extent // block)
