"""Whether roles and channels are right: the independent check of what made and moved them.

It knows nothing of how a schedule was made. Of a function with `warp.roles` it proves that

- each slot is given up once, to its own channel, on every path of its role; it is filled whole
  before it is published, and its tiles are read while it is held (`flow`);
- no product reads a slot that was released, or may be read by nobody but a product: a wait or drain
  that covers it comes first on every path. Sums under way are only added to and waited for, each
  once, and never meet sums at rest (`flow`);
- what threads write for products is shown, and all warps have come together, before a product reads
  it; it is written again when the products of all warps that read it are done (`flow`, `written`);
- both roles take slots alike, and neither waits for ever (`agreement`);
- the loader does nothing else: it has no tiles, and writes, orders and ends nothing (here);
- where several teams do programs by turns, each program is done by one of them, and all others skip
  its slots; a team gets slots when it is its turn (`teams`, `flow`);
- where a block does several programs, each role says which one before anything in it depends on
  that, and uses nothing from outside that does (`programs`);
- blocks that do a program together share out its turns, and one of them has all sums (`split`);
- the blocks of a cluster take what they share alike, and wait for each other where they begin and
  end (`clusters`).

A dropped wait, or one that is moved, is thus an error of the compiler, and never a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.effects import has_tile, is_of_numbers
from tilec.ir.walk import operations
from tilec.ops.lowering import PERSISTENT, teams_of
from tilec.warp.agreement import disagreements
from tilec.warp.clusters import MEET, strangers
from tilec.warp.flow import follow
from tilec.warp.problem import Problem
from tilec.warp.programs import misplaced
from tilec.warp.reading import BUFFER, CHANNEL, LEADS, ROLES, SHARE
from tilec.warp.split import not_together
from tilec.warp.teams import not_by_turns

# What stands outside of roles.
_OUTSIDE = (
    ROLES, CHANNEL, BUFFER, MEET, SHARE, LEADS, "warp.first_program", "warp.program_count",
    "warp.program_step",
)  # fmt: skip


def problems_of(function: ir.OpView) -> Iterator[Problem]:
    """All that is wrong; nothing, for what passes leave. A function without roles is right.

    A function that has another problem may get some that only follow from it.
    """
    [block] = function.regions[0].blocks
    found = [op for op in block.operations if op.operation.name.startswith("warp.")]
    roles = [op for op in found if op.operation.name == ROLES]
    for op in found:
        if op.operation.name not in _OUTSIDE:
            yield Problem("expected a role around it", op)
    if not roles:
        yield from (Problem("there are no roles for it", op) for op in found)
        return
    for op in roles[1:]:
        yield Problem("there are roles already", op, roles[0])
    loader, math = (region.blocks[0] for region in roles[0].regions)
    yield from _beyond_loading(roles[0].regions[0])
    yield from misplaced(block, roles[0], is_persistent=PERSISTENT in function.attributes)
    yield from strangers(function)
    yield from not_together(function, roles[0])
    by_turns = teams_of(function) > 1
    yield from not_by_turns(roles[0].regions[1], by_turns=by_turns)
    buffers = [op.results[0] for op in found if op.operation.name == BUFFER]
    loading = follow(loader, is_loader=True)
    computing = follow(math, is_loader=False, by_turns=by_turns, buffers=buffers)
    yield from loading.problems
    yield from computing.problems
    yield from disagreements(loader, math, computing.oldest)


def expect_no_problem(function: ir.OpView, after: str) -> None:
    """Asserts that a function is right once the pass `after` has run."""
    problem = next(problems_of(function), None)
    assert problem is None, f"roles after {after}: {problem}"


def _beyond_loading(region: ir.Region) -> Iterator[Problem]:
    """What a loader has that is not for it."""
    for op in _inside(region):
        name = op.operation.name
        if has_tile(op):
            yield Problem("the loader has a tile", op)
        elif not is_of_numbers(op) and name not in _OUTSIDE and not name.startswith("warp."):
            yield Problem("the loader does more than to load", op)


def _inside(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in block.operations:
            yield op
            yield from operations(op)
