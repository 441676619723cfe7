"""Shared memory of teams: each has a part of its own, behind rings that all of them have."""

from __future__ import annotations

import pytest
from mlir import ir
from test_shared_memory import alloc, loop, parsed, read, write

from tilec.ir.dialect import context
from tilec.shared_memory.accesses import Buffer, skeleton_of
from tilec.shared_memory.place_barriers import place_barriers
from tilec.shared_memory.plan_offsets import DoesNotFitError, plan_offsets
from tilec.shared_memory.verify import problems_of

LINES = (
    alloc("r", 3000, ", alignment = 1024"),
    loop(
        alloc("a", 600), write("a"), read("a"),
        alloc("b", 900, ", alignment = 512, by_warp, sent"),
        alloc("c", 200), write("c"), read("c"),
    ),
)  # fmt: skip


def planned(module: ir.Module, teams: int, limit: int = 1 << 20) -> tuple[int, list[Buffer]]:
    """The bytes of the block, and its buffers in program order."""
    [function] = module.body.operations
    needed = plan_offsets(skeleton_of(function), free=0, limit=limit, teams=teams)
    place_barriers(function, warps=4)
    allocs = [op for op in function.regions[0].blocks[0].operations if _is_alloc(op)]
    inside = next(op for op in function.regions[0].blocks[0].operations if len(op.regions))
    allocs += [op for op in inside.regions[0].blocks[0].operations if _is_alloc(op)]
    return needed, [Buffer(number, op) for number, op in enumerate(allocs)]


def _is_alloc(op: ir.OpView) -> bool:
    return bool(op.operation.name == "warp.alloc")


@pytest.mark.parametrize("teams", [2, 3])
def test_teams_share_rings_and_nothing_else(teams: int) -> None:
    with context():
        needed, (ring, *own) = planned(parsed(*LINES), teams)
        taken: set[int] = set()
        sizes = {one.team_bytes for one in own}
        assert len(sizes) == 1 and not any(n % 512 for n in sizes) and ring.team_bytes == 0
        for team in range(teams):
            mine = {
                byte + team * one.team_bytes
                for one in own
                for byte in range(one.offset, one.offset + one.size)
            }
            assert not mine & taken and not mine & set(range(ring.offset, ring.offset + 3000))
            taken |= mine
        assert max(taken) < needed
        assert not any(one.offset % one.alignment for one in own)


def test_what_all_teams_need_is_what_must_fit() -> None:
    with context():
        needed, _ = planned(parsed(*LINES), 2)
        with pytest.raises(DoesNotFitError):
            planned(parsed(*LINES), 2, limit=needed - 1)
        assert planned(parsed(*LINES), 2, limit=needed)[0] == needed


@pytest.mark.parametrize("change", ["none", "near", "all have one", "in the ring"])
def test_the_verifier_sees_teams_that_meet(change: str) -> None:
    with context():
        module = parsed(*LINES)
        _, (ring, *own) = planned(module, 2)
        attributes = own[1].op.attributes
        number = ir.IntegerType.get_signless(64)
        match change:
            case "near":
                for one in own:
                    one.op.attributes["team_bytes"] = ir.IntegerAttr.get(number, 512)
            case "all have one":
                del attributes["team_bytes"]
            case "in the ring":
                attributes["offset"] = ir.IntegerAttr.get(number, ring.offset + 2048)
        [function] = module.body.operations
        found = [one.what for one in problems_of(skeleton_of(function), warps=4, teams=2)]
        expected = {
            "near": "a team's buffer is another one's",
            "all have one": "all teams have one",
            "in the ring": "a team's buffer is in a ring",
        }
        assert found == [] if change == "none" else expected[change] in found
