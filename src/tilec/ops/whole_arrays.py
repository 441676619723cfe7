"""Which combiners the CPU execution runs on whole arrays, as if they were numbers.

A branch then takes both ways, and each element is that of its own: so both must be without effect,
and without loops, whose turns would differ between elements.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.effects import Effect, effect_of


def works_on_arrays(block: ir.Block) -> bool:
    """Whether a combiner's block does: no loops, no calls, nothing with an effect in a branch."""
    return all(_works(op, in_branch=False) for op in block.operations)


def _works(op: ir.OpView, *, in_branch: bool) -> bool:
    name = op.operation.name
    if name == "scf.if":
        return all(
            _works(inner, in_branch=True)
            for region in op.operation.regions
            for block in region.blocks
            for inner in block.operations
        )
    has_effect = effect_of(op) not in (Effect.NONE, Effect.REGIONS)
    return not (len(op.operation.regions) or name == "func.call" or (in_branch and has_effect))
