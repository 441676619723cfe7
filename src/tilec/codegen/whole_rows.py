"""Which tensors a variant takes to have whole rows: the last extent is a multiple of an access.

Before:   one function, helpers inlined

In a tensor of several axes that is packed, rows are multiples of the widest access wherever outer
strides are. So a variant that asks for the one may ask for the other: what it loses are padded rows
that end inside of an access, which the variant for any tensor takes; and no access needs code for a
group that the end of a row cuts. Tensors of one axis have any extent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

from mlir import ir

from tilec.ir.walk import argument_names, operations
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape


@dataclass(frozen=True)
class WholeRows:
    """What is taken of the last extent of parameters, and so of the `Dim`s that these extents are.

    Units:    elements, by the name of a parameter; by the extent (index)
    """

    of_params: dict[str, int]
    of_extents: dict[ir.Value, int]


def whole_rows(function: ir.OpView, vector_bytes: int) -> WholeRows:
    """Those of the tensors that are accessed in rows of at least one whole access.

    Units:    `vector_bytes`: what pointers and outer strides are multiples of
    """
    found = WholeRows({}, {})
    names = argument_names(function)
    for tensor, extent, access in _accesses(function):
        multiple = vector_bytes * 8 // bit_width(ir.MemRefType(access.view.type).element_type)
        if multiple > 1 and access.shape[-1] % multiple == 0:
            found.of_params[names[tensor]] = multiple
            found.of_extents[extent] = lcm(multiple, found.of_extents.get(extent, 1))
    return found


def _accesses(function: ir.OpView) -> Iterator[tuple[ir.Value, ir.Value, AccessShape]]:
    """The accesses of tensors of several axes as they lie, whose last extent is not a constant:
    the pointer, that extent, and the access."""
    for op in operations(function):
        access = rules()[op.operation.name].access(op)
        if access is None or len(access.shape) < 2:
            continue
        view = access.view
        while not isinstance(view.owner, ir.Block):
            maker = view.owner.opview
            rule = rules()[maker.operation.name]
            last = len(access.shape) - 1
            if rule.viewed_axis(maker, last) != last:
                break
            pointer = maker.operands[0]
            if isinstance(pointer.owner, ir.Block):
                extent = rule.extent(maker, last, None)  # type: ignore[arg-type]
                if isinstance(extent, ir.Value):
                    yield pointer, extent, access
            view = pointer
