"""E0401: a part is not used after it was moved.

`tile.move` gives a part away; after it the part may not be used. (A smaller part of it that still
lives is a loan, which moving it breaks: E0403.) One part is reported once, at the first such use.

Algorithm:
1. A function is walked in program order with the set of what may have been moved.
2. Branches start from the same set; where they meet the set is the union.
3. The body of a loop is visited again if something is moved in it, so that a move in one turn is
   seen by the next.
A helper gets its parts as arguments, so each function stands for itself.

Why it is sound: parts are never carried by loops or chosen by branches (the front end refuses it),
so a part is one SSA value, and every path to a use passes the moves before it in this walk.

    refused                              accepted
    finish(z); z.store(…)                if c { finish(z); } else { z.store(…); }
    for … { finish(z); }                 finish(z);
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.checks.flow import is_repeated
from tilec.checks.places import Sources, name_of, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.views import CALL, MOVE
from tilec.ir.walk import functions
from tilec.recursion import deep_recursion

PASS = "tile-verify-ownership"
INLINED = False

_Moved = dict[ir.Value, ir.OpView]  # each with the operation that moved it first


def check_moves(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0401 for each use of a part that may have been moved."""
    for function in functions(module):
        walk = _Walk(sources)
        with deep_recursion():
            walk.block(function.regions[0].blocks[0], {})
        yield from walk.found.values()


class _Walk:
    """One pass over a function; `found` has one finding for each part that is at fault."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.found: dict[ir.Value, Diagnostic] = {}

    def block(self, block: ir.Block, moved: _Moved) -> _Moved:
        """What may have been moved after a block, given what was before it."""
        moved = dict(moved)
        for op in block.operations:
            # What a turn of a loop makes is not what the turn before gave away.
            for made in op.results:
                moved.pop(made, None)
            self._uses(op, moved)
            if op.operation.name == MOVE:
                moved.setdefault(op.operands[0], op)
            moved = self._regions(op, moved)
        return moved

    def _regions(self, op: ir.OpView, moved: _Moved) -> _Moved:
        blocks = [block for region in op.regions for block in region.blocks]
        if not blocks:
            return moved
        if not is_repeated(op.operation):
            after = dict(moved)
            for block in blocks:
                after = {**self.block(block, moved), **after}
            return after
        before = set(moved)
        for block in blocks:
            moved = self.block(block, moved)
        # A second turn finds no more than the first if that moved nothing.
        if not before.issuperset(moved):
            for block in blocks:
                moved = self.block(block, moved)
        return moved

    def _uses(self, op: ir.OpView, moved: _Moved) -> None:
        for part in op.operands:
            if part not in moved:
                continue
            found = self._finding(op, part, moved[part])
            known = self.found.setdefault(part, found)
            # Operations stand in the order of evaluation; users read in that of the text.
            if found.span < known.span:
                self.found[part] = found

    def _finding(self, op: ir.OpView, part: ir.Value, move: ir.OpView) -> Diagnostic:
        here, there = place_of(op, self._sources), place_of(move, self._sources)
        if move.operation == op.operation:
            text = "moved in an earlier turn of the loop"
            labels: tuple[Label, ...] = (Label(here, text),)
        else:
            labels = Label(here, "used here"), Label(there, "moved here")
        name = name_of(part, self._sources)
        return Diagnostic(
            "E0401",
            f"{name} is used after it was moved",
            labels,
            help=_way_out(move),
        )


def _way_out(move: ir.OpView) -> str | None:
    """What to write instead of a move: a part given to a helper can be lent."""
    if any(use.owner.operation.name == CALL for use in move.results[0].uses):
        return "lend it instead: `&mut …`, to a helper that takes `&mut Part<…>`"
    return "the name that it was bound to is the one to use"
