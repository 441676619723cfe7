"""Why blocks share nothing, although somebody asked for it."""

from __future__ import annotations

import pytest
from test_unscheduled import PRODUCT, planned

from tilec.schedule.plan import Reason, Schedule

ASKED = PRODUCT.replace("warps = 8", "cluster = 2")
COPIES = "for k in 0..K.div_ceil(64)"


def reason(program: str) -> Reason:
    found = planned(program)
    assert isinstance(found, Schedule)
    assert found.cluster is None and not any(channel.shared for channel in found.channels)
    [one] = [one for one in found.reasons if one.what == "no cluster"]
    return one


REASONS = [
    (ASKED.replace("= 2", "= 3"), "it is of a power of two of blocks, 8 at most"),
    (ASKED.replace("= 2", "= 16"), "it is of a power of two of blocks, 8 at most"),
    (
        ASKED.replace("= 2", "= [4, 4]"),
        "it is of a power of two of blocks, 8 at most",
    ),
    (ASKED.replace("= 2", "= [1, 1, 2]"), "the grid has fewer axes"),
    (ASKED.replace("= 2", "= 2, persistent = false"), "each block does one program only"),
    (ASKED.replace("= 2", "= 2, warps = 4"), "each block does one program only"),
    (
        ASKED.replace(COPIES, "for k in c.id(0)..K.div_ceil(64)"),
        "how often tiles are copied depends on the program",
    ),
    (
        ASKED.replace(COPIES, "if c.id(1) > 2 {\n" + COPIES)
        .replace(", sum);\n    }", ", sum);\n    }}"),
        "how often tiles are copied depends on the program",
    ),
    (
        ASKED.replace("[k, c.id(1)]", "[k + c.id(0), c.id(1)]").replace("= 2", "= [2, 1]"),
        "no tile that is the same in neighbours has parts for all blocks",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("program", "why"), REASONS, ids=range(len(REASONS)))
def test_why(program: str, why: str) -> None:
    assert reason(program).why == why


@pytest.mark.parametrize("hint", ["1", "[1, 1]"])
def test_a_block_alone_is_no_cluster(hint: str) -> None:
    found = planned(ASKED.replace("= 2", f"= {hint}"))
    assert isinstance(found, Schedule) and found.cluster is None
    assert not any("cluster" in one.what for one in found.reasons)


def test_an_update_that_gives_what_was_is_done_once() -> None:
    program = ASKED.replace(
        "b: &Tensor<bf16, K, N>,", "b: &Tensor<bf16, K, N>, n: &Atomic<Tensor<i32, 4>>,"
    )
    program = program.replace("c.store(sum);", "c.store(sum + (n.fetch_add([0], 1).to::<f32>()));")
    assert (
        reason(program).why
        == "an update gives what was there before, which a program may do once only"
    )
