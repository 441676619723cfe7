"""Whether teams that do programs by turns do each program once, and keep out of each other's way.

All teams execute the same role, and count programs by `warp.mine`, each time they come to it. So it
stands where all come once for each program: beside the one `warp.program`. Nothing but the branch
that it is the condition of differs between teams: one way is the team's own program, for which it
waits for its turn once; the other one goes past slots, and has no effect beside. What is outside of
the branch all teams do: numbers, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.effects import is_of_numbers
from tilec.ir.walk import operations
from tilec.warp.problem import Problem
from tilec.warp.reading import AWAIT_TURN, IS_PROGRAM, MINE, PASS_TURN, PROGRAM, SKIP, is_of_teams

_OF_TEAMS = (MINE, SKIP, AWAIT_TURN, PASS_TURN)
_OF_ALL = (MINE, PROGRAM, IS_PROGRAM)


def not_by_turns(role: ir.Region, *, by_turns: bool) -> Iterator[Problem]:
    """What keeps the math role from being that of teams; or what is of teams, where none are."""
    ops = list(_inside(role))
    if not by_turns:
        yield from (
            Problem("there are no teams", op) for op in ops if op.operation.name in _OF_TEAMS
        )
        return
    roles = role.owner.opview
    asked, waits = ([op for op in ops if op.operation.name == n] for n in (MINE, AWAIT_TURN))
    branches = [op for op in ops if is_of_teams(op)]
    for found, name in ((asked, MINE), (waits, AWAIT_TURN), (branches, "branch for the teams")):
        if len(found) != 1:
            yield Problem(f"expected one `{name}`, got {len(found)}", roles)
            return
    [branch], [mine], [wait] = branches, asked, waits
    yield from _misplaced(ops, branch, mine)
    if len(branch.regions[1].blocks) == 0:
        yield Problem("nobody skips the slots of other teams", branch)
        return
    own, others = (region.blocks[0] for region in branch.regions)
    if wait.operation.block != own:
        yield Problem("a team waits for its turn elsewhere than once a program", wait, branch)
    inside = {op for region in branch.regions for op in _inside(region)}
    of_others = set(_inside(branch.regions[1]))
    for op in ops:
        name = op.operation.name
        if name == SKIP and op not in of_others:
            yield Problem("a slot of the team's own program is skipped", op, branch)
        if op in of_others and not (is_of_numbers(op) or name == SKIP):
            yield Problem("a team does more than to skip another one's program", op, branch)
        if op not in inside and op != branch and not (is_of_numbers(op) or name in _OF_ALL):
            yield Problem("all teams would do this", op, branch)
    assert others != own


def _misplaced(ops: list[ir.OpView], branch: ir.OpView, mine: ir.OpView) -> Iterator[Problem]:
    """Whether all teams come to `warp.mine` once a program, and it is for the branch alone."""
    blocks = {op.operation.block for op in ops if op.operation.name == PROGRAM}
    for op in (mine, branch):
        if op.operation.block not in blocks:
            yield Problem("teams come here elsewhere than once a program", op)
    if len(list(mine.results[0].uses)) != 1:
        yield Problem("only one branch may differ between teams", mine)
    if len(branch.results):
        yield Problem("what is handed on differs between teams", branch)


def _inside(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in block.operations:
            yield op
            yield from operations(op)
