"""Conversions with f8 by `cvt` (sm_90a) and by arithmetic (sm_80), against `ml_dtypes`.

`ml_dtypes` rounds f16, bf16 and f32 once; of f64 and of wide integers the nearest is found here, by
distance.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowered import program

TARGETS = ("sm_80", "sm_90a")
F8 = {"f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "f8e5m2": np.dtype(ml_dtypes.float8_e5m2)}
NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bool": np.bool_,
}  # fmt: skip
BLOCK = 2048


def converted(values: np.ndarray, source: str, target: str, chip: str) -> np.ndarray:
    """What the threads of `chip` make of the values."""
    text = f"""#[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<{target}, N>, {BLOCK}>, x: &Tensor<{source}, N>) {{
        z.store(x.load_like(&z).to::<{target}>());
    }}"""
    dtype = F8.get(target, NUMPY.get(target))
    found = np.zeros(values.size, dtype)
    with program(text, target=chip) as threads:
        threads.run("k", {"z": found, "x": values})
    return found


@np.errstate(all="ignore")
def nearest(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """To nearest even, saturating, from values that f64 holds or whose distances are certain."""
    codes = np.arange(256, dtype=np.uint8).view(dtype)
    numbers = codes.astype(np.float64)
    finite = np.isfinite(numbers) & ~np.signbit(numbers)
    candidates, bits = numbers[finite], codes[finite].view(np.uint8)
    wide = np.nan_to_num(np.abs(values.astype(np.float64)), posinf=1e300)
    # Exact: both numbers have few bits where they are near.
    apart = np.abs(candidates - np.minimum(wide, candidates.max())[:, None])
    best = apart.min(axis=1, keepdims=True)
    even = (bits & 1) == 0
    choice = np.argmin(np.where(apart == best, np.where(even, 0, 1), 2), axis=1)
    sign = np.signbit(values.astype(np.float64)).astype(np.uint8) << 7
    found = (bits[choice] | sign).view(dtype)
    return np.where(np.isnan(values.astype(np.float64)), dtype.type(np.nan), found)


@np.errstate(all="ignore")
def expect_equal(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal bits; NaN is NaN."""
    both = np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    size = found.dtype.itemsize
    wrong = (found.view(f"u{size}") != wanted.astype(found.dtype).view(f"u{size}")) & ~both
    where = np.flatnonzero(wrong)
    assert not wrong.any(), f"{where[:8]}: got {found[where[:8]]}, expected {wanted[where[:8]]}"


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("f8", F8)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64", "i8", "u16", "i64", "other"])
@np.errstate(all="ignore")
def test_every_code(f8: str, target: str, chip: str) -> None:
    codes = np.arange(256, dtype=np.uint8).view(F8[f8])
    if target == "other":
        [target] = set(F8) - {f8}
        wanted = nearest(codes.astype(np.float32), F8[target])
    elif target[0] in "iu":
        limits = np.iinfo(NUMPY[target])
        wide = np.nan_to_num(codes.astype(np.float64), posinf=1e30, neginf=-1e30)
        inside = (np.trunc(wide) >= limits.min) & (np.trunc(wide) <= float(limits.max))
        wanted = np.where(inside, np.where(inside, wide, 0).astype(NUMPY[target]),
                          np.where(wide < 0, limits.min, limits.max))  # fmt: skip
        wanted = wanted.astype(NUMPY[target])
    else:
        wanted = codes.astype(NUMPY[target])
    expect_equal(converted(codes, f8, target, chip), wanted)


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("f8", F8)
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_number_of_sixteen_bits(f8: str, source: str, chip: str) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(NUMPY[source])
    expect_equal(converted(values, source, f8, chip), nearest(values, F8[f8]))


@np.errstate(all="ignore")
def edges(dtype: np.dtype[Any], kind: Any) -> np.ndarray:
    """Numbers, the middles between them, and what lies next to both; and far beyond."""
    codes = np.sort(np.abs(np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)))
    codes = np.unique(codes[np.isfinite(codes)])
    middles = (codes[1:] + codes[:-1]) / 2
    beyond = 2 * codes[-1] - codes[-2]
    near = np.concatenate([codes, middles, [beyond, (beyond + codes[-1]) / 2]]).astype(kind)
    info = np.finfo(kind)
    far = np.array([info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan], kind)
    around = [np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))]
    values = np.concatenate([near, *around, far])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("f8", F8)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_the_edges_of_rounding(f8: str, source: str, chip: str) -> None:
    values = edges(F8[f8], NUMPY[source])
    expect_equal(converted(values, source, f8, chip), nearest(values, F8[f8]))


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("f8", F8)
@np.errstate(all="ignore")
def test_f64_rounds_once(f8: str, chip: str) -> None:
    """Next to the middle by less than f32 can tell."""
    near = edges(F8[f8], np.float32).astype(np.float64)
    values = np.concatenate([near * (1 + 2.0**-40), near * (1 - 2.0**-40)])
    expect_equal(converted(values, "f64", f8, chip), nearest(values, F8[f8]))


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("f8", F8)
@pytest.mark.parametrize("source", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_integers(f8: str, source: str, chip: str) -> None:
    if source == "bool":
        values = np.array([False, True])
    else:
        limits = np.iinfo(NUMPY[source])
        small = np.arange(-2000, 2000)
        large = [2**20 + 1, 57344, 61439, 61440, 61441, 65536, 2**24 + 1, 2**33 + 1, 2**62 + 1,
                 2**63 - 1, 2**64 - 1]  # fmt: skip
        wanted = [*small.tolist(), *large, *(-n for n in large), limits.min, limits.max]
        inside = [n for n in wanted if limits.min <= n <= limits.max]
        values = np.array(inside, NUMPY[source])
    expect_equal(converted(values, source, f8, chip), nearest(values, F8[f8]))
