"""What blocks that do a program together owe each other: the verifier sees where it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlir import ir
from specialised import specialised

from tilec.ir.walk import operations
from tilec.ops.lowering import PERSISTENT, SPLIT
from tilec.warp.verify import problems_of

FILE = Path(__file__).parent / "split.tile"
KERNELS = ("two", "from_sums")
Found = dict[str, list[ir.OpView]]
Change = Callable[[ir.OpView, Found], None]


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, ir.OpView]]:
    with specialised(FILE) as found:
        yield found


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_made_is_right(kernels: dict[str, ir.OpView], name: str) -> None:
    assert [str(problem) for problem in problems_of(kernels[name])] == []


# ---- what is taken away, or changed --------------------------------------------------------------


def _erase(name: str, number: int = 0) -> Change:
    def change(function: ir.OpView, found: Found) -> None:
        found[name][number].operation.erase()

    return change


def _twice(name: str) -> Change:
    def change(function: ir.OpView, found: Found) -> None:
        op = found[name][0].operation
        op.clone(ip=ir.InsertionPoint.after(op))

    return change


def _total_first(function: ir.OpView, found: Found) -> None:
    """It is added up before anybody has waited."""
    found["warp.join"][-2].operation.move_after(found["warp.total"][0].operation)


def _store_always(function: ir.OpView, found: Found) -> None:
    store = found["tile.store"][0].operation
    branch = store.parent
    for op in list(branch.regions[0].blocks[0].operations)[:-1]:
        op.operation.move_before(branch)


def _use_own_sums(function: ir.OpView, found: Found) -> None:
    """What follows uses what this block has added up."""
    total = found["warp.total"][0]
    for own, whole in zip(list(total.operands)[1:], total.results, strict=True):
        whole.replace_all_uses_with(own)


def _led_by_other(function: ir.OpView, found: Found) -> None:
    branch = found["tile.store"][0].operation.parent
    bit = ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(branch):
        value = {"value": ir.IntegerAttr.get(bit, 1)}
        one = ir.Operation.create("arith.constant", results=[bit], attributes=value)
    branch.operands[0] = one.result


def _turns_of(name: str, operand: int, result: int) -> Change:
    """The loop of a role begins or ends elsewhere."""

    def change(function: ir.OpView, found: Found) -> None:
        loop = found[name][0].operation.parent
        loop.operands[operand] = found["warp.share"][0].results[result]

    return change


def _all_turns(function: ir.OpView, found: Found) -> None:
    """Both roles do the turns of all blocks."""
    share = found["warp.share"][0]
    for value, whole in zip(share.results, share.operands, strict=False):
        value.replace_all_uses_with(whole)


def _start_alike(function: ir.OpView, found: Found) -> None:
    """All blocks start from what one should start from."""
    for op in found.get("warp.start", []):
        op.results[0].replace_all_uses_with(op.operands[0])
    if "warp.start" not in found:
        function.attributes[SPLIT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 3)


def _no_split(function: ir.OpView, found: Found) -> None:
    del function.attributes[SPLIT]


def _persistent(function: ir.OpView, found: Found) -> None:
    function.attributes[PERSISTENT] = ir.UnitAttr.get()


CHANGES: dict[str, Change] = {
    "no first join": _erase("warp.join"),
    "no last join": _erase("warp.join", -1),
    "another join": _twice("warp.join"),
    "to add up first": _total_first,
    "to go on in all blocks": _store_always,
    "to go on with own sums": _use_own_sums,
    "to ask something else": _led_by_other,
    "two shares": _twice("warp.share"),
    "the loader begins elsewhere": _turns_of("warp.acquire", 0, 1),
    "others begin elsewhere": _turns_of("warp.get", 0, 1),
    "the loader ends elsewhere": _turns_of("warp.acquire", 1, 0),
    "others end elsewhere": _turns_of("warp.get", 1, 0),
    "all turns in each block": _all_turns,
    "to start alike": _start_alike,
    "no other blocks": _no_split,
    "several programs": _persistent,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_wrong_is_found(kernels: dict[str, ir.OpView], name: str, change: str) -> None:
    mutant = kernels[name].operation.clone().opview
    found: Found = {}
    for op in operations(mutant):
        found.setdefault(op.operation.name, []).append(op)
    CHANGES[change](mutant, found)
    assert mutant.operation.verify()
    assert list(problems_of(mutant))
    mutant.operation.erase()
