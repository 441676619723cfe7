"""Products that are summed from zero, and added to their sums by threads: `0 + a b`, then `c + 0`.

Tensor cores keep fewer bits of sums of f8 than f32 has: what they add to a large sum is cut off.
So they only sum what one product has.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ops.rules import shape_of


def promote(product: ir.OpView) -> None:
    """Have a product begin from zero; the sum takes its place."""
    sums, result = product.operands[2], product.results[0]
    element = ir.RankedTensorType(sums.type).element_type
    with product.location:
        with ir.InsertionPoint(product):
            zero = ir.FloatAttr.get(element, 0.0)
            kind = ir.RankedTensorType.get(shape_of(sums), element)
            zeros = arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero))
        with ir.InsertionPoint.after(product.operation):
            total = arith.addf(sums, result)
    product.operands[2] = zeros
    result.replace_all_uses_except(total, total.owner.operation)
