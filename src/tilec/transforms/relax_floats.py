"""Let floats be approximated where a kernel says `#[hint(fast_math)]`.

Before:   operations on floats, each as IEEE has it
After:    they have the flag `contract`: a product and a sum may become one operation, rounded once.
          Quotients, exponentials and reciprocal roots have `arcp` and `afn`, too: one instruction
          approximates them, to a few units in the last place

Infinities, NaN and the order of sums keep their meaning: what is infinite or no number may just be
what a program computes with. Other functions stay as they are: which may be approximated, their
rules say (`OpRules.is_approximable`).
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.registry import rules

_ATTRIBUTE = "fastmath"


def relax_floats(function: ir.OpView) -> None:
    """Rewrites the function in place; needs a current context."""
    contracted = ir.Attribute.parse("#arith.fastmath<contract>")
    approximated = ir.Attribute.parse("#arith.fastmath<contract,arcp,afn>")
    for op in operations(function):
        # MLIR's operations on floats have the flags from the start, `none`.
        if _ATTRIBUTE in op.operation.attributes:
            rule = rules()[op.operation.name]
            flags = approximated if rule.is_approximable else contracted
            op.operation.attributes[_ATTRIBUTE] = flags
