"""Removes the markers of moves, borrows and counters, which only checks and proofs read.

Before:     a part that is lent or given away passes through `tile.borrow` or `tile.move`, a counter
            through `tile.in_range`
After:      every use is of the part or the counter itself
"""

from __future__ import annotations

from mlir import ir

from tilec.transforms.effects import blocks_of

MARKERS = ("tile.move", "tile.borrow", "tile.in_range")


def drop_markers(module: ir.Module) -> None:
    """Replace each marker by what it marks."""
    _drop_in(module.operation)


def _drop_in(op: ir.OpView) -> None:
    for block in blocks_of(op):
        for inner in list(block.operations):
            if len(inner.regions):  # as few have: this is asked of thousands
                _drop_in(inner)
            if inner.operation.name in MARKERS:
                inner.results[0].replace_all_uses_with(inner.operands[0])
                inner.operation.erase()
