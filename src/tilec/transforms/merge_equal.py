"""Merges operations of our dialects that give the same.

Before:     MLIR's cse has merged equal operands
After:      of equal movable operations, one that the other is dominated by is left
Algorithm:  one table of what is known, from outer blocks to inner ones; what a block adds is
            forgotten after it
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, MutableMapping

from mlir import ir

from tilec.ops.bounds import PROVED
from tilec.transforms.effects import blocks_of, is_movable

_Known = MutableMapping[Hashable, ir.OpView]


def merge_equal(module: ir.Module) -> bool:
    """Merge what is equal; whether anything was."""
    return _merge_in(module.operation, ChainMap())


def _merge_in(op: ir.OpView, known: ChainMap[Hashable, ir.OpView]) -> bool:
    changed = False
    for block in blocks_of(op):
        inside = known.new_child()
        for inner in list(block.operations):
            changed |= _merge_in(inner, inside)
            if is_movable(inner):
                changed |= _merge(inner, inside)
    return changed


def _merge(op: ir.OpView, known: _Known) -> bool:
    first = known.setdefault(_meaning(op), op)
    if first is op:
        return False
    for result, same in zip(op.results, first.results, strict=True):
        result.replace_all_uses_with(same)
    op.operation.erase()
    return True


def _meaning(op: ir.OpView) -> Hashable:
    """What two operations have in common that give the same."""
    attributes = op.operation.attributes
    return (
        op.operation.name,
        tuple(op.operands),
        # The first one stays, and what was proved of it.
        tuple((name, attributes[name]) for name in sorted(attributes.keys()) if name != PROVED),
        tuple(result.type for result in op.results),
    )
