"""The order in which blocks walk over programs gives each program one number, exhaustively."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from mlir import ir
from simt import Code, Launch, run_block
from simt_memory import Memory, Segment

from tilec.ir.dialect import context
from tilec.ir.dialects import arith, llvm, nvvm
from tilec.ops.fragments import element_offset, i32, index, llvm_ptr
from tilec.ops.order import grouped

ADDRESS = 1 << 40


def walked(grid: tuple[int, ...], rows: int) -> np.ndarray:
    """The row-major number of the program that has each number in the order."""
    count = prod(grid)
    threads = -(-count // 32) * 32
    places = np.full(threads, -1, np.int32)
    with context():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            kind = ir.TypeAttr.get(ir.Type.parse("!llvm.func<void (ptr<1>)>"))
            function = llvm.func("k", kind)
        entry = function.regions[0].blocks.append(llvm_ptr(1), arg_locs=[ir.Location.unknown()])
        with ir.InsertionPoint(entry):
            word = ir.IntegerType.get_signless(32)
            thread = nvvm.read_ptx_sreg_tid_x(word)
            number = arith.index_cast(ir.IndexType.get(), arith.remui(thread, i32(count)))
            extents = [index(extent) for extent in grid]
            place = index(0)
            for extent, one in zip(extents, grouped(number, extents, rows), strict=True):
                place = arith.addi(arith.muli(place, extent), one)
            target = element_offset(entry.arguments[0], thread, word)
            llvm.store(arith.index_cast(word, place), target, alignment=4)
            llvm.return_()
        memory = Memory()
        result = Segment("x", ADDRESS, places.view(np.uint8), is_read_only=False)
        memory.add(result)
        launch = Launch(threads, (0, 0, 0), (1, 1, 1), 0)
        run_block(Code(function), [ADDRESS], launch, memory)
    return result.bytes.view(np.int32)[:count]


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "grid",
    [(1,), (7,), (1, 1), (1, 9), (9, 1), (3, 5), (8, 4), (13, 6), (16, 16), (2, 3, 4), (3, 9, 2)],
    ids=str,
)
def test_each_program_has_one_number(grid: tuple[int, ...], rows: int) -> None:
    assert sorted(walked(grid, rows).tolist()) == list(range(prod(grid)))


def test_rows_are_walked_together_column_by_column() -> None:
    # Of 5 by 3 programs two rows at a time, then the one that is left.
    places = [divmod(int(n), 3) for n in walked((5, 3), 2)]
    assert places[:6] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert places[12:] == [(4, 0), (4, 1), (4, 2)]


def test_a_batch_is_walked_before_the_next() -> None:
    assert [int(n) // 6 for n in walked((3, 2, 3), 2)] == sorted([0, 1, 2] * 6)
