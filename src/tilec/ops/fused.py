"""`a.mul_add(b, c)`: a * b + c with one rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from mlir import ir

from tilec.ir.dialects import llvm
from tilec.ops.broadcasting import method
from tilec.ops.build import make
from tilec.ops.call import Operation
from tilec.ops.formats import Array, rounded, wide
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import Datum, ElementwiseRules, Machine, OpRules
from tilec.ops.uses import Domain

OPERATIONS: tuple[Operation, ...] = (
    method(
        "mul_add",
        3,
        Domain.FLOAT,
        lambda element, a, b, c: make("math.fma", a.type, a, b, c),
        "a.mul_add(b, c)",
        "`a * b + c`, rounded once.",
    ),
)


class _Fma(ElementwiseRules):
    name = "math.fma"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        # LLVM has an instruction of every float type for its intrinsic; libdevice would go through
        # f32 for f16 and bf16, and round twice.
        kind = lowering.type_of(op.results[0].type)
        return [llvm.call_intrinsic(kind, "llvm.fma", list(operands), [], [])]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        a, b, c = operands
        if a.dtype == np.dtype(np.float64):
            return [_fma64(a, b, c)]
        return [rounded(_to_odd_sum(wide(a) * wide(b), wide(c)), op.results[0].type)]


def _to_odd_sum(a: Array, b: Array) -> Array:
    """a + b of float64, rounded to odd: one more rounding to 32 bits or fewer is then right.

    The product of two f32 is exact in float64, so this is all that an FMA needs.
    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums".
    """
    total = np.asarray(a + b)
    back = total - a
    error = (a - (total - back)) + (b - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0)
    # The number of smaller magnitude where rounding went away from zero, then its last bit set.
    away = np.signbit(error) != np.signbit(total)
    odd = np.where(away, bits - 1, bits) | 1
    return np.where(inexact, odd, bits).view(np.float64)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    return np.asarray(np.frompyfunc(_fma_exactly, 3, 1)(a, b, c)).astype(np.float64)


def _fma_exactly(a: float, b: float, c: float) -> float:
    rough = a * b + c
    if not np.isfinite([a, b]).all():
        return rough
    if not np.isfinite(c):
        return c  # the product is finite, though it may be beyond what float64 holds
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return rough
    try:
        return float(exact)
    except OverflowError:
        return float(np.copysign(np.inf, float(exact > 0) - 0.5))


RULES: tuple[OpRules, ...] = (_Fma(),)
