"""What is written in full: whatever is asked of the arguments, and on whatever paths it is written.

Each verdict is held against launches of small extents, and each element that is said to stay
unwritten against the launch that it is said of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from mlir import ir

from tests.frontend.front_end import checked
from tests.proofs.test_coverage import Watch
from tilec.frontend.emit import emit
from tilec.interpret.contract import BrokenContract, parameters_of
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.ir.walk import functions
from tilec.proofs.account import shortfall_of
from tilec.proofs.proof import Proof
from tilec.proofs.unwritten import unwritten
from tilec.transforms.inline_helpers import inline_helpers

CUT = "z: Part<&mut Tensor<f32, N>, 2>"
WHOLE = "z: &mut Tensor<f32, N>"
ONE = "Tile::<f32, 1>::ones()"
PERSISTENT = "for i in (p..N.div_ceil(2)).step_by(s) {{ {0} }}"
TILE = "z.store::<2>([i], x.load::<2>([i]));"
BY_WHILE = "let mut i = p; while i < N {{ z.store_at::<1>([i], one); i = i + {0}; }}"

# By the grid (None where z is cut in parts), parameters and the body.
FULL = {
    # A precondition only leaves fewer launches to think of, whatever it multiplies.
    (None, CUT, "requires!(N % K == 0); z.store(x.load_like(&z));"),
    (None, CUT, "requires!(K > 0 && N % K == 0); let g = N / K; z.store(x.load::<2>([g]));"),
    (None, f"{CUT}, a: usize, b: usize", "requires!(a * b == N); z.store(1.0);"),
    ("K * L", WHOLE, "requires!(N == K * L); unsafe { z.store_at::<1>([p], one); }"),
    # Stores on all paths, whatever data say.
    (None, CUT, "if x.load_like(&z).sum_all() > 0.0 { z.store(1.0); } else { z.store(2.0); }"),
    (None, CUT, "let v = x.load_like(&z).sum_all(); if v > 1.0 { z.store(1.0); } "
     "else if v > 0.0 { z.store(2.0); } else { z.store(3.0); }"),
    (None, CUT, "let v = x.load_like(&z).sum_all() > 0.0; if v { z.store(1.0); } "
     "for i in 0..2 { if !v { z.store(2.0); } }"),
    ("1", WHOLE, "for i in 0..N { let v = x.load_at::<1>([i]).item(); "
     "if v > 0.0 { z.store_at::<1>([i], one); } else { z.store_at::<1>([i], one); } }"),
    # Loops: nested, two that cover, `while`, programs by turns.
    ("1", WHOLE, "for i in 0..N.div_ceil(4) { for j in 0..2 { "
     "z.store::<2>([i * 2 + j], x.load::<2>([0])); } }"),
    ("1", WHOLE, "for i in 0..N / 2 { z.store_at::<1>([i], one); } "
     "for i in N / 2..N { z.store_at::<1>([i], one); }"),
    ("1", WHOLE, BY_WHILE.format(1)),
    ("3", WHOLE, f"unsafe {{ {BY_WHILE.format(3)} }}"),
    ("s", f"{WHOLE}, s: i32", f"requires!(s > 0); let s = num_programs()[0]; "
     f"unsafe {{ {PERSISTENT.format(TILE)} }}"),
    ("s", f"{WHOLE}, s: usize", f"requires!(s > 0); unsafe {{ {BY_WHILE.format('s')} }}"),
    ("N.div_ceil(2).min(3)", WHOLE, f"let s = num_programs()[0]; "
     f"unsafe {{ {PERSISTENT.format(TILE)} }}"),
    ("s", f"{WHOLE}, s: usize",
     "requires!(s >= N && s < 9); unsafe { z.store_at::<1>([p], one); }"),
}  # fmt: skip
# What is known to stay unwritten, and where.
PART = {
    (None, CUT, "requires!(N % K == 0); if K > 2 { return; } z.store(1.0);"):
        "z[0] at N = 3, K = 3, L = 0",
    (None, f"{CUT}, n: i32", "if n == 0 { return; } z.store(1.0);"):
        "z[0] at N = 1, K = 0, L = 0, n = 0",
    ("s", f"{WHOLE}, s: i32", f"let s = num_programs()[0]; unsafe {{ {PERSISTENT.format(TILE)} }}"):
        "z[0] at N = 1, K = 0, L = 0, s = 0",
    ("1", WHOLE, "for i in 0..N / 2 { z.store_at::<1>([i], one); } "
     "for i in N / 2 + 1..N { z.store_at::<1>([i], one); }"): "z[0] at N = 1, K = 0, L = 0",
    ("1", WHOLE, BY_WHILE.format(2)): "z[1] at N = 2, K = 0, L = 0",
    ("s", f"{WHOLE}, s: usize", f"requires!(s > 0); unsafe {{ {BY_WHILE.format('(s + 1)')} }}"):
        "z[1] at N = 2, K = 0, L = 0, s = 1",
    ("K * L", WHOLE, "requires!(N >= K * L); unsafe { z.store_at::<1>([p], one); }"):
        "z[1] at N = 2, K = 1, L = 1",
}  # fmt: skip
# What depends on data, or is not followed: neither is known.
UNDECIDED = {
    (None, CUT, "if x.load_like(&z).sum_all() > 0.0 { z.store(1.0); }"): "depends on data",
    (None, CUT, "let v = x.load_like(&z).sum_all(); if v > 1.0 { z.store(1.0); } "
     "else if v > 0.0 { } else { z.store(3.0); }"): "depends on data",
    # What one program asks is not what another asks.
    ("2", WHOLE, "let v = y.load_at::<1>([p]).item() > 0.0; requires!(N == 1); "
     "if p == 0 && v { unsafe { z.store_at::<1>([0], one); } } "
     "if p == 1 && !v { unsafe { z.store_at::<1>([0], one); } }"): "depends on data",
    # Nor in one turn what in another.
    ("1", WHOLE, "requires!(N == 1); for i in 0..2 { let v = y.load_at::<1>([i]).item() > 0.0; "
     "if i == 0 && v { z.store_at::<1>([0], one); } "
     "if i == 1 && !v { z.store_at::<1>([0], one); } }"): "depends on data",
    ("1", WHOLE, "let mut go = true; let mut i = 0usize; while go { z.store_at::<1>([i], one); "
     "i = i + 1; go = i < N && x.load_at::<1>([i]).item() > 0.0; }"): "may end before",
    ("1", f"{WHOLE}, q: &Tensor<i32, N>", "for i in 0..N { "
     "unsafe { z.store_at::<1>([q.load_at::<1>([i]).item()], one); } }"): "depends on data",
}  # fmt: skip


def text_of(case: tuple[str | None, str, str]) -> str:
    grid, parameters, body = case
    attribute = "#[kernel]" if grid is None else f"#[kernel(grid = [{grid}])]"
    start = "" if grid is None else f"let p = program_id()[0]; let one = {ONE};"
    return (
        f"{attribute}\npub fn k<N: Dim, K: Dim, L: Dim>({parameters}, x: &Tensor<f32, N>, "
        f"y: &Tensor<f32, K>, w: &Tensor<f32, L>) {{ {start}\n{body} }}\n"
    )


def kernel(case: tuple[str | None, str, str]) -> tuple[ir.Module, ir.OpView]:
    instances, found, program = checked(text_of(case))
    assert not found, [d.message for d in found]
    module = emit(instances, program.sources)
    inline_helpers(module)
    [function] = functions(module)
    return module, function


def arguments(function: ir.OpView, values: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Tensors of some extents, of numbers of both signs, and scalars."""
    made: dict[str, Any] = {}
    for parameter in parameters_of(function):
        if parameter.extents is None:
            made[parameter.name] = values[parameter.name]
            continue
        shape = [values[str(extent)] for extent in parameter.extents]
        dtype = np.int32 if parameter.element == "i32" else np.float32
        made[parameter.name] = np.where((np.arange(*shape) + seed) % 2, 1, -1).astype(dtype)
    return made


