"""`warp.roles`: the program once for the warps that load, and once for those that compute.

Threads are numbered such that the math warps come first: they are as those of a kernel without
roles. One thread of the warpgroup after them is the loader.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, nvvm, scf
from tilec.layout import LANES
from tilec.ops.build import number_of
from tilec.ops.fragments import i32
from tilec.ops.lowering import Lowered, Lowering, Team, mark_team
from tilec.ops.rules import OpRules
from tilec.ops.send import wait_until_sent
from tilec.ops.split import join, joins_of
from tilec.ops.start import await_start
from tilec.ops.teams import begin_turns, make_turns

ROLES = "warp.roles"
_TEAM_BARRIER = 1  # other teams have those after it; for 0 and the last one see `ops/start.py`


class _Roles(OpRules):
    name = ROLES
    control = True

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        loader, math = (region.blocks[0] for region in op.regions)
        few, many = (number_of(op, f"{role}_registers") for role in ("loader", "math"))
        teams = lowering.teams
        first = LANES * lowering.warps * teams  # the loader
        is_math = _is_below(lowering.thread, first)
        start = lowering.start
        assert start is not None, "blocks with roles begin so"
        turns = make_turns(teams, lowering) if teams > 1 else None
        branch = scf.IfOp(is_math, has_else=True)
        math_warps = Team(_TEAM_BARRIER, first // teams, teams)
        mark_team(branch, math_warps)
        with ir.InsertionPoint(branch.then_block):
            _set_registers(many, "increase")
            await_start(start, is_loader=False)
            if turns is not None:
                lowering.turns = begin_turns(teams, turns, lowering)
            with lowering.as_team(math_warps):
                lowering.emit(math, [])
                if lowering.is_sending:
                    wait_until_sent()
            scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            _set_registers(few, "decrease")
            if start.waits_for_cluster:
                await_start(start, is_loader=True)
            warp = scf.IfOp(_is_below(lowering.thread, first + LANES))
            with ir.InsertionPoint(warp.then_block):
                if not start.waits_for_cluster:
                    await_start(start, is_loader=True)
                one = scf.IfOp(_is_below(lowering.thread, first + 1))
                with ir.InsertionPoint(one.then_block):
                    with lowering.as_team(Team(None, 1)):
                        lowering.emit(loader, [])
                    scf.yield_([])
                scf.yield_([])
            # All threads of a cluster come to where its blocks join.
            for _ in range(joins_of(math)):
                join()
            scf.yield_([])
        return []


def _is_below(thread: ir.Value, end: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.ult, thread, i32(end))


def _set_registers(count: int, action: str) -> None:
    if count:
        nvvm.setmaxregister(count, ir.Attribute.parse(f"#nvvm<action {action}>"))


RULES: tuple[OpRules, ...] = (_Roles(),)
