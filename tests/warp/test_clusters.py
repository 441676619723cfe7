"""What the blocks of a cluster owe each other: where it is taken away, the verifier sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlir import ir
from roles_machine import execute
from specialised import planned, specialised

from tilec.ir.walk import operations
from tilec.ops.build import integer
from tilec.ops.lowering import CLUSTER, PERSISTENT, SHARED
from tilec.warp.verify import problems_of

FILE = Path(__file__).parent / "clusters.tile"
KERNELS = ("rows", "columns", "two_channels", "squares")
Change = Callable[[ir.OpView, "dict[str, list[ir.OpView]]"], None]


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, ir.OpView]]:
    with specialised(FILE) as found:
        yield found


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_made_is_right(kernels: dict[str, ir.OpView], name: str) -> None:
    for extent in (0, 64, 640):
        execute(kernels[name], {"K": extent})
    assert [str(problem) for problem in problems_of(kernels[name])] == []


def test_what_depends_on_the_axis_is_not_shared() -> None:
    with planned(FILE) as found:
        shared = {
            name: [[one.param for one, _ in channel.shared] for channel in schedule.channels]
            for name, (_, schedule) in found.items()
        }
        clusters = {
            name: [(side.blocks, side.axis) for side in schedule.cluster.sides]
            for name, (_, schedule) in found.items()
            if schedule.cluster is not None
        }
    # How often the second loop of the last one turns depends on the program.
    assert shared == {
        "rows": [["b"]],
        "columns": [["a"]],
        "two_channels": [["b"], []],
        "squares": [["a", "b"]],
    }
    assert clusters == {
        "rows": [(2, 0)],
        "columns": [(4, 1)],
        "two_channels": [(2, 0)],
        "squares": [(2, 0), (2, 1)],
    }


# ---- what is taken away, or changed --------------------------------------------------------------


def _erase(name: str) -> Change:
    def change(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
        found[name][0].operation.erase()

    return change


def _twice(name: str) -> Change:
    def change(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
        op = found[name][0].operation
        op.clone(ip=ir.InsertionPoint.after(op))

    return change


def _meet_later(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    found["warp.meet"][0].operation.move_after(found["warp.roles"][0].operation)


def _meet_earlier(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    found["warp.meet"][0].operation.move_before(found["warp.channel"][0].operation)


def _close_before(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    close = found["warp.close"][0]
    close.operation.move_before(close.operation.block.operations[0].operation)


def _close_inside(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    published = found["warp.publish"][0].operation
    found["warp.close"][0].operation.move_after(published)


def _write_always(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    store = found["tile.store"][0].operation
    store.move_after(store.parent)


def _ask_another(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    branch = found["tile.store"][0].operation.parent
    bit = ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(branch):
        value = {"value": ir.IntegerAttr.get(bit, 1)}
        one = ir.Operation.create("arith.constant", results=[bit], attributes=value)
    branch.operands[0] = one.result


def _other_axis(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    numbers = list(ir.DenseI64ArrayAttr(function.attributes[CLUSTER]))
    turned = [n if place % 2 == 0 else 1 - n for place, n in enumerate(numbers)]
    function.attributes[CLUSTER] = ir.DenseI64ArrayAttr.get(turned)


def _no_cluster(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    del function.attributes[CLUSTER]


def _no_steps(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    del function.attributes[PERSISTENT]


def _share_more(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    found["warp.channel"][0].attributes[SHARED] = ir.DenseI64ArrayAttr.get([3, 3])


def _share_none(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    del found["warp.channel"][0].attributes[SHARED]


def _turns_by_program(function: ir.OpView, found: dict[str, list[ir.OpView]]) -> None:
    """Both roles have as many turns as the program's row says."""
    for name in ("warp.acquire", "warp.get"):
        loop = found[name][0].operation.parent
        part = next(
            op.operation for op in loop.parent.regions[0].blocks[0].operations
            if op.operation.name == "tile.part"
        ) if name == "warp.acquire" else found["tile.part"][-1].operation  # fmt: skip
        with ir.InsertionPoint.after(part):
            row = ir.Operation.create(
                "tile.part_id",
                results=[ir.IndexType.get()],
                operands=[part.results[0]],
                attributes={"axis": integer(0)},
            )
        loop.operands[0] = row.result


CHANGES: dict[str, Change] = {
    "no meeting": _erase("warp.meet"),
    "two meetings": _twice("warp.meet"),
    "to meet later": _meet_later,
    "to meet earlier": _meet_earlier,
    "no close": _erase("warp.close"),
    "two closes": _twice("warp.close"),
    "to close first": _close_before,
    "to close each turn": _close_inside,
    "to write always": _write_always,
    "to write by another condition": _ask_another,
    "neighbours along the other axis": _other_axis,
    "no cluster": _no_cluster,
    "one program a block": _no_steps,
    "to share what differs": _share_more,
    "to share nothing": _share_none,
    "no release": _erase("warp.release"),
    "turns that differ": _turns_by_program,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_wrong_is_found(kernels: dict[str, ir.OpView], name: str, change: str) -> None:
    mutant = kernels[name].operation.clone().opview
    found: dict[str, list[ir.OpView]] = {}
    for op in operations(mutant):
        found.setdefault(op.operation.name, []).append(op)
    CHANGES[change](mutant, found)
    assert mutant.operation.verify()
    assert list(problems_of(mutant))
    mutant.operation.erase()
