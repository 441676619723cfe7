"""Operations that work element by element, for one element type and shape."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tests.programs.generate.use import (
    BYTES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    UNSIGNED,
    Array,
    Operand,
    Shape,
    Use,
)
from tests.programs.table import (
    NUMPY,
    _converted,
    _extreme,
    _truncated,
    _wrapped,
)
from tilec.ops.elementwise import FUNCTIONS

IN_F8 = ("f8e4m3", "f8e5m2")


def uses(element: str, shape: Shape) -> Iterator[Use]:
    """Every operation that takes the type."""
    yield from _conversions(element, shape)
    yield from _choices(element, shape)
    if element == "bool":
        yield from _truths(shape)
    if element in NUMBERS:
        yield from _comparisons(element, shape)
        yield from _arithmetic(element, shape)
    if element in INTEGERS:
        yield from _integers(element, shape)
        if not shape:
            yield from _scalar_integers(element)
    if element in FLOATS:
        yield from _floats(element, shape)
        yield from _functions(element, shape)


def _two(element: str) -> tuple[Operand, Operand]:
    return Operand("a", element), Operand("b", element)


def _truths(shape: Shape) -> Iterator[Use]:
    for sign, meaning in (("&", np.logical_and), ("|", np.logical_or), ("^", np.logical_xor)):
        yield Use(f"{{a}} {sign} {{b}}", _two("bool"), "bool", shape, meaning)
    yield Use("!{a}", _two("bool")[:1], "bool", shape, np.logical_not)
    for name, meaning in (("eq", np.equal), ("ne", np.not_equal)):
        yield Use(f"{{a}}.{name}({{b}})", _two("bool"), "bool", shape, meaning)
    if not shape:
        yield Use("{a} == {b}", _two("bool"), "bool", shape, np.equal)
        yield Use("{a} != {b}", _two("bool"), "bool", shape, np.not_equal)


_COMPARED = {
    "eq": ("==", np.equal), "ne": ("!=", np.not_equal), "lt": ("<", np.less),
    "le": ("<=", np.less_equal), "gt": (">", np.greater), "ge": (">=", np.greater_equal),
}  # fmt: skip


def _comparisons(element: str, shape: Shape) -> Iterator[Use]:
    for name, (sign, meaning) in _COMPARED.items():
        yield Use(f"{{a}}.{name}({{b}})", _two(element), "bool", shape, meaning)
        if not shape:
            yield Use(f"{{a}} {sign} {{b}}", _two(element), "bool", shape, meaning)


def _choices(element: str, shape: Shape) -> Iterator[Use]:
    operands = (Operand("p", "bool"), *_two(element))
    yield Use("select({p}, {a}, {b})", operands, element, shape, np.where)


# ---- conversions ---------------------------------------------------------------------------------


def _conversions(element: str, shape: Shape) -> Iterator[Use]:
    operand = (Operand("a", element),)
    for target in NUMPY:
        if target != "bool" or element == "bool":
            meaning = partial(_as, source=element, target=target)
            yield Use(f"{{a}}.to::<{target}>()", operand, target, shape, meaning)
            if not shape and target not in IN_F8:  # Rust has no such name to cast to
                yield Use(f"{{a}} as {target}", operand, target, shape, meaning)
        if "bool" not in (element, target) and BYTES[element] == BYTES[target]:
            dtype = np.dtype(NUMPY[target])
            yield Use(f"{{a}}.bits::<{target}>()", operand, target, shape, partial(_bits, dtype))


def _bits(dtype: np.dtype, a: Array) -> Array:
    return np.ascontiguousarray(a).view(dtype)


def _as(a: Array, source: str, target: str) -> Array:
    """Number by number; to f8 as the nearest of its few numbers."""
    values = np.ravel(a)
    if source in IN_F8:
        values = values.astype(np.float32)
    if source == "bool":
        values = values.astype(np.uint8)
    if source == target:
        return a
    if target in IN_F8:
        return _nearest_f8(values, np.dtype(NUMPY[target])).reshape(np.shape(a))
    if target == "bool":
        return values.astype(np.bool_).reshape(np.shape(a))
    return _converted(values, target).reshape(np.shape(a))


def _nearest_f8(values: Array, dtype: np.dtype) -> Array:
    codes = np.arange(128, dtype=np.uint8).view(dtype)
    codes = codes[np.isfinite(codes.astype(np.float64))]
    numbers = codes.astype(np.float64)
    wide = values.astype(np.float64)
    size = np.minimum(np.nan_to_num(np.abs(wide), posinf=1e300), numbers[-1])
    apart = np.abs(numbers - size[:, None])
    odd = codes.view(np.uint8) & 1
    choice = np.lexsort((np.broadcast_to(odd, apart.shape), apart), axis=-1)[:, 0]
    sign = np.signbit(wide).astype(np.uint8) << 7
    found = (codes.view(np.uint8)[choice] | sign).view(dtype)
    return np.where(np.isnan(wide), np.full(found.shape, np.nan).astype(dtype), found)


# ---- numbers -------------------------------------------------------------------------------------


def _arithmetic(element: str, shape: Shape) -> Iterator[Use]:
    rounding = _rounding(element)
    for sign, meaning in (("+", np.add), ("-", np.subtract), ("*", np.multiply)):
        yield Use(f"{{a}} {sign} {{b}}", _two(element), element, shape, partial(rounding, meaning))
    for sign in "/%":
        meaning = _QUOTIENTS[sign] if element in INTEGERS else partial(rounding, _DIVIDED[sign])
        yield Use(f"{{a}} {sign} {{b}}", _two(element), element, shape, meaning)
    euclid = _QUOTIENTS["euclid"] if element in INTEGERS else None
    yield Use("{a}.rem_euclid({b})", _two(element), element, shape, euclid)
    for name, sign in (("min", 1), ("max", -1)):
        meaning = partial(_extreme, sign=sign, numbers=True)
        if element in INTEGERS:
            meaning = np.minimum if sign == 1 else np.maximum
        yield Use(f"{{a}}.{name}({{b}})", _two(element), element, shape, meaning)
    clamp = (*_two(element), Operand("c", element))
    yield Use("{a}.clamp({b}.min({c}), {b}.max({c}))", clamp, element, shape, None)
    if element not in UNSIGNED:
        yield Use("-{a}", _two(element)[:1], element, shape, np.negative)
        yield Use("{a}.abs()", _two(element)[:1], element, shape, np.abs)


def _rounding(element: str):
    """One operation in a type wide enough that rounding its result once more is right."""
    wide = {"f16": np.float32, "bf16": np.float32, "f32": np.float64}.get(element)

    def rounded(meaning, *values: Array) -> Array:
        if wide is None:
            return meaning(*values)
        return meaning(*(v.astype(wide) for v in values)).astype(NUMPY[element])

    return rounded


_DIVIDED = {"/": np.divide, "%": np.fmod}


def _integer_quotient(what: str, a: Array, b: Array) -> Array:
    """By Python's exact integers."""
    found = []
    for x, y in zip(np.ravel(a).tolist(), np.ravel(b).tolist(), strict=True):
        quotient = _truncated(x, y)
        found.append({"/": quotient, "%": x - quotient * y, "euclid": x % abs(y) if y else x}[what])
    return _wrapped(found, a.dtype).reshape(np.shape(a))


