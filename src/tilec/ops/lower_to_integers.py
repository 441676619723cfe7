"""Floats to integers, saturating, by as few conversions as the hardware takes.

Source:   PTX ISA, "cvt": what is out of range is clamped; NaN gives 0 in 32 bits and fewer

Instructions that convert or round run at a quarter of the rate of others, or less. PTX cvt.rzi
truncates by itself, so a rounding before it costs nothing that remains; and integers of 8 and 16
bits are what two comparisons leave of one of 32 bits.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith, llvm
from tilec.ops.fragments import pack, unpack, with_element

_SIGN = -(1 << 31)
# The largest f32 below one half. x plus it, with the sign of x, has the whole part that x has once
# it is rounded, halves away from zero: half itself would carry what is next below a half along.
_ALMOST_HALF = 0x3EFFFFFF
_TRUNCATION, _ROUNDING = "math.trunc", "math.round"
_WORD_BITS = 32


def saturated(value: ir.Value, held: ir.Type, *, is_signed: bool) -> ir.Value:
    """A float or a fragment as integers of a type as threads hold it; NaN becomes 0."""
    value = _unrounded(value)
    bits = _element(held).width
    if not isinstance(_element(value.type), ir.F32Type) or bits > _WORD_BITS:
        name = "llvm.fptosi.sat" if is_signed else "llvm.fptoui.sat"
        return llvm.call_intrinsic(held, name, [value], [], [])
    if bits == _WORD_BITS:
        return _as_words(value, is_signed=is_signed)
    words = _as_words(value, is_signed=True)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    clamped = arith.maxsi(words, _all(words.type, low))
    return arith.trunci(held, arith.minsi(clamped, _all(words.type, high)))


def _as_words(value: ir.Value, *, is_signed: bool) -> ir.Value:
    """f32 by PTX cvt.rzi, which saturates and gives 0 for NaN. LLVM's saturating conversions do the
    same with comparisons around it."""
    word = ir.IntegerType.get_signless(_WORD_BITS)
    name = "llvm.nvvm.f2i.rz" if is_signed else "llvm.nvvm.f2ui.rz"
    is_fragment = isinstance(value.type, ir.VectorType)
    ones = unpack(value) if is_fragment else [value]
    found = [llvm.call_intrinsic(word, name, [one], [], []) for one in ones]
    return pack(found) if is_fragment else found[0]


def _unrounded(value: ir.Value) -> ir.Value:
    """What has the same whole part as a value that was rounded, and takes fewer instructions."""
    if isinstance(value.owner, ir.Block):
        return value
    if value.owner.name == _TRUNCATION:
        return value.owner.operands[0]
    if value.owner.name != _ROUNDING or not isinstance(_element(value.type), ir.F32Type):
        return value
    source = value.owner.operands[0]
    words = with_element(source.type, ir.IntegerType.get_signless(_WORD_BITS))
    sign = arith.andi(arith.bitcast(words, source), _all(words, _SIGN))
    half = arith.bitcast(source.type, arith.ori(sign, _all(words, _ALMOST_HALF)))
    return arith.addf(source, half)


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _all(kind: ir.Type, number: int) -> ir.Value:
    one = ir.IntegerAttr.get(_element(kind), number)
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, one)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one))
