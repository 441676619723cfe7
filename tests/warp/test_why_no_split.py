"""Why each block does all turns of a loop, although somebody asked for something else."""

from __future__ import annotations

import pytest
from test_unscheduled import PRODUCT, planned

from tilec.schedule.plan import Reason, Schedule

ASKED = PRODUCT.replace("warps = 8", "split = 2")
PRODUCT_TURN = "sum = dot(a.load::<128, 64>([c.id(0), k]), b.load::<64, 64>([k, c.id(1)]), sum);"
CARRIES = "its loop carries something else than sums that are only added to"
WRITES = "something is written before the sums are there"
NOWHERE = "not all products are in one loop, which every program comes to"


def reason(program: str) -> Reason:
    found = planned(program)
    assert isinstance(found, Schedule) and found.split is None
    [one] = [one for one in found.reasons if one.what == "each block does all turns"]
    return one


def after_product(text: str) -> str:
    return ASKED.replace(PRODUCT_TURN, f"{PRODUCT_TURN} {text}")


def with_atomic(program: str) -> str:
    return program.replace("K, N>,\n)", "K, N>, n: &Atomic<Tensor<i32, 4>>,\n)")


REASONS = {
    "sums grow by a factor": (after_product("sum = sum * 2.0;"), CARRIES),
    "sums are bounded": (after_product("sum = sum.min(9.0);"), CARRIES),
    "sums are added twice": (after_product("sum = sum + sum;"), CARRIES),
    "sums in a branch": (
        ASKED.replace(PRODUCT_TURN, "if k > 3 { " + PRODUCT_TURN + " }"),
        NOWHERE,
    ),
    "a loop in a branch": (
        ASKED.replace("for k in", "if c.id(0) > 1 { for k in")
        .replace("c.store(sum)", "} c.store(sum)"),
        NOWHERE,
    ),
    "a number is carried": (
        ASKED.replace("for k in", "let mut n = 0.0; for k in")
        .replace(PRODUCT_TURN, PRODUCT_TURN + " n = n + 1.0;")
        .replace("store(sum)", "store(sum * n)"),
        CARRIES,
    ),
    "a turn writes": (
        with_atomic(ASKED.replace(PRODUCT_TURN, PRODUCT_TURN + " n.fetch_add([0], 1);")), WRITES
    ),
    "written before": (
        with_atomic(ASKED.replace("let mut sum", "n.fetch_add([0], 1); let mut sum")), WRITES
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REASONS)
def test_why(case: str) -> None:
    program, why = REASONS[case]
    assert reason(program).why == why


@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_blocks_that_share_out_turns_do_one_program(blocks: int) -> None:
    found = planned(ASKED.replace("split = 2", f"split = {blocks}, cluster = 2, ping_pong"))
    assert isinstance(found, Schedule) and found.split is not None
    assert (found.split.blocks, found.is_persistent, found.cluster) == (blocks, False, None)
    assert found.teams == 1


def test_one_block_does_all_turns() -> None:
    found = planned(ASKED.replace("split = 2", "split = 1"))
    assert isinstance(found, Schedule) and found.split is None