_QUOTIENTS = {what: partial(_integer_quotient, what) for what in ("/", "%", "euclid")}


def _integers(element: str, shape: Shape) -> Iterator[Use]:
    for sign, meaning in (
        ("&", np.bitwise_and), ("|", np.bitwise_or), ("^", np.bitwise_xor),
        ("<<", partial(_shifted, "<<")), (">>", partial(_shifted, ">>")),
    ):  # fmt: skip
        yield Use(f"{{a}} {sign} {{b}}", _two(element), element, shape, meaning)
    yield Use("!{a}", _two(element)[:1], element, shape, np.invert)
    yield Use("{a}.mul_hi({b})", _two(element), element, shape, _high)


def _shifted(sign: str, a: Array, b: Array) -> Array:
    width = 8 * a.dtype.itemsize
    count = b & b.dtype.type(width - 1)
    return a << count if sign == "<<" else a >> count


def _high(a: Array, b: Array) -> Array:
    width = 8 * a.dtype.itemsize
    pairs = zip(np.ravel(a).tolist(), np.ravel(b).tolist(), strict=True)
    return _wrapped([(x * y) >> width for x, y in pairs], a.dtype).reshape(np.shape(a))


def _scalar_integers(element: str) -> Iterator[Use]:
    yield Use("{a}.div_ceil({b})", _two(element), element, (), None)
    yield Use("{a}.ilog2()", _two(element)[:1], "u32", (), _logarithm)
    yield Use("{a}.is_power_of_two()", _two(element)[:1], "bool", (), _is_power)


def _logarithm(a: Array) -> Array:
    return np.array([max(0, int(v).bit_length() - 1) if v > 0 else 0 for v in np.ravel(a)]).astype(
        np.uint32
    ).reshape(np.shape(a))  # fmt: skip


def _is_power(a: Array) -> Array:
    return np.array([v > 0 and int(v).bit_count() == 1 for v in np.ravel(a)]).reshape(np.shape(a))


def _floats(element: str, shape: Shape) -> Iterator[Use]:
    for name, sign in (("minimum", 1), ("maximum", -1)):
        meaning = partial(_extreme, sign=sign, numbers=False)
        yield Use(f"{{a}}.{name}({{b}})", _two(element), element, shape, meaning)
    three = (*_two(element), Operand("c", element))
    yield Use("{a}.mul_add({b}, {c})", three, element, shape, None)
    for name, meaning in (("is_nan", np.isnan), ("is_inf", np.isinf)):
        yield Use(f"{{a}}.{name}()", _two(element)[:1], "bool", shape, meaning)


# ---- functions: the CPU execution is right, the GPU as near as docs/ops.md says ------------------

_COMPOSED = {"recip": (0, 0), "sigmoid": (3, 3)}


def _functions(element: str, shape: Shape) -> Iterator[Use]:
    stated = {f.name: (f.ulp, f.count) for f in FUNCTIONS}
    stated |= {name: (ulp, 1) for name, ulp in _COMPOSED.items()}
    operands = Operand("v", element, "normal"), Operand("w", element, "normal")
    for name, ((f32, f64), count) in stated.items():
        # Of f64, NumPy's own functions are half a unit off; f16 and bf16 are rounded from f32.
        ulps = {"f32": f32, "f64": f64 + 1}.get(element, min(f32, 1)) if f32 or f64 else 0
        text = "{v}." + name + ("({w})" if count == 2 else "()")
        yield Use(text, operands[:count], element, shape, None, ulps)
    powers = (operands[0], Operand("n", "i32", "tame"))
    yield Use("{v}.powi({n})", powers, element, shape, None, 4)
