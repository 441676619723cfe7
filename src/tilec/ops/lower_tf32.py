"""f32 rounded to tf32, which registers hold as an f32 with 13 zero bits at its end."""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith, vector
from tilec.ops.fragments import i32, with_element

_DROPPED = 13  # bits of an f32's fraction that tf32 has not


def to_tf32(value: ir.Value) -> ir.Value:
    """A scalar or fragment of f32, to nearest even.

    By arithmetic on bits: `cvt.rna.tf32` rounds halves away from zero, `cvt.rn.tf32` needs sm_90. A
    NaN is made quiet, so that it is one without its last bits.
    """
    bits_type = with_element(value.type, ir.IntegerType.get_signless(32))

    def constant(number: int) -> ir.Value:
        scalar = i32(number)
        is_vector = isinstance(bits_type, ir.VectorType)
        return vector.broadcast(bits_type, scalar) if is_vector else scalar

    bits = arith.bitcast(bits_type, value)
    last_kept = arith.andi(arith.shrui(bits, constant(_DROPPED)), constant(1))
    nearly_half = constant((1 << _DROPPED - 1) - 1)
    above = arith.addi(bits, arith.addi(last_kept, nearly_half))
    rounded = arith.andi(above, constant(-(1 << _DROPPED)))
    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
    found = arith.select(is_nan, arith.ori(bits, constant(1 << 22)), rounded)
    return arith.bitcast(value.type, found)
