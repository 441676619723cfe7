"""Changes of what threads write to shared memory for products, with one place and with two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mlir import ir
from mutations import expect_right, expect_wrong_mutants_found
from specialised import planned

from tilec.ir.walk import operations
from tilec.roles.specialise import specialise
from tilec.schedule.plan import Schedule
from tilec.warp.verify import problems_of

FILE = Path(__file__).parent / "staged.tile"
KERNELS = (
    "both_computed", "two_buffers", "shared_buffer", "made_outside", "and_a_plain_one",
    "beside_a_plain_one",
)  # fmt: skip


@pytest.fixture(scope="module", params=[1, 2], ids=["one place", "two places"])
def kernels(request: pytest.FixtureRequest) -> Iterator[dict[str, ir.OpView]]:
    found = {}
    with planned(FILE) as kernels:
        for name, (function, schedule) in kernels.items():
            assert schedule.staged_places == 2
            with function.location:
                done = specialise(function, replace(schedule, staged_places=request.param))
            assert isinstance(done, Schedule)
            found[name] = function
        yield found


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_made_is_right(kernels: dict[str, ir.OpView], name: str) -> None:
    expect_right(kernels[name])


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_wrong_is_found_and_nothing_else(kernels: dict[str, ir.OpView], name: str) -> None:
    expect_wrong_mutants_found(kernels[name])


@pytest.mark.parametrize("name", ["both_computed", "and_a_plain_one", "beside_a_plain_one"])
@pytest.mark.parametrize("ordering", ["warp.show", "warp.join_warps", "warp.drain"])
def test_each_one_is_needed(kernels: dict[str, ir.OpView], name: str, ordering: str) -> None:
    """No fence, meeting or drain is there for nothing."""
    for number, op in enumerate(operations(kernels[name])):
        if op.operation.name == ordering:
            mutant = kernels[name].operation.clone().opview
            list(operations(mutant))[number].operation.erase()
            assert list(problems_of(mutant)), (name, op)
            mutant.operation.erase()
