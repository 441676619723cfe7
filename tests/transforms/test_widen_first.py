from __future__ import annotations

import re

import pytest
from passes import after


def _program(text: str) -> str:
    return f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<u16, N>, 256>, x: &Tensor<u8, N>) {{
        let t = x.load::<256>([z.id(0)]);
        z.store({text});
    }}"""


def _widths(text: str, operation: str) -> list[str]:
    """The elements of the results of an operation, in order."""
    found = after("widen_first", _program(text))
    lines = [line for line in found.splitlines() if f" {operation} " in line]
    return [re.findall(r"tensor<256x(\w+)>", line)[-1] for line in lines]


def test_halves_of_bytes_share_what_is_widened() -> None:
    text = "(t & 15).to::<u16>() + (t >> 4u8).to::<u16>()"
    assert _widths(text, "arith.extui") == ["i16"]
    assert _widths(text, "arith.andi") == ["i16"]
    assert _widths(text, "arith.shrui") == ["i16"]


@pytest.mark.parametrize("text", ["(t << 1u8).to::<u16>()", "(t + 1).to::<u16>()"])
def test_what_may_leave_a_byte_is_done_to_bytes(text: str) -> None:
    operation = "arith.shli" if "<<" in text else "arith.addi"
    assert _widths(text, operation) == ["i8"]


def test_bits_of_two_tiles_are_those_of_bytes() -> None:
    assert _widths("(t & (t >> 1u8)).to::<u16>()", "arith.andi") == ["i8"]
