"""Let floats be approximated where a kernel says `#[hint(fast_math)]`.

Before:   operations on floats, each as IEEE has it
After:    they have the flag `contract`: a product and a sum may become one operation, rounded once.
          Quotients, exponentials and reciprocal roots have `arcp` and `afn`, too: one instruction
          approximates them, to a few units in the last place

Infinities, NaN and the order of sums keep their meaning: what is infinite or no number may just be
what a program computes with. Other functions stay as they are, for what approximates them (`tanh`
to 2^-11, `sin` far from 0 not at all) is no few units off.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.walk import operations

_ATTRIBUTE = "fastmath"
_APPROXIMATED = ("arith.divf", "math.exp", "math.exp2", "math.rsqrt")


def relax_floats(function: ir.OpView) -> None:
    """Rewrites the function in place; needs a current context."""
    contracted = ir.Attribute.parse("#arith.fastmath<contract>")
    approximated = ir.Attribute.parse("#arith.fastmath<contract,arcp,afn>")
    for op in operations(function):
        # MLIR's operations on floats have the flags from the start, `none`.
        if _ATTRIBUTE in op.operation.attributes:
            is_approximated = op.operation.name in _APPROXIMATED
            flags = approximated if is_approximated else contracted
            op.operation.attributes[_ATTRIBUTE] = flags
