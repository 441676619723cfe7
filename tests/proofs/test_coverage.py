"""What summaries say of kernels: held against the definition, and against what is touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from math import prod

import numpy as np
import pytest
from mlir import ir

from tests.frontend.front_end import checked
from tilec.frontend.emit import emit
from tilec.interpret.contract import BrokenContract
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.ir.walk import functions
from tilec.proofs.account import coverage_of
from tilec.proofs.proof import Proof
from tilec.transforms.inline_helpers import inline_helpers

FULL, READ = "in full", "read before"
# Bodies over z [N], which programs own in parts of 4 (`part`) or share (`whole`).
PART = {
    "z.store(x.load_like(&z));": {FULL},
    "z.store(z.load() + 1.0);": {FULL, READ},
    "z.store(x.load_like(&z)); z.store(z.load() + 1.0);": {FULL},
    "let t = z.load(); z.store(t); z.store(z.load());": {FULL, READ},
    "if N > 5 { z.store(x.load_like(&z)); }": set(),
    "if N > 5 { z.store(x.load_like(&z)); } z.store(z.load());": {FULL, READ},
    "if N > 5 { z.store(x.load_like(&z)); } else { z.store(z.load()); }": {FULL, READ},
    "if N > 5 { z.store(x.load_like(&z)); } if N > 6 { z.store(z.load()); }": set(),
    "for i in 0..K { z.store(x.load_like(&z)); } z.store(z.load());": {FULL, READ},
    "for i in 0..2 { z.store(x.load_like(&z)); } z.store(z.load());": {FULL},
}
WHOLE = {
    # Rows of 4 programs' pieces, in loops.
    "for i in 0..N.div_ceil(4) { z.store::<4>([i], one); }": {FULL},
    "for i in 0..N.div_ceil(4) { z.store::<4>([i], one); let t = z.load::<4>([i]); }": {FULL},
    "for i in 0..N.div_ceil(4) { let t = z.load::<4>([i]); z.store::<4>([i], t); }": {FULL, READ},
    "for i in 0..N.div_ceil(4) { z.store::<4>([i], one); let t = z.load::<4>([i + 1]); }": {
        FULL, READ,
    },
    # What was stored in turns before: not followed, and so it may be read before.
    "for i in 0..N.div_ceil(4) { z.store::<4>([i], one); let t = z.load::<4>([0]); }": {FULL, READ},
    # Read in the first turn, stored in the last.
    "for i in 0..3 { z.store::<4>([2 - i], one); let t = z.load::<4>([0]); }": {READ},
    "for i in 0..3 { z.store::<4>([i], one); } let t = z.load::<4>([2]);": set(),
    "for i in 0..3 { z.store::<4>([i], one); } let t = z.load::<4>([3]);": {READ},
    "for i in 0..3 { z.store::<4>([i], one); } for j in (0..3).rev() { "
    "let t = z.load::<4>([j]); }": set(),
    "for i in 0..3 { z.store::<4>([i], one); for j in 0..2 { let t = z.load::<4>([i]); } }": set(),
    "for i in 0..3 { for j in 0..2 { z.store::<4>([j], one); } let t = z.load::<4>([i]); }": {READ},
    "let k = x.load::<1>([0]).item() as usize; z.store::<4>([k], one); "
    "let t = z.load::<4>([k]);": set(),
    "z.store::<4>([0], one); if N > 2 { let t = z.load::<2>([1]); }": set(),
    "if N > 2 { z.store::<4>([0], one); } let t = z.load::<2>([0]);": {READ},
    # Of one element and two there is nothing to read.
    "if N > 2 { z.store::<4>([0], one); } let t = z.load::<2>([1]);": set(),
    # All four values go to one element.
    "unsafe { z.scatter([Tile::<i32, 4>::zeros()], one); } let t = z.load::<4>([0]);": {READ},
}  # fmt: skip
# The grid where program p stores element p.
GRIDS = {
    "N": {FULL},
    "N.max(K)": {FULL},
    "N.min(K)": set(),
    # What may wrap is not followed, though launchers compute it without wrapping.
    "K * K * K * K * K / 9": set(),
    "(N * K).div_ceil(7)": set(),
}
CASES = [(body, wanted, None) for body, wanted in PART.items()]
CASES += [(body, wanted, "1") for body, wanted in WHOLE.items()]
CASES += [
    ("unsafe { z.store_at::<1>([program_id()[0]], Tile::<f32, 1>::ones()); }", wanted, grid)
    for grid, wanted in GRIDS.items()
]


def text_of(body: str, grid: str | None) -> str:
    """`grid` is None where z is cut in parts."""
    taken = "&mut Tensor<f32, N>" if grid else "Part<&mut Tensor<f32, N>, 4>"
    attribute = f"#[kernel(grid = [{grid}])]" if grid else "#[kernel]"
    return (
        f"{attribute}\npub fn k<N: Dim, K: Dim>(z: {taken}, x: &Tensor<f32, N>, "
        "y: &Tensor<f32, K>) {\n"
        f"let one = Tile::<f32, 4>::ones();\n{body}\n}}\n"
    )


class Watch:
    """Which elements of z were stored to, and whether one was loaded before that."""

    def __init__(self) -> None:
        self.stored: set[int] = set()
        self.has_read_first = False

    def starts(self, program: tuple[int, ...]) -> None:
        pass

    def touched(
        self,
        op: ir.OpView,
        tensor: str,
        elements: np.ndarray,
        *,
        written: bool,
        outside: int,
        atomic: bool = False,
    ) -> None:
        if tensor != "z":
            return
        touched = set(elements.tolist())
        if written:
            self.stored |= touched
        elif touched - self.stored:
            self.has_read_first = True


# Over z [A, B, C]: a grid, the indices of what each program stores, and under which condition.
APART = {
    ("A * B, C", "p / B, p % B, q", "true"): {FULL},
    ("A * B * C, 1", "(p / C) / B, (p / C) % B, p % C", "true"): {FULL},
    # One program too few, or rows of another length.
    ("A * B - 1, C", "p / B, p % B, q", "true"): set(),
    ("A * B, C", "p / C, p % C, q", "true"): set(),
    ("A * C, C", "p / B, p % B, q", "true"): set(),
    ("A * B, C", "p / B, 0, q", "true"): set(),
    ("A * B, C", "p / B, p % B, q", "p >= 2 * B"): set(),
    ("A * B, C", "p / B, p % B, q", "A * B > 2"): set(),
}


@pytest.mark.parametrize(
    ("grid", "indices", "condition"), APART, ids=[" | ".join(c) for c in APART]
)
def test_programs_that_are_taken_apart_write_what_they_say(
    grid: str, indices: str, condition: str
) -> None:
    text = f"""#[kernel(grid = [{grid}])]