def launches(function: ir.OpView) -> Iterator[tuple[dict[str, int], Watch]]:
    """What is stored by launches of small numbers that keep the contract."""
    scalars = [p.name for p in parameters_of(function) if p.extents is None]
    names = ["N", "K", "L", *scalars]
    for numbers in product((0, 1, 2, 5), (0, 2), (0, 3), *([(0, 1, 3)] * len(scalars))):
        values, watch = dict(zip(names, numbers, strict=True)), Watch()
        try:
            run_kernel(function, arguments(function, values, sum(numbers)), observer=watch)
        except BrokenContract:
            continue
        yield values, watch


@pytest.mark.parametrize("case", sorted(FULL, key=str), ids=str)
def test_what_is_written_in_full_is_known_to_be(case: tuple[str | None, str, str]) -> None:
    with context():
        _, function = kernel(case)
        assert shortfall_of(Proof(function), "z") is None
        for values, watch in launches(function):
            assert watch.stored == set(range(values["N"])), values


@pytest.mark.parametrize("case", PART, ids=str)
def test_what_stays_unwritten_does(case: tuple[str | None, str, str]) -> None:
    with context():
        _, function = kernel(case)
        proof = Proof(function)
        assert shortfall_of(proof, "z") == f"in part: not {PART[case]}"
        left = unwritten(proof.reasoning, "z")
        assert left is not None
        watch, values = Watch(), {**left.sizes, **left.scalars}
        run_kernel(function, arguments(function, values, 0), observer=watch)
        assert 0 <= left.element[0] < values["N"]
        assert left.element[0] not in watch.stored


@pytest.mark.parametrize("case", UNDECIDED, ids=str)
def test_what_depends_on_data_is_not_decided(case: tuple[str | None, str, str]) -> None:
    with context():
        _, function = kernel(case)
        told = shortfall_of(Proof(function), "z")
        assert told is not None and told.startswith("in full or not, which is not decided")
        assert UNDECIDED[case] in told
        assert not all(w.stored == set(range(v["N"])) for v, w in launches(function))
