"""Bytes that become halves, shifts of several elements in a word, and weights of 4 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lowered import ANY, program
from overlapped import BF16, LATE, Timing, expect

KERNELS = Path(__file__).parents[2] / "kernels"
_KINDS: dict[str, Any] = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16}


def _mapped(source: str, target: str, text: str, x: np.ndarray) -> np.ndarray:
    """What `text` gives for each element of `x`."""
    count = len(x)
    kernel = f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<{target}, N>, {count}>, x: &Tensor<{source}, N>) {{
        let t = x.load::<{count}>([z.id(0)]);
        z.store({text});
    }}"""
    z = np.full(count, 77, _KINDS[target])
    with program(kernel) as threads:
        threads.run("k", {"z": z, "x": x}, ANY)
    return z


@pytest.mark.parametrize(("source", "target"), [("i8", "i16"), ("u8", "u16")])
def test_every_byte_as_a_half(source: str, target: str) -> None:
    x = np.arange(256).astype(np.uint8).view(_KINDS[source])
    found = _mapped(source, target, f"t.to::<{target}>()", x)
    np.testing.assert_array_equal(found, x.astype(_KINDS[target]))


@pytest.mark.parametrize("count", [0, 1, 4, 7])
def test_every_byte_shifted(count: int) -> None:
    x = np.arange(256).astype(np.uint8)
    np.testing.assert_array_equal(_mapped("u8", "u8", f"t >> {count}u8", x), x >> count)


@pytest.mark.parametrize("count", [1, 8, 15])
def test_halves_shifted(count: int) -> None:
    x = np.arange(256).astype(np.uint16) * 257
    np.testing.assert_array_equal(_mapped("u16", "u16", f"t >> {count}u16", x), x >> count)


def test_bits_of_bytes_before_they_are_widened() -> None:
    x = np.arange(256).astype(np.uint8)
    text = "((((t >> 3u8) & 21) | 64) ^ 129).to::<u16>() + t.to::<u16>()"
    wanted = ((((x >> 3) & 21) | 64) ^ 129).astype(np.uint16) + x
    np.testing.assert_array_equal(_mapped("u8", "u16", text, x), wanted)


def _of_4_bits(name: str, symbol: str, m: int, n: int, groups: int) -> None:
    """Whole numbers throughout: sums are exact."""
    random = np.random.default_rng(5)
    x = random.integers(-2, 3, (m, 128 * groups)).astype(BF16)
    q = random.integers(0, 256, (n, 64 * groups)).astype(np.uint8)
    scale = random.integers(1, 3, (n, groups)).astype(BF16)
    pairs = q.reshape(n, groups, 1, 64)
    halves = np.concatenate([pairs & 15, pairs >> 4], axis=2) - 8.0
    weights = (halves * scale.astype(float)[:, :, None, None]).reshape(n, -1)
    wanted = (x.astype(float) @ weights.T).astype(BF16).astype(float)
    given = {"y": np.full((m, n), np.nan, BF16), "x": x, "q": q, "scale": scale}
    with program((KERNELS / f"{name}.tile").read_text()) as threads:
        expect(
            threads, symbol, given, {"y": wanted}, LATE, Timing(seed=3, split=True), overlaps=None
        )


@pytest.mark.parametrize(
    ("name", "symbol", "m", "n", "groups"),
    [
        ("matmul_w4a16", "matmul_w4a16__16_64_64", 3, 64, 3),
        ("matmul_w4a16", "matmul_w4a16__128_128_64", 130, 136, 5),
        ("matmul_w4a16", "matmul_w4a16__256_128_64", 130, 136, 5),
        ("skinny_w4a16", "skinny_w4a16__8_16_64_4__warps4", 9, 24, 5),
        ("skinny_w4a16", "skinny_w4a16__16_16_64_8__warps8", 5, 24, 9),
    ],
)
def test_weights_of_4_bits(name: str, symbol: str, m: int, n: int, groups: int) -> None:
    _of_4_bits(name, symbol, m, n, groups)
