"""What the simulator finds between blocks: one that loses what it owes the others is at fault."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lowered import ALIGNED, program
from mlir import ir
from overlapped import EARLY, LATE, Timing, small, wide
from simt import Code
from simt_memory import SimtError
from test_clusters_on_threads import text_of

from tilec.ir.walk import operations

TIMINGS = (LATE, EARLY, Timing(seed=5, split=True))
Change = Callable[["dict[str, list[ir.OpView]]"], None]


def _erase(name: str, which: slice = slice(None)) -> Change:
    def change(found: dict[str, list[ir.OpView]]) -> None:
        for op in found[name][which]:
            op.operation.erase()

    return change


def _no_meeting(found: dict[str, list[ir.OpView]]) -> None:
    for name in ("nvvm.cluster.arrive.relaxed", "nvvm.cluster.wait"):
        for op in found[name]:
            op.operation.erase()


def _release_here_only(found: dict[str, list[ir.OpView]]) -> None:
    for op in found["nvvm.mapa"]:
        op.operands[1] = _made(op, "nvvm.read.ptx.sreg.cluster.ctarank")


def _release_the_other_only(found: dict[str, list[ir.OpView]]) -> None:
    for op in found["nvvm.mapa"]:
        rank = _made(op, "nvvm.read.ptx.sreg.cluster.ctarank")
        with ir.InsertionPoint(op):
            one = ir.IntegerAttr.get(rank.type, 1)
            one = ir.Operation.create(
                "arith.constant", results=[rank.type], attributes={"value": one}
            ).result
            other = ir.Operation.create(
                "arith.subi", results=[rank.type], operands=[one, rank]
            ).result
        op.operands[1] = other


def _copy_to_first(found: dict[str, list[ir.OpView]]) -> None:
    """Multicasts go to block 0 alone."""
    _copy_to(found, 1)


def _copy_to_all(found: dict[str, list[ir.OpView]]) -> None:
    """Of four blocks."""
    _copy_to(found, 15)


def _copy_to(found: dict[str, list[ir.OpView]], blocks: int) -> None:
    for op in found["nvvm.cp.async.bulk.tensor.shared.cluster.global"]:
        if op.attributes["operandSegmentSizes"][5]:
            mask = op.operands[len(op.operands) - 1]
            with ir.InsertionPoint(op):
                one = ir.IntegerAttr.get(mask.type, blocks)
                first = ir.Operation.create(
                    "arith.constant", results=[mask.type], attributes={"value": one}
                )
            op.operands[len(op.operands) - 1] = first.result


def _made(op: ir.OpView, name: str) -> ir.Value:
    with ir.InsertionPoint(op):
        word = ir.IntegerType.get_signless(32)
        return ir.Operation.create(name, results=[word]).result


_ORDER = "nobody can go on|arrive at|nobody said so|is under way reads|have not waited"
LOSSES: dict[str, tuple[Change, str]] = {
    "to arrive": (_erase("nvvm.cluster.arrive.relaxed"), "has not come"),
    "to wait": (_erase("nvvm.cluster.wait"), "may not have (made it|seen it made)"),
    "to meet": (_no_meeting, "may not have (made it|seen it made)"),
    "the fence": (_erase("nvvm.fence.mbarrier.init"), "may not have (made it|seen it made)"),
    "releases": (_erase("nvvm.inline_ptx"), "nobody can go on"),
    "releases of others": (
        _release_here_only,
        _ORDER,
    ),
    "own releases": (
        _release_the_other_only,
        _ORDER,
    ),
    "copies to others": (_copy_to_first, "nobody can go on|arrive at"),
    # Of two slots; the last waits of the loader.
    "to close": (_erase("scf.while", slice(-2, None)), "may have gone|has gone"),
}


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("lost", LOSSES)
def test_what_is_left_out_is_found(lost: str, timing: Timing) -> None:
    change, told = LOSSES[lost]
    with pytest.raises(SimtError, match=told):
        _run(change, timing)


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
def test_what_is_as_it_was_is_right(timing: Timing) -> None:
    _run(lambda _: None, timing)


# Of two sides: two of four blocks share each tile.
SQUARE_LOSSES: dict[str, tuple[Change, str]] = {
    "to keep to those that share it": (_copy_to_all, f"bytes|copy brings|{_ORDER}"),
    "copies to others": (_copy_to_first, f"arrive at|bytes|copy brings|{_ORDER}"),
    "to close": (_erase("scf.while", slice(-2, None)), "may have gone|has gone"),
}


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("lost", SQUARE_LOSSES)
def test_what_is_left_out_of_two_sides_is_found(lost: str, timing: Timing) -> None:
    change, told = SQUARE_LOSSES[lost]
    with pytest.raises(SimtError, match=told):
        _run(change, timing, "[2, 2]", (256, 128))


def _run(
    change: Change, timing: Timing, cluster: str = "[2, 1]", extents: tuple[int, int] = (256, 64)
) -> None:
    m, n = extents
    x, y, z = small(m, 32 * 7), small(32 * 7, n), small(m, n, element="f32")
    with program(text_of("nn", cluster)) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        function = list(threads.body.operations)[-1]
        found: dict[str, list[ir.OpView]] = {}
        for op in operations(function):
            found.setdefault(op.operation.name, []).append(op)
        change(found)
        threads.take("k", ALIGNED, point, Code(function))
        threads.run("k", {"x": x, "y": y, "z": z}, ALIGNED, timing=timing)
    np.testing.assert_array_equal(wide(z), wide(x) @ wide(y))
