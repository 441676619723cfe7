"""MLIR's simplifications and ours in turn, until ours find nothing more.

Before:     no layouts: the canonicalizer aborts on encoded tensors
After:      nothing is computed that nobody uses, twice, or in a loop in which it never changes
"""

from __future__ import annotations

from mlir import ir
from mlir.passmanager import PassManager

from tilec.transforms.hoist_invariant import hoist_invariant
from tilec.transforms.merge_equal import merge_equal
from tilec.transforms.remove_dead import remove_dead

_UPSTREAM_OF_FUNCTION = "func.func(canonicalize,cse)"
UPSTREAM = "builtin.module(canonicalize,cse,loop-invariant-code-motion)"

# Each round goes one step along a chain of operations that alternate between MLIR's and ours.
MAX_ROUNDS = 10


def simplify(module: ir.Module) -> None:
    """Simplify every function in place."""
    upstream = PassManager.parse(UPSTREAM)
    for _ in range(MAX_ROUNDS):
        upstream.run(module.operation)
        changes = [merge_equal(module), hoist_invariant(module), remove_dead(module)]
        if not any(changes):
            return


def simplify_function(function: ir.OpView) -> None:
    """Fold, merge and remove what a rewrite of one function left behind; nothing moves."""
    upstream = PassManager.parse(_UPSTREAM_OF_FUNCTION)
    changed = True
    while changed:
        upstream.run(function.operation)
        changed = remove_dead(function)
