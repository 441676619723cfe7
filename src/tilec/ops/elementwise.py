"""The mathematical functions of floats, one line each.

f16 and bf16 are computed in f32 and rounded once. The accuracy is what GPU code promises, in units
in the last place of f32 and f64 (0: correctly rounded); the CPU execution is within half a unit of
f32. Source of the figures: CUDA C++ Programming Guide, "Mathematical Functions".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.ir.dialects import arith, llvm
from tilec.ops import uses
from tilec.ops.broadcasting import element_in, spread_operands
from tilec.ops.build import chosen, compared, constant_like, like, make
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.convert import converted
from tilec.ops.formats import Array
from tilec.ops.fragments import pack, splat, unpack, with_element
from tilec.ops.lowering import Lowered, Lowering, lower_elementwise
from tilec.ops.meaning import Elementwise, Rounded
from tilec.ops.rules import OpRules
from tilec.ops.uses import Domain
from tilec.types import BF16, BOOL, F16, F32, I32, Element, TileType, Type


@dataclass(frozen=True)
class Function:
    """`x.name()`, its MLIR operation, its meaning in float64 and its accuracy on the GPU."""

    name: str
    op: str
    meaning: Callable[..., Array]
    ulp: tuple[float, float]  # f32, f64
    summary: str
    count: int = 1


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    step = np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0)
    return np.asarray(np.copysign(whole + step, x))


_ERF: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])

FUNCTIONS = (
    Function("exp", "math.exp", np.exp, (2, 1), "e to the power of `x`."),
    Function("exp2", "math.exp2", np.exp2, (2, 1), "2 to the power of `x`."),
    Function("exp_m1", "math.expm1", np.expm1, (1, 1), "`exp(x) - 1`, precise near 0."),
    Function("ln", "math.log", np.log, (1, 1), "Natural logarithm."),
    Function("log2", "math.log2", np.log2, (1, 1), "Logarithm to base 2."),
    Function("log10", "math.log10", np.log10, (2, 1), "Logarithm to base 10."),
    Function("ln_1p", "math.log1p", np.log1p, (1, 1), "`ln(1 + x)`, precise near 0."),
    Function("sqrt", "math.sqrt", np.sqrt, (0, 0), "Square root."),
    Function("rsqrt", "math.rsqrt", lambda x: 1 / np.sqrt(x), (2, 1), "`1 / sqrt(x)`."),
    Function("sin", "math.sin", np.sin, (2, 2), "Sine of an angle in radians."),
    Function("cos", "math.cos", np.cos, (2, 2), "Cosine of an angle in radians."),
    Function("tan", "math.tan", np.tan, (4, 2), "Tangent of an angle in radians."),
    Function("asin", "math.asin", np.arcsin, (2, 2), "Arc sine, in radians."),
    Function("acos", "math.acos", np.arccos, (2, 2), "Arc cosine, in radians."),
    Function("atan", "math.atan", np.arctan, (2, 2), "Arc tangent, in radians."),
    Function("sinh", "math.sinh", np.sinh, (3, 2), "Hyperbolic sine."),
    Function("cosh", "math.cosh", np.cosh, (2, 1), "Hyperbolic cosine."),
    Function("tanh", "math.tanh", np.tanh, (2, 2), "Hyperbolic tangent."),
    Function("erf", "math.erf", _ERF, (2, 2), "Error function."),
    Function("floor", "math.floor", np.floor, (0, 0), "The largest whole number not above `x`."),
    Function("ceil", "math.ceil", np.ceil, (0, 0), "The smallest whole number not below `x`."),
    Function("round", "math.round", _half_away, (0, 0), "To whole numbers, halves away from 0."),
    Function("trunc", "math.trunc", np.trunc, (0, 0), "The whole part, toward 0."),
    Function("atan2", "math.atan2", np.arctan2, (3, 2), "The angle of the point (x, y).", 2),
    Function("powf", "math.powf", np.power, (4, 2), "`x` to a power of the same type.", 2),
)

_ARGUMENTS = {"atan2": ("y", "x"), "powf": ("x", "p")}


class _Math(Operation):
    """A function of floats of one type, broadcasting."""

    form = Form.METHOD
    receiver = Receiver.TILE

    def __init__(self, function: Function) -> None:
        self.name, self.op, self.count = function.name, function.op, function.count
        self.ulp = function.ulp
        self.summary = function.summary
        names = _ARGUMENTS.get(function.name, ("x",))
        self.signature = f"{names[0]}.{function.name}({', '.join(names[1:])})"

    def result_type(self, call: Call) -> Type:
        return _float_result(call, self.count)

    def emit(self, emission: Emission) -> ir.Value:
        element, operands = spread_operands(emission)
        return in_float(element, operands, lambda *xs: make(self.op, xs[0].type, *xs))


def _float_result(call: Call, count: int) -> TileType:
    uses.expect_counts(call, count)
    for index in range(count):
        uses.expect_domain(call, index, Domain.FLOAT)
    element = uses.unify(call, range(count))
    uses.expect_domain(call, 0, Domain.FLOAT)
    return TileType(element, uses.broadcast(call, range(count)))


def in_float(
    element: Element, operands: Sequence[ir.Value], build: Callable[..., ir.Value]
) -> ir.Value:
    """A function of floats; of f16 and bf16 in f32, rounded once."""
    if element not in (F16, BF16):
        return build(*operands)
    return converted(build(*(converted(x, element, F32) for x in operands)), F32, element)


class _Composed(Operation):
    """A function of one float that is made of others, in f32 or f64."""

    form = Form.METHOD
    receiver = Receiver.TILE

    def __init__(
        self, name: str, build: Callable[[Element, ir.Value], ir.Value], summary: str
    ) -> None:
        self.name, self.build, self.summary = name, build, summary
        self.signature = f"x.{name}()"

    def result_type(self, call: Call) -> Type:
        return _float_result(call, 1)

    def emit(self, emission: Emission) -> ir.Value:
        element, operands = spread_operands(emission)
        wide = F32 if element in (F16, BF16) else element
        return in_float(element, operands, lambda x: self.build(wide, x))


def _recip(element: Element, x: ir.Value) -> ir.Value:
    return make("arith.divf", x.type, constant_like(x, element, 1), x)


def _sigmoid(element: Element, x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x), by e^-|x|, which never overflows."""
    one = constant_like(x, element, 1)
    negative = compared("olt", x, constant_like(x, element, 0))
    small = make("math.exp", x.type, make("arith.negf", x.type, make("math.absf", x.type, x)))
    above = chosen(negative, small, one)
    return make("arith.divf", x.type, above, make("arith.addf", x.type, one, small))


