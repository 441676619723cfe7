"""f8 to and from other floats on one thread: by `cvt` where there is one, else by arithmetic.

f8 is held by its bits, as i8. Values are scalars or fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, nvvm, vector
from tilec.ops.fragments import pack, unpack, with_element
from tilec.ops.instruction_set import capability
from tilec.target.instructions import CVT_F8


@dataclass(frozen=True)
class _Format:
    """Units: `largest` is the code of the largest number"""

    fraction: int  # bits
    bias: int
    largest: int

    @property
    def dropped(self) -> int:
        """How many bits of fraction f32 has beyond these."""
        return 23 - self.fraction

    def f32_bits(self, code: int) -> int:
        """The bits in f32 of a normal number."""
        return (code + (127 - self.bias << self.fraction)) << self.dropped


_FORMATS = {"f8E4M3FN": _Format(3, 7, 0x7E), "f8E5M2": _Format(2, 15, 0x7B)}
_NAN = 0x7F  # of both, and what `cvt` gives


def from_f8(value: ir.Value, source: ir.Type, target: ir.Type) -> ir.Value:
    """Bits of f8 as a wider float, exactly."""
    f16, f32 = ir.F16Type.get(), ir.F32Type.get()
    if capability() >= CVT_F8:
        return _resized(_by_instruction(value, source), f16, target)
    if str(source) == "f8E5M2":
        # The upper half of an f16.
        wide = arith.extui(with_element(value.type, _i(16)), value)
        bits = arith.shli(wide, _number(wide, 8))
        return _resized(arith.bitcast(with_element(value.type, f16), bits), f16, target)
    return _resized(_e4m3_to_f32(value), f32, target)


def to_f8(value: ir.Value, source: ir.Type, target: ir.Type) -> ir.Value:
    """A wider float as bits of f8: to nearest even, saturating, with one rounding."""
    f16, f32 = ir.F16Type.get(), ir.F32Type.get()
    has_instruction = capability() >= CVT_F8
    if has_instruction and source == f16:
        return _rounded_by_instruction(value, target)
    if str(source) == "f64":
        value = _to_odd_f32(value)
    elif source != f32:
        value = arith.extf(with_element(value.type, f32), value)
    if has_instruction:
        return _rounded_by_instruction(value, target)
    return _rounded(value, _FORMATS[str(target)])


def _resized(value: ir.Value, source: ir.Type, target: ir.Type) -> ir.Value:
    """A float of another width that holds it as well."""
    if source == target:
        return value
    f32 = ir.F32Type.get()
    if str(target) == "bf16" and source != f32:
        return _resized(_resized(value, source, f32), f32, target)
    wider = ir.FloatType(source).width < ir.FloatType(target).width
    return (arith.extf if wider else arith.truncf)(with_element(value.type, target), value)


# ---- by instructions -----------------------------------------------------------------------------


def _by_instruction(value: ir.Value, source: ir.Type) -> ir.Value:
    """As f16."""
    pair = ir.VectorType.get([2], ir.F16Type.get())
    found = [
        register
        for two in _pairs(value)
        for register in unpack(nvvm.convert_f8x2_to_f16x2(pair, pack(two), source))
    ]
    return _like(value, found)


def _rounded_by_instruction(value: ir.Value, target: ir.Type) -> ir.Value:
    """From f16 or f32."""
    pair = ir.VectorType.get([2], _i(8))
    found = []
    for low, high in _pairs(value):
        if str(low.type) == "f16":
            both = nvvm.convert_f16x2_to_f8x2(pair, pack([low, high]), target)
        else:
            both = nvvm.convert_f32x2_to_f8x2(
                pair, high, low, target,
                rnd=ir.Attribute.parse("#nvvm.fp_rnd_mode<rn>"),
                sat=ir.Attribute.parse("#nvvm.sat_mode<satfinite>"),
            )  # fmt: skip
        found += unpack(both)
    return _like(value, found)


def _pairs(value: ir.Value) -> list[list[ir.Value]]:
    """The registers two by two, the last one twice if it is alone."""
    registers = unpack(value) if isinstance(value.type, ir.VectorType) else [value]
    padded = [*registers, *registers[-1:]] if len(registers) % 2 else registers
    return [[low, high] for low, high in zip(padded[::2], padded[1::2], strict=True)]


def _like(value: ir.Value, registers: Sequence[ir.Value]) -> ir.Value:
    """These registers as a scalar or fragment like `value`, without what padding added."""
    if not isinstance(value.type, ir.VectorType):
        return registers[0]
    [count] = value.type.shape
    return pack(registers[:count])


# ---- by arithmetic -------------------------------------------------------------------------------


def _e4m3_to_f32(value: ir.Value) -> ir.Value:
    """Its exponent and fraction as those of an f32 of another bias, which a product corrects."""
    own = _FORMATS["f8E4M3FN"]
    bits = arith.extui(with_element(value.type, _i(32)), value)
    magnitude = arith.andi(bits, _number(bits, 0x7F))
    placed = _as_f32(arith.shli(magnitude, _number(bits, own.dropped)))
    number = _as_i32(arith.mulf(placed, _number(placed, 2.0 ** (127 - own.bias))))
    is_nan = arith.cmpi(arith.CmpIPredicate.eq, magnitude, _number(bits, _NAN))
    number = arith.select(is_nan, _number(bits, 0x7FC00000), number)
    sign = arith.shli(arith.andi(bits, _number(bits, 0x80)), _number(bits, 24))
    return _as_f32(arith.ori(number, sign))


def _rounded(value: ir.Value, own: _Format) -> ir.Value:
    """f32 to f8. Numbers below the smallest normal one are rounded by an addition, whose result has
    the unit in the last place of f8."""
    bits = _as_i32(value)
    magnitude = arith.andi(bits, _number(bits, 0x7FFFFFFF))
    is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, _number(bits, 0x7F800000))
    inside = arith.minui(magnitude, _number(bits, own.f32_bits(own.largest)))

    odd = arith.andi(arith.shrui(inside, _number(bits, own.dropped)), _number(bits, 1))
    half = arith.addi(inside, arith.addi(odd, _number(bits, (1 << own.dropped - 1) - 1)))
    code = arith.shrui(half, _number(bits, own.dropped))
    normal = arith.subi(code, _number(bits, 127 - own.bias << own.fraction))

    smallest = 1 << own.fraction
    unit = 2.0 ** (1 - own.bias - own.fraction)
    magic = _number(value, unit * 2.0**23)
    small = arith.subi(_as_i32(arith.addf(_as_f32(inside), magic)), _as_i32(magic))
    below = arith.cmpi(arith.CmpIPredicate.ult, inside, _number(bits, own.f32_bits(smallest)))

    found = arith.select(is_nan, _number(bits, _NAN), arith.select(below, small, normal))
    sign = arith.andi(arith.shrui(bits, _number(bits, 24)), _number(bits, 0x80))
    return arith.trunci(with_element(value.type, _i(8)), arith.ori(found, sign))


def _to_odd_f32(value: ir.Value) -> ir.Value:
    """f64 as f32, where inexact the odd neighbour: rounding that once more rounds `value` once.

    Source:   Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms
              using rounding to odd"
    """
    near = arith.truncf(with_element(value.type, ir.F32Type.get()), value)
    back = _magnitude(arith.extf(value.type, near))
    exact = _magnitude(value)
    bits = _as_i32(near)
    beyond = arith.cmpi(arith.CmpIPredicate.ugt, back, exact)
    truncated = arith.select(beyond, arith.subi(bits, _number(bits, 1)), bits)
    odd = arith.ori(truncated, _number(bits, 1))
    # NaN may have lost bits of its payload, and stays as it is.
    is_number = arith.cmpi(arith.CmpIPredicate.ule, exact, _number(exact, 0x7FF0000000000000))
    inexact = arith.andi(is_number, arith.cmpi(arith.CmpIPredicate.ne, back, exact))
    return _as_f32(arith.select(inexact, odd, bits))


def _magnitude(value: ir.Value) -> ir.Value:
    """The bits of an f64 without its sign: in the order of its magnitude."""
    bits = arith.bitcast(with_element(value.type, _i(64)), value)
    return arith.andi(bits, _number(bits, 0x7FFFFFFFFFFFFFFF))


def _as_i32(value: ir.Value) -> ir.Value:
    return arith.bitcast(with_element(value.type, _i(32)), value)


def _as_f32(value: ir.Value) -> ir.Value:
    return arith.bitcast(with_element(value.type, ir.F32Type.get()), value)


def _i(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)


def _number(value: ir.Value, number: float) -> ir.Value:
    """A number of the type of `value`, in each register."""
    kind = value.type
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, number)
    return vector.broadcast(kind, arith.constant(kind.element_type, number))
