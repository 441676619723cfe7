"""Bytes as bf16, which holds each of them exactly, by arithmetic that runs at full rate.

Instructions that convert run at a quarter of it (H100), or less: a product of such a factor waits
for them. As the last bits of 2²³ a byte is an f32, whose upper half is what is left of it as bf16.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ops.fragments import bit_width
from tilec.ops.packed_words import widened

_TWO_TO_23 = 0x4B000000
_128_AS_BF16 = 0x4300
_BYTES_OF_WORD = 4


def are_bytes_to_bf16(source: ir.Type, target: ir.Type) -> bool:
    """Whether fragments of these types are converted so."""
    if not isinstance(source, ir.VectorType) or not isinstance(target, ir.VectorType):
        return False
    is_bf16 = isinstance(target.element_type, ir.BF16Type)
    return is_bf16 and bit_width(ir.VectorType(source).element_type) == 8


def bytes_to_bf16(values: ir.Value, *, is_signed: bool) -> ir.Value:
    """The fragment as bf16."""
    [count] = ir.VectorType(values.type).shape
    if count % _BYTES_OF_WORD == 0:
        return _in_pairs(values, is_signed=is_signed)
    word = ir.IntegerType.get_signless(32)
    wide = arith.extui(ir.VectorType.get([count], word), values)
    # With its sign turned, a signed byte counts from -128 on.
    placed = arith.xori(wide, _full(count, word, _TWO_TO_23 + (128 if is_signed else 0)))
    single = arith.bitcast(ir.VectorType.get([count], ir.F32Type.get()), placed)
    offset = float(2**23 + (128 if is_signed else 0))
    exact = arith.subf(single, _full(count, ir.F32Type.get(), offset))
    bits = arith.bitcast(wide.type, exact)
    half = ir.VectorType.get([count], ir.IntegerType.get_signless(16))
    upper = arith.trunci(half, arith.shrui(bits, _full(count, word, 16)))
    return arith.bitcast(ir.VectorType.get([count], ir.BF16Type.get()), upper)


def _in_pairs(values: ir.Value, *, is_signed: bool) -> ir.Value:
    """Two at a time. Seven bits below 0x4300 are bf16 from 128 to 255, the eighth one makes 256 of
    128 there: their difference needs no rounding."""
    count = ir.VectorType(values.type).shape[0]
    half = ir.IntegerType.get_signless(16)
    halves = widened(values, ir.VectorType.get([count], half), is_signed=False)
    low, high = (_beside_128(halves, mask) for mask in (0x7F, 0x80))
    if is_signed:
        return arith.subf(low, high)
    return arith.addf(arith.subf(low, _full(count, ir.BF16Type.get(), 256.0)), high)


def _beside_128(halves: ir.Value, mask: int) -> ir.Value:
    """These bits of small integers below those of 128, as bf16."""
    count, half = ir.VectorType(halves.type).shape[0], ir.IntegerType.get_signless(16)
    bits = arith.andi(halves, _full(count, half, mask))
    placed = arith.ori(bits, _full(count, half, _128_AS_BF16))
    return arith.bitcast(ir.VectorType.get([count], ir.BF16Type.get()), placed)


def _full(count: int, element: ir.Type, value: float) -> ir.Value:
    kind = ir.VectorType.get([count], element)
    is_float = isinstance(element, ir.FloatType)
    one = ir.FloatAttr.get(element, value) if is_float else ir.IntegerAttr.get(element, int(value))
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one))
