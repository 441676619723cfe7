"""Walking over operations."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir


def operations_in(op: ir.OpView) -> Iterator[ir.OpView]:
    """Every operation in the regions of this one, in program order, outer ones first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from operations_in(inner)