pub fn k<A: Dim, B: Dim, C: Dim>(z: &mut Tensor<f32, A, B, C>) {{
    let [p, q, _] = program_id();
    let one = Tile::<f32, 1, 1, 1>::ones();
    if {condition} {{
        unsafe {{ z.store::<1, 1, 1>([{indices}], one); }}
    }}
}}
"""
    instances, found, program = checked(text)
    assert not found
    with context():
        module = emit(instances, program.sources)
        inline_helpers(module)
        [function] = functions(module)
        [told] = coverage_of(Proof(function))
        assert told.writes_all == (APART[grid, indices, condition] == {FULL})
        fills = True
        for shape in product((0, 1, 2, 3), repeat=3):
            watch = Watch()
            with suppress(BrokenContract):
                run_kernel(function, {"z": np.ones(shape, np.float32)}, observer=watch)
                fills &= len(watch.stored) == prod(shape)
        assert fills == told.writes_all


def seen(function: ir.OpView) -> Iterator[tuple[int, Watch]]:
    """What launches of small sizes do."""
    for n, k in product((1, 3, 4, 5, 8, 9, 13, 16), (0, 1, 2)):
        watch = Watch()
        z, x, y = (np.ones(size, np.float32) for size in (n, n, k))
        try:
            run_kernel(function, {"z": z, "x": x, "y": y}, observer=watch)
        except BrokenContract:
            continue
        yield n, watch


@pytest.mark.parametrize(
    ("body", "wanted", "grid"), CASES, ids=[f"{body} | {grid}" for body, _, grid in CASES]
)
def test_a_summary_is_right(body: str, wanted: set[str], grid: str | None) -> None:
    instances, found, program = checked(text_of(body, grid))
    assert not found
    with context():
        module = emit(instances, program.sources)
        inline_helpers(module)
        [function] = functions(module)
        [told] = coverage_of(Proof(function))
        said = {FULL} if told.writes_all else set()
        said |= {READ} if told.reads_first else set()
        assert said == wanted
        for n, watch in seen(function):
            assert not told.writes_all or watch.stored == set(range(n))
            assert told.reads_first or not watch.has_read_first
