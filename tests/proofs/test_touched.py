"""How much programs touch of tensors: as many elements as executions touch, counted one by one."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from math import prod

import numpy as np
import pytest
from mlir import ir

from tests.frontend.front_end import checked
from tilec.artifact.expression import evaluate
from tilec.frontend.emit import emit
from tilec.interpret.contract import BrokenContract, parameters_of
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.ir.walk import functions
from tilec.proofs.proof import Proof
from tilec.proofs.touched import touched_extents
from tilec.transforms.inline_helpers import inline_helpers

ROW = "y: Part<&mut Tensor<f32, N>, 2>"
W = "w: &Tensor<f32, L, M, N>"
# By parameters and the body: what is touched of w, or of the tensor that is written.
CASES = {
    (f"{ROW}, {W}, l: usize", "requires!(l < L); for m in 0..M { "
     "y.store(w.load::<1, 1, 2>([l, m, y.id(0)]).reshape::<2>()); }"): (1, "M", "N"),
    (f"{ROW}, {W}", "y.store(w.load::<1, 1, 2>([0, 0, y.id(0)]).reshape::<2>());"): (1, 1, "N"),
    # Two layers beside each other, and two of which nobody knows how they lie.
    (f"{ROW}, {W}, l: usize", "requires!(l + 1 < L); for m in 0..M { "
     "y.store((w.load::<1, 1, 2>([l, m, y.id(0)]) + w.load::<1, 1, 2>([l + 1, m, y.id(0)]))"
     ".reshape::<2>()); }"): (2, "M", "N"),
    # A part of an axis, from its first row on; all of what a tile may hold.
    (f"{ROW}, {W}, l: usize", "requires!(l < L); for m in 0..M / 2 { "
     "y.store(w.load::<1, 1, 2>([l, m, y.id(0)]).reshape::<2>()); }"):
        (1, ("div", "M", 2), "N"),
    (f"{ROW}, {W}, l: usize", "requires!(l < L); for m in 0..M.div_ceil(4) { "
     "y.store(w.load::<1, 1, 2>([l, m, y.id(0)]).reshape::<2>()); }"):
        (1, ("ceildiv", "M", 4), "N"),
    (f"{ROW}, {W}, l: usize", "requires!(l < L && M <= 4); "
     "y.store(w.load::<1, 4, 2>([l, 0, y.id(0)]).sum::<1>().reshape::<2>());"): (1, "M", "N"),
    (f"{ROW}, {W}", "let t = "
     "w.load::<1, 2, 2>([0, 0, y.id(0)]).sum::<1>(); y.store(t.reshape::<2>());"):
        (1, ("min", 2, "M"), "N"),
}  # fmt: skip
# What is written of one layer, from a grid of rows.
WRITTEN = {
    "requires!(l < L); for m in 0..M { w.store::<1, 1, 2>([l, m, p], one); }": (1, "M", "N"),
    "requires!(l < L && M > 0); w.store::<1, 1, 2>([l, M - 1, p], one);": (1, 1, "N"),
}


class Observer:
    """The elements of w that are touched."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

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
        if tensor == "w":
            self.seen |= set(elements.tolist())


def text_of(parameters: str, body: str, grid: str = "") -> str:
    return (
        f"#[kernel{grid}]\npub fn k<L: Dim, M: Dim, N: Dim>({parameters}) {{\n"
        f"{'let p = program_id()[0]; let one = Tile::<f32, 1, 1, 2>::ones();' if grid else ''}"
        f"\n{body}\n}}\n"
    )


PROGRAMS = [(text_of(*case), wanted) for case, wanted in CASES.items()]
PROGRAMS += [
    (text_of(f"{W.replace('&', '&mut ')}, l: usize", body, "(grid = [N.div_ceil(2)])"), wanted)
    for body, wanted in WRITTEN.items()
]


@pytest.mark.parametrize(("text", "wanted"), PROGRAMS, ids=[t.splitlines()[3] for t, _ in PROGRAMS])
def test_as_much_is_counted_as_is_touched(text: str, wanted: tuple[object, ...]) -> None:
    instances, found, program = checked(text)
    assert not found, [d.message for d in found]
    with context():
        module = emit(instances, program.sources)
        inline_helpers(module)
        [function] = functions(module)
        told = touched_extents(Proof(function).touching("w", writes="w.store" in text))
        assert told is not None
        assert told.counts == wanted
        # With one row, its half has no columns: what is counted may be fewer then.
        assert told.is_exact == ("M / 2" not in text)
        ran = 0
        for extents in product((1, 2, 3), (1, 2, 4, 5), (1, 4)):
            dims, observer = dict(zip("LMN", extents, strict=True)), Observer()
            arguments = {
                p.name: 1 if p.extents is None else np.ones([dims[str(e)] for e in p.extents], "f4")
                for p in parameters_of(function)
            }
            with suppress(BrokenContract):
                run_kernel(function, arguments, observer=observer)
                ran += 1
                assert len(observer.seen) == prod(evaluate(count, dims) for count in told.counts)
        assert ran, "some launch keeps the contract"


UNKNOWN = {
    # Rows that data choose; a part that is none from the first row on: the whole axis counts.
    "let r = i.load::<1>([0]).item(); y.store(w.load_at::<1, 1, 2>([0, r, 0]).reshape::<2>());": (
        (1, 1, ("min", 2, "N")),
        True,
    ),
    "for m in M / 2..M { y.store(w.load::<1, 1, 2>([0, m, 0]).reshape::<2>()); }": (
        (1, "M", ("min", 2, "N")),
        False,
    ),
}


@pytest.mark.parametrize("body", UNKNOWN, ids=str)
def test_what_is_not_known_counts_as_the_whole_axis(body: str) -> None:
    instances, found, program = checked(text_of(f"{ROW}, {W}, i: &Tensor<i32, 1>", body))
    assert not found, [d.message for d in found]
    with context():
        module = emit(instances, program.sources)
        [function] = functions(module)
        told = touched_extents(Proof(function).touching("w", writes=False))
        assert told is not None
        assert (told.counts, told.is_exact) == UNKNOWN[body]
