"""Changes of the `warp` dialect in kernels of many forms (`mutations`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlir import ir
from mutations import expect_right, expect_wrong_mutants_found
from specialised import specialised

from tilec.ir.walk import operations
from tilec.warp.verify import problems_of

KERNELS = (
    "nn", "nt", "tn", "gated", "two_channels", "two_loops", "outer_loop", "used_inside",
    "branch_inside", "known_turns", "kept_factor", "loop_in_branch", "computed", "computed_twice",
    "computed_outside",
)  # fmt: skip


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, ir.OpView]]:
    with specialised() as found:
        yield found


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_made_is_right(kernels: dict[str, ir.OpView], name: str) -> None:
    expect_right(kernels[name])


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_wrong_is_found_and_nothing_else(kernels: dict[str, ir.OpView], name: str) -> None:
    expect_wrong_mutants_found(kernels[name])


def test_each_warp_tells_that_it_has_read(kernels: dict[str, ir.OpView]) -> None:
    mutant = kernels["computed"].operation.clone().opview
    [channel] = [op for op in operations(mutant) if op.operation.name == "warp.channel"]
    del channel.attributes["by_warp"]
    what = {problem.what for problem in problems_of(mutant)}
    assert what == {"the channel does not wait for each warp that reads"}
