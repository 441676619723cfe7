"""What the simulator finds between blocks that do a program together, where something is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lowered import ALIGNED, program
from mlir import ir
from overlapped import EARLY, LATE, Timing, small, wide
from simt import Code
from simt_memory import SimtError
from test_split_on_threads import text_of

from tilec.ir.walk import operations

TIMINGS = (LATE, EARLY, Timing(seed=5, split=True))
Found = dict[str, list[ir.OpView]]
Change = Callable[[Found], None]
BLOCKS = 2


def _no_join(which: int) -> Change:
    """Nobody joins that time: neither those who compute nor the loader's warps."""

    def change(found: Found) -> None:
        for name in ("nvvm.cluster.arrive", "nvvm.cluster.wait"):
            ops = found[name]
            joins = len(ops) // 2
            for op in (ops[which % joins], ops[joins + which % joins]):
                op.operation.erase()

    return change


def _only_math_joins(found: Found) -> None:
    for name in ("nvvm.cluster.arrive", "nvvm.cluster.wait"):
        found[name][-1].operation.erase()


def _read_own(found: Found) -> None:
    """The leading block adds its own sums again."""
    for op in found["nvvm.mapa"]:
        op.operands[1] = _constant(op, 0)


def _read_beyond(found: Found) -> None:
    for op in found["nvvm.mapa"]:
        op.operands[1] = _constant(op, BLOCKS)


def _constant(op: ir.OpView, value: int) -> ir.Value:
    word = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(op):
        attributes = {"value": ir.IntegerAttr.get(word, value)}
        return ir.Operation.create("arith.constant", results=[word], attributes=attributes).result


def _no_offer(found: Found) -> None:
    for op in found["llvm.store"]:
        if "7" not in str(op.operands[1].type) and "3" in str(op.operands[1].type):
            op.operation.erase()
            return
    raise AssertionError("nothing is offered")


LOSSES: dict[str, tuple[Change, str]] = {
    "the first join": (_no_join(0), "nobody said so|did not write|may not have begun"),
    "the last join": (_no_join(-1), "may have gone|has gone"),
    "the loader's join": (_only_math_joins, "nobody can go on"),
    "the right block": (_read_own, "the wrong numbers"),
    "a block": (_read_beyond, "no such block"),
    "an offer": (_no_offer, "did not write|nobody said so|wrong numbers|what a copy brings"),
}


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("lost", LOSSES)
def test_what_is_left_out_is_found(lost: str, timing: Timing) -> None:
    change, told = LOSSES[lost]
    with pytest.raises(SimtError, match=told):
        _run(change, timing)


# Of four blocks each adds up a part.
PARTS: dict[str, tuple[Change, str]] = {
    "the first join": (_no_join(0), "nobody said so|did not write|may not have begun"),
    "the second join": (_no_join(1), "nobody said so|wrong numbers"),
    "the last join": (_no_join(-1), "may have gone|has gone"),
    "the right block": (_read_own, "nobody said so|wrong numbers"),
}


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("lost", PARTS)
def test_what_is_left_out_of_parts_is_found(lost: str, timing: Timing) -> None:
    change, told = PARTS[lost]
    with pytest.raises(SimtError, match=told):
        _run(change, timing, blocks=4)


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
def test_what_is_as_it_was_is_right(timing: Timing) -> None:
    _run(lambda _: None, timing)
    _run(lambda _: None, timing, blocks=4)


def _run(change: Change, timing: Timing, blocks: int = BLOCKS) -> None:
    x, y, z = small(64, 32 * 7), small(32 * 7, 64), small(64, 64, element="f32")
    with program(text_of(blocks)) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        function = list(threads.body.operations)[-1]
        found: Found = {}
        for op in operations(function):
            found.setdefault(op.operation.name, []).append(op)
        change(found)
        threads.take("k", ALIGNED, point, Code(function))
        b = small(64, element="f32")
        threads.run("k", {"x": x, "y": y, "z": z, "b": b}, ALIGNED, timing=timing)
    if not np.array_equal(wide(z), wide(x) @ wide(y)):
        raise SimtError("the wrong numbers")