class _Test(Operation):
    """A question of each float."""

    form = Form.METHOD
    receiver = Receiver.TILE

    def __init__(self, name: str, op: str, summary: str) -> None:
        self.name, self.op, self.summary = name, op, summary
        self.signature = f"x.{name}()"

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1)
        return TileType(BOOL, uses.expect_domain(call, 0, Domain.FLOAT).shape)

    def emit(self, emission: Emission) -> ir.Value:
        [x] = emission.operands
        element = element_in(emission.types[0])
        if element in (F16, BF16):
            x = converted(x, element, F32)
        return make(self.op, like(x, BOOL), x)


class _Powi(Operation):
    """The power is an `i32` scalar or tile."""

    name = "powi"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "x.powi(n)"
    summary = "`x` to a power of type `i32`."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        base = uses.expect_domain(call, 0, Domain.FLOAT)
        uses.unify_with(call, 1, I32, call.name_span)
        return TileType(base.element, uses.broadcast(call, (0, 1)))

    def emit(self, emission: Emission) -> ir.Value:
        element, (x, n) = spread_operands(emission)
        return in_float(element, [x], lambda wide: make("math.fpowi", wide.type, wide, n))


OPERATIONS: tuple[Operation, ...] = (
    *map(_Math, FUNCTIONS),
    _Powi(),
    _Composed("recip", _recip, "`1 / x`, correctly rounded in f32 and f64."),
    _Composed("sigmoid", _sigmoid, "`1 / (1 + exp(-x))`, precise on both sides of 0."),
    _Test("is_nan", "math.isnan", "Where `x` is NaN, as `bool`."),
    _Test("is_inf", "math.isinf", "Where `x` is infinite, of either sign, as `bool`."),
)


class _SquareRoot(Rounded):
    """Correctly rounded by one instruction; libdevice would approximate it."""

    name = "math.sqrt"

    def __init__(self) -> None:
        super().__init__(self.name, np.sqrt)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        # LLVM makes sqrt.rn of its intrinsic (PTX ISA, "sqrt").
        kind = lowering.type_of(op.results[0].type)
        return [llvm.call_intrinsic(kind, "llvm.sqrt", list(operands), [], [])]


@dataclass(frozen=True)
class _Power(Rounded):
    """A power of a base: where it may be approximated, that of two which hardware has.

    Results that are no normal numbers are 0 then. Else each takes a comparison and two products
    more, which scale what is out of range (PTX ISA, "ex2").
    """

    log2_of_base: float = 1.0
    is_approximable: bool = True

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        kind, [exponent] = lowering.type_of(op.results[0].type), operands
        assert isinstance(exponent, ir.Value), "a number, or a tile in registers"
        is_exact = "afn" not in str(op.attributes["fastmath"])
        if is_exact or with_element(kind, ir.F32Type.get()) != kind:
            return lower_elementwise(op, [exponent], lowering)
        if self.log2_of_base != 1.0:
            factor = arith.constant(ir.F32Type.get(), self.log2_of_base)
            is_tile = isinstance(kind, ir.VectorType)
            exponent = arith.mulf(exponent, splat(factor, kind.shape[0]) if is_tile else factor)
        if not isinstance(kind, ir.VectorType):
            return [_power_of_two(exponent)]
        return [pack([_power_of_two(value) for value in unpack(exponent)])]


def _power_of_two(exponent: ir.Value) -> ir.Value:
    name = "llvm.nvvm.ex2.approx.ftz"
    return llvm.call_intrinsic(exponent.type, name, [exponent], [], [])


# What one instruction gives but for a few units in the last place. `tanh` it gives to 2^-11, `sin`
# and logarithms nowhere near in places.
_APPROXIMABLE = ("math.rsqrt",)

RULES: tuple[OpRules, ...] = (
    *(
        Rounded(f.op, f.meaning, f.op in _APPROXIMABLE)
        for f in FUNCTIONS
        if f.op not in (_SquareRoot.name, "math.exp", "math.exp2")
    ),
    _Power("math.exp", np.exp, log2_of_base=math.log2(math.e)),
    _Power("math.exp2", np.exp2),
    _SquareRoot(),
    Rounded("math.roundeven", np.rint),
    Rounded("math.fpowi", np.power),
    Elementwise("math.isnan", np.isnan),
    Elementwise("math.isinf", np.isinf),
    Elementwise("math.isfinite", np.isfinite),
    Elementwise("math.copysign", np.copysign),
)
