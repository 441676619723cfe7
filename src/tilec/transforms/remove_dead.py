"""Removes operations of our dialects whose results nobody uses.

Before:     anything
After:      no operation without effects on memory is unused, except through operations of others
            (MLIR's own, which its canonicalizer removes)
Algorithm:  blocks from the end to the start, inner ones first: what used an operation is gone
            before it is looked at
"""

from __future__ import annotations

from mlir import ir

from tilec.transforms.effects import blocks_of, is_removable


def remove_dead(module: ir.Module) -> bool:
    """Remove what is unused; whether anything was."""
    return _remove_in(module.operation)


def _remove_in(op: ir.OpView) -> bool:
    changed = False
    for block in blocks_of(op):
        for inner in reversed(list(block.operations)):
            changed |= _remove_in(inner)
            if is_removable(inner) and not any(list(result.uses) for result in inner.results):
                inner.operation.erase()
                changed = True
    return changed
