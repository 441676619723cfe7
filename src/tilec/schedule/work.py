"""The cost of an operation that threads execute: instructions an element, and cycles."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ops.rules import shape_of
from tilec.target.description import Rates

# Instructions for an element: what does not stand here is one, and free if it moves nothing.
_INSTRUCTIONS = {
    "arith.constant": 0, "arith.divf": 8, "arith.remf": 20, "arith.divsi": 20, "arith.divui": 20,
    "arith.remsi": 20, "arith.remui": 20, "arith.ceildivsi": 20, "math.absf": 1, "math.fma": 1,
    "math.floor": 1, "math.ceil": 1, "arith.sitofp": 3, "arith.uitofp": 3,
    "linalg.reduce": 1, "tile.scan": 2, "tile.flip": 2,
}  # fmt: skip
_FUNCTION = 10  # of "math": a special function and what is around it
_FREE = ("tensor", "linalg", "tile", "warp", "scf", "memref", "func")  # views, copies, others


def thread_cycles(op: ir.OpView, rates: Rates) -> float:
    """How long an operation on tiles keeps the threads busy that is no load and no product.

    Units:    cycles of one multiprocessor
    """
    values = [one for one in (*op.results, *op.operands) if is_tile(one)]
    if not values:
        return 0
    name = op.operation.name
    kind = name.partition(".")[0]
    each = _INSTRUCTIONS.get(name, _FUNCTION if kind == "math" else 0 if kind in _FREE else 1)
    return max(prod(shape_of(one)) for one in values) * each / rates.lanes
