from __future__ import annotations

import re

import pytest
from rewriting import rewritten

from tilec.transforms.relax_floats import relax_floats


@pytest.mark.parametrize(
    ("operation", "flags"),
    [
        ("arith.mulf %x, %x", {"contract"}),
        ("arith.divf %x, %x", {"contract", "arcp", "afn"}),
        ("math.exp %x", {"contract", "arcp", "afn"}),
        # Its approximation is good to 2^-11.
        ("math.tanh %x", {"contract"}),
        # Has no flags.
        ("arith.bitcast %x", None),
    ],
)
def test_what_may_be_approximated_says_so(operation: str, flags: set[str] | None) -> None:
    to = " to f32" if "bitcast" in operation else ""
    text = f"func.func @k(%x: f32) {{ %y = {operation} : f32{to}\n return }}"
    found, _ = rewritten(text, lambda module: relax_floats(module.body.operations[0]))
    printed = re.search(r"fastmath<(.*?)>", found)
    assert (set(printed[1].split(",")) if printed else None) == flags
