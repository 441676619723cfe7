"""Walks over the operations of a module, in the order they are written."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir


def functions(module: ir.Module) -> Iterator[ir.OpView]:
    """The functions of a module that have a body."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.regions[0].blocks:
            yield op


def operations(op: ir.OpView) -> Iterator[ir.OpView]:
    """Every operation inside of another, an operation before what is inside of it."""
    # A stack, not a recursion: branches may nest deeper than Python's own stack.
    waiting = [iter(_directly_inside(op))]
    while waiting:
        for inner in waiting[-1]:
            yield inner
            if len(inner.regions):  # as most have none: asked of each of thousands
                waiting.append(iter(_directly_inside(inner)))
                break
        else:
            waiting.pop()


def _directly_inside(op: ir.OpView) -> list[ir.OpView]:
    return [inner for region in op.regions for block in region.blocks for inner in block.operations]


def operands_within(op: ir.OpView) -> list[ir.Value]:
    """The operands of an operation, and of those inside of it."""
    return [*op.operands, *(value for inner in operations(op) for value in inner.operands)]


def argument_names(kernel: ir.OpView) -> dict[ir.Value, str]:
    """The name in the source of what each argument of a kernel is, or is part of."""
    [block] = kernel.regions[0].blocks
    attributes = (ir.DictAttr(a) for a in ir.ArrayAttr(kernel.attributes["arg_attrs"]))
    slots = (ir.DictAttr(a["tile.slot"]) for a in attributes)
    names = (ir.StringAttr(slot["name"]).value for slot in slots)
    return dict(zip(block.arguments, names, strict=True))


def operand_group(op: ir.OpView, names: tuple[str, ...], name: str) -> list[ir.Value]:
    """The operands that a declaration names; `names` are all of its operands, in order."""
    operands = list(op.operands)
    if "operandSegmentSizes" not in op.attributes:
        position = names.index(name)
        return operands[position:] if position == len(names) - 1 else [operands[position]]
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    position = names.index(name)
    start = sum(sizes[:position])
    return operands[start : start + sizes[position]]
