"""Begin loads before the loops of products that they follow, as a schedule says.

Before:   for k { … }; t = load x; …
After:    t = load x; for k { … }; …            where it takes few registers
          prefetch x; for k { … }; t = load x; …
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ops.build import integer_list
from tilec.ops.registry import rules
from tilec.schedule.ahead import Ahead


def begin_ahead(loads: Sequence[Ahead]) -> None:
    """Rewrites the block of each load in place."""
    for one in loads:
        for op in one.moved:
            op.operation.move_before(one.loop)
        if one.how == "registers":
            one.op.operation.move_before(one.loop)
        else:
            _prefetch(one)


def _prefetch(one: Ahead) -> None:
    access = rules()[one.op.operation.name].access(one.op)
    assert access is not None, "it loads"
    known = {name: one.op.attributes[name] for name in one.op.attributes}
    # Operands of a load are told apart by this; a prefetch has no others.
    known.pop("operandSegmentSizes", None)
    known["shape"] = integer_list(access.shape)
    with one.op.location, ir.InsertionPoint(one.loop):
        ir.Operation.create(
            "warp.prefetch", operands=[access.view, *access.indices], attributes=known
        )
