"""Numbers that are read from tensors, without tiles on the way: so that both roles can have them.

Before:     `tensor.extract` of a `tile.load` of one element, of a tensor that is only read; its
            bounds are known (`find_access_facts`)
After:      `tile.element`, which depends on nothing but its indices

    %t = tile.load %view, %i : tensor<1xi32>; %n = tensor.extract %t[0]
    %n = tile.element %view, %i : i32
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.ir.types import view_facts
from tilec.ir.walk import operations
from tilec.ops.rules import shape_of


def read_elements(function: ir.OpView) -> None:
    """Rewrite the function in place; needs a current context."""
    for op in list(operations(function)):
        if op.operation.name == "tensor.extract" and _is_element(op.operands[0]):
            _rewrite(op, op.operands[0].owner.opview)


def _is_element(tile: ir.Value) -> bool:
    """Whether it is a load of one element, of what nobody writes, and zero outside."""
    if isinstance(tile.owner, ir.Block) or tile.owner.name != "tile.load":
        return False
    *_, fill_count = tile.owner.attributes["operandSegmentSizes"]
    own = view_facts(tile.owner.operands[0].type).own
    return fill_count == 0 and own == "shared" and prod(shape_of(tile)) == 1


def _rewrite(extract: ir.OpView, load: ir.OpView) -> None:
    with extract.location, ir.InsertionPoint(load):
        element = ir.Operation.create(
            "tile.element",
            results=[extract.results[0].type],
            operands=list(load.operands),
            attributes={name: load.attributes[name] for name in ("unit", "bounds")},
        )
    extract.results[0].replace_all_uses_with(element.results[0])
    extract.operation.erase()
    if not list(load.results[0].uses):
        load.operation.erase()
