"""Whether what depends on the program is asked after it is known which one is done.

`warp.program` says so from where it stands to the end of its block. Each role of a kernel whose
blocks do several programs has one; no other kernel has any.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.registry import rules
from tilec.warp.problem import Problem
from tilec.warp.reading import PROGRAM


def misplaced(block: ir.Block, roles: ir.OpView, *, is_persistent: bool) -> Iterator[Problem]:
    """What stands where the program is not known, in a kernel of this entry block."""
    said = [[op for op in _inside(r) if op.operation.name == PROGRAM] for r in roles.regions]
    if not is_persistent:
        yield from (Problem("a block does one program only", op) for role in said for op in role)
        return
    outside = _dependent(block)
    for region, sayings in zip(roles.regions, said, strict=True):
        if len(sayings) != 1:
            yield Problem(f"expected one `{PROGRAM}` in each role, got {len(sayings)}", roles)
            continue
        known = _after(sayings[0])
        for op in _inside(region):
            if rules()[op.operation.name].of_program and op not in known:
                yield Problem("it is not known here which program is done", op, sayings[0])
            if any(value in outside for value in op.operands):
                yield Problem("what is used is of another program", op)


def _inside(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in block.operations:
            yield op
            yield from operations(op)


def _after(saying: ir.OpView) -> set[ir.OpView]:
    """What stands after an operation in its block, and inside of that."""
    ops = list(saying.operation.block.operations)
    after = ops[ops.index(saying) + 1 :]
    return {inner for op in after for inner in (op, *operations(op))}


def _dependent(block: ir.Block) -> set[ir.Value]:
    """The values outside of roles that depend on the program."""
    found: set[ir.Value] = set()
    for op in block.operations:
        if rules()[op.operation.name].of_program or any(value in found for value in op.operands):
            found.update(op.results)
    return found
