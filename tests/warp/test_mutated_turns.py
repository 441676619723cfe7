"""The same where math warpgroups do programs by turns: `mine`, `skip`, and who may get slots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlir import ir
from mutations import expect_right, expect_wrong_mutants_found
from specialised import specialised

from tilec.ops.lowering import teams_of

EVERY = (
    "nn", "nt", "tn", "gated", "two_channels", "two_loops", "outer_loop", "used_inside",
    "branch_inside", "known_turns", "kept_factor", "loop_in_branch",
)  # fmt: skip
MUTATED = ("nn", "two_channels", "two_loops", "branch_inside", "known_turns", "kept_factor")


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, ir.OpView]]:
    with specialised(ping_pong=True) as found:
        yield found


@pytest.mark.parametrize("name", EVERY)
def test_what_is_made_is_right(kernels: dict[str, ir.OpView], name: str) -> None:
    assert teams_of(kernels[name]) == 2
    expect_right(kernels[name])


@pytest.mark.parametrize("name", MUTATED)
def test_what_is_wrong_is_found_and_nothing_else(kernels: dict[str, ir.OpView], name: str) -> None:
    expect_wrong_mutants_found(kernels[name])
