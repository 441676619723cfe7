"""Tell which accesses are the last to what they touch, in kernels that read something twice.

Before:   accesses, in loops
After:    accesses that touch their elements last have the unit attribute `last`: what they leave in
          the L2 cache nobody needs, and what others left there stays

Algorithm:
1. A tensor is read in passes if loads of it stand in two loops of one block, one after the other:
   most of what the later one reads was read before.
2. Its loads in the last of those loops are marked; and all stores of the kernel to tensors that it
   does not read.

A wrong mark costs time and nothing else. Kernels that read in one pass are left alone: there is
nothing to keep, and all accesses alike are fastest (H100: 1 % for stores).

    for j in … { x.load(j) }  for j in … { x.load(j); y.store(j, …) }     both of the second loop
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.walk import operations
from tilec.ops.registry import rules
from tilec.transforms.effects import blocks_of

LAST = "last"


def mark_last_uses(function: ir.OpView) -> None:
    """Rewrites the function in place; needs a current context."""
    [block] = function.regions[0].blocks
    marked = [load for loads in _last_passes(block) for load in loads]
    if not marked:
        return
    read = {_tensor(op) for op in operations(function) if _reads(op)}
    stores = (op for op in operations(function) if _writes(op))
    for op in (*marked, *(store for store in stores if _tensor(store) not in read)):
        op.attributes[LAST] = ir.UnitAttr.get()


def _last_passes(block: ir.Block) -> Iterator[list[ir.OpView]]:
    """For each tensor that loops of a block read one after the other, the loads of the last one."""
    loops: dict[ir.Value, list[list[ir.OpView]]] = {}
    for op in block.operations:
        if rules()[op.operation.name].loop:
            loads = [inner for inner in operations(op) if _reads(inner)]
            for tensor in {_tensor(load) for load in loads}:
                loops.setdefault(tensor, []).append([x for x in loads if _tensor(x) == tensor])
        for inner_block in blocks_of(op):
            yield from _last_passes(inner_block)
    yield from (passes[-1] for passes in loops.values() if len(passes) > 1)


def _reads(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    return declared is not None and bool(declared.reads)


def _writes(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    return declared is not None and bool(declared.writes)


def _tensor(access: ir.OpView) -> ir.Value:
    """The argument of the function that an access looks at."""
    view = access.operands[0]
    while not isinstance(view.owner, ir.Block):
        view = view.owner.opview.operands[0]
    return view
