"""The order in which blocks walk over programs gives each program one number, exhaustively."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import pytest
from mlir import ir
from simt import Code, Launch, run_block
from simt_memory import Memory, Segment

from tilec.ir.dialect import context
from tilec.ir.dialects import arith, llvm, nvvm
from tilec.layout.neighbours import Cluster, Side
from tilec.ops.cluster_order import step_of, steps_of
from tilec.ops.fragments import element_offset, i32, index, llvm_ptr
from tilec.ops.order import Longest, balanced, grouped, longest_first
from tilec.ops.split import share_of

ADDRESS = 1 << 40


Numbers = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


def computed(grid: tuple[int, ...], count: int, results: int, numbers: Numbers) -> np.ndarray:
    """What `numbers` gives (index each) for 0 to `count`, in a row each, by all threads at once."""
    threads = -(-count // 32) * 32
    found = np.full((threads, results), -1, np.int32)
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
            made = numbers(number, [index(extent) for extent in grid])
            for place, value in enumerate(made):
                at = arith.addi(arith.muli(thread, i32(results)), i32(place))
                target = element_offset(entry.arguments[0], at, word)
                llvm.store(arith.index_cast(word, value), target, alignment=4)
            llvm.return_()
        memory = Memory()
        result = Segment("x", ADDRESS, found.reshape(-1).view(np.uint8), is_read_only=False)
        memory.add(result)
        launch = Launch(threads, (0, 0, 0), (1, 1, 1), 0)
        run_block(Code(function), [ADDRESS], launch, memory)
    return result.bytes.view(np.int32).reshape(threads, results)[:count]


def in_row(grid: list[ir.Value], program: Sequence[ir.Value]) -> ir.Value:
    """The row-major number of a program."""
    place = index(0)
    for extent, one in zip(grid, program, strict=True):
        place = arith.addi(arith.muli(place, extent), one)
    return place


def walked(grid: tuple[int, ...], rows: int) -> np.ndarray:
    """The row-major number of the program that has each number in the order."""
    return computed(
        grid, prod(grid), 1, lambda n, extents: [in_row(extents, grouped(n, extents, rows))]
    )[:, 0]


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


# ---- programs that take unequally long -----------------------------------------------------------

GRIDS = [(1,), (7,), (40,), (1, 1), (1, 9), (9, 1), (3, 5), (8, 4), (13, 6), (16, 16), (2, 3, 4),
         (3, 9, 2)]  # fmt: skip


def programs(
    grid: tuple[int, ...], numbers: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]]
) -> np.ndarray:
    """The program of each number, in a row."""
    return computed(grid, prod(grid), len(grid), lambda n, extents: [*numbers(n, extents)])


@pytest.mark.parametrize("blocks", [1, 4, 7, 132])
@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_blocks_of_balanced_programs_do_each_once(
    grid: tuple[int, ...], rows: int, blocks: int
) -> None:
    for axis, at_end in itertools.product(range(len(grid)), (False, True)):
        longest = Longest(axis, at_end=at_end)
        found = programs(grid, lambda n, g, x=longest: balanced(n, index(blocks), g, rows, x))
        assert sorted(map(tuple, found.tolist())) == list(np.ndindex(grid))


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_longest_first_has_each_program_once(grid: tuple[int, ...], rows: int) -> None:
    for axis, at_end in itertools.product(range(len(grid)), (False, True)):
        longest = Longest(axis, at_end=at_end)
        found = programs(grid, lambda n, g, x=longest: longest_first(n, g, rows, x))
        assert sorted(map(tuple, found.tolist())) == list(np.ndindex(grid))


def test_the_longest_of_some_rows_come_first() -> None:
    found = programs((5, 3), lambda n, g: longest_first(n, g, 2, Longest(1, at_end=True)))
    assert found[:6].tolist() == [[0, 2], [1, 2], [0, 1], [1, 1], [0, 0], [1, 0]]
    assert found[12:].tolist() == [[4, 2], [4, 1], [4, 0]]


@pytest.mark.parametrize(
    ("heads", "length", "worst"), [(64, 32, 1.02), (16, 128, 1.03), (256, 8, 1.04), (64, 33, 1.01)]
)
def test_blocks_take_equally_long(heads: int, length: int, worst: float) -> None:
    """A program of a causal loop has one iteration more than its neighbour."""
    blocks, longest = 132, Longest(1, at_end=True)
    found = programs((heads, length), lambda n, g: balanced(n, index(blocks), g, 8, longest))
    taken = np.zeros(blocks)
    for number, (_, place) in enumerate(found):
        taken[number % blocks] += place + 1
    assert taken.max() <= worst * taken.mean()


# ---- clusters ------------------------------------------------------------------------------------


def steps(grid: tuple[int, ...], rows: int, cluster: Cluster) -> np.ndarray:
    """Of each step and block: program (row-major), whether it is one, whether with neighbours,
    and how many steps there are said to be."""
    sides = {side.axis: side.blocks for side in cluster.sides}
    whole = prod(extent // sides.get(axis, 1) for axis, extent in enumerate(grid))
    count = whole + -(-(prod(grid) - whole * cluster.blocks) // cluster.blocks)

    def numbers(number: ir.Value, extents: list[ir.Value]) -> list[ir.Value]:
        blocks = index(cluster.blocks)
        at, rank = arith.divui(number, blocks), arith.remui(number, blocks)
        step = step_of(at, extents, rows, cluster, rank)
        kinds = [
            arith.select(bit, index(1), index(0)) for bit in (step.is_program, step.is_together)
        ]
        return [in_row(extents, step.program), *kinds, steps_of(extents, cluster)]

    found = computed(grid, count * cluster.blocks, 4, numbers)
    return found.reshape(count, cluster.blocks, 4)


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("blocks", [2, 4])
@pytest.mark.parametrize(
    "grid", [(1,), (7,), (1, 1), (1, 9), (9, 1), (3, 5), (8, 4), (13, 6), (2, 3, 4), (3, 5, 2)],
    ids=str,
)  # fmt: skip
def test_each_program_has_one_block_of_one_step(
    grid: tuple[int, ...], blocks: int, rows: int
) -> None:
    for axis in range(len(grid)):
        expect_each_once(grid, rows, Cluster.along(axis, blocks))


@pytest.mark.parametrize("sides", [(2, 2), (2, 4), (4, 2)], ids=str)
@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("grid", [(1, 1), (1, 9), (9, 1), (3, 5), (8, 4), (13, 6), (7, 7)], ids=str)
def test_clusters_of_two_sides(grid: tuple[int, ...], rows: int, sides: tuple[int, int]) -> None:
    expect_each_once(grid, rows, Cluster((Side(sides[0], 0), Side(sides[1], 1))))


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("grid", [(2, 3, 4), (3, 5, 2), (3, 3, 3)], ids=str)
def test_clusters_of_two_sides_of_three(grid: tuple[int, ...], axes: tuple[int, int]) -> None:
    expect_each_once(grid, 4, Cluster((Side(2, axes[0]), Side(2, axes[1]))))


def expect_each_once(grid: tuple[int, ...], rows: int, cluster: Cluster) -> None:
    found = steps(grid, rows, cluster)
    program, is_program, is_together, said = np.moveaxis(found, -1, 0)
    assert (said == len(found)).all()
    assert sorted(program[is_program == 1].tolist()) == list(range(prod(grid)))
    assert (program >= 0).all() and (program < prod(grid)).all()
    # What blocks are told is one for all of them: they wait for each other.
    assert (is_together == is_together[:, :1]).all()
    place = np.stack(np.unravel_index(program, grid), -1)
    counts = [side.blocks for side in cluster.sides]
    beside = np.zeros((cluster.blocks, len(grid)), int)
    beside[:, cluster.axes] = np.stack(np.unravel_index(np.arange(cluster.blocks), counts), -1)
    for step in np.flatnonzero(is_together[:, 0]):
        assert (place[step, 0][list(cluster.axes)] % counts == 0).all()
        np.testing.assert_array_equal(place[step], place[step, 0] + beside)


@pytest.mark.parametrize("blocks", [2, 4, 8])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(("first", "end"), [(0, 0), (0, 1), (2, 9), (5, 3), (0, 61), (7, 64)])
def test_the_turns_of_a_loop_are_shared_out(first: int, end: int, step: int, blocks: int) -> None:
    def numbers(number: ir.Value, bounds: list[ir.Value]) -> list[ir.Value]:
        return list(share_of(*bounds, number, blocks))

    found = computed((first, end, step), blocks, 2, numbers)
    shares = [list(range(begin, last, step)) for begin, last in found]
    turns = list(range(first, end, step))
    assert [turn for share in shares for turn in share] == turns
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
