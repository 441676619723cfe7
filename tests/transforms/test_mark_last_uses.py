"""Marked accesses, as (operation, the tensor's name) in program order."""

from __future__ import annotations

import pytest
from mlir import ir

from tilec.ir.dialect import context
from tilec.ir.walk import operations
from tilec.transforms.mark_last_uses import LAST, mark_last_uses

SHARED = 'memref<?xf32, strided<[1]>, {own = "shared"}>'
MUT = 'memref<?xf32, strided<[1]>, {own = "mut"}>'
TENSORS = {"x": SHARED, "w": SHARED, "y": MUT}
HEAD = f"func.func @k(%x: {SHARED}, %w: {SHARED}, %y: {MUT}, %n: index, %t: tensor<64xf32>) {{"


def load(name: str) -> str:
    segments = "operandSegmentSizes = array<i32: 1, 1, 0>"
    kind = f"({TENSORS[name]}, index) -> tensor<64xf32>"
    return f'"tile.load"(%{name}, %i) {{{segments}, unit = "tile"}} : {kind}\n'


def store(name: str) -> str:
    kind = f"({TENSORS[name]}, tensor<64xf32>, index) -> ()"
    return f'"tile.store"(%{name}, %t, %i) {{unit = "tile"}} : {kind}\n'


def loop(*lines: str, index: str = "%i") -> str:
    return f"scf.for {index} = %n to %n step %n {{\n{''.join(lines)}}}\n"


@pytest.mark.parametrize(
    ("lines", "marked"),
    [
        # One pass: nothing.
        ([loop(load("x"), store("y"))], []),
        ([loop(load("x"), load("x"), store("y"))], []),
        # Two passes: what the second one reads and writes.
        ([loop(load("x")), loop(load("x"), store("y"))], [(1, "load x"), (2, "store y")]),
        # Only what is read in both.
        (
            [loop(load("x")), loop(load("x"), load("w"), store("y"))],
            [(1, "load x"), (3, "store y")],
        ),
        # Of three the last.
        ([loop(load("x")), loop(load("x")), loop(load("x"))], [(2, "load x")]),
        # What the kernel reads back stays.
        (
            [loop(load("x")), loop(load("x"), store("y")), loop(load("y"))],
            [(1, "load x")],
        ),
        # Rows one after the other, each in two passes.
        (
            [loop(loop(load("x")), loop(load("x")), index="%r")],
            [(1, "load x")],
        ),
    ],
)  # fmt: skip
def test_what_is_touched_for_the_last_time_is_marked(
    lines: list[str], marked: list[tuple[int, str]]
) -> None:
    with context():
        module = ir.Module.parse(f"{HEAD}\n{''.join(lines)}return\n}}")
        [function] = module.body.operations
        mark_last_uses(function)
        accesses = [
            op for op in operations(function) if op.operation.name in ("tile.load", "tile.store")
        ]
        names = dict(zip(function.regions[0].blocks[0].arguments, "xwy", strict=False))
        found = [
            (number, f"{op.operation.name.removeprefix('tile.')} {names[op.operands[0]]}")
            for number, op in enumerate(accesses)
            if LAST in op.attributes
        ]
        assert found == marked
        assert module.operation.verify()
