"""The programs of this folder: at which extents and on what data each kernel runs, and what NumPy
says that it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tests.programs.dots import (
    DOT_COMPUTED,
    DOT_FACTORS,
    DOT_LOOPS,
    DOT_NESTS,
    DOT_PIPELINED,
    DOT_RESULTS,
)
from tests.programs.entry import Array, Arrays, Entry, Reference

NUMPY: dict[str, Any] = {
    "bool": np.bool_, "usize": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64, "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    **{f"{sign}{bits}": np.dtype(f"{kind}{bits}") for sign, kind in (("i", "int"), ("u", "uint"))
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


# ---- data ----------------------------------------------------------------------------------------


def data(kind: str, element: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """An array of an element type; its kind is the name of one of the functions below."""
    dtype = np.dtype(NUMPY[element])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(_KINDS[kind](dtype, shape, rng)).astype(dtype)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype in (NUMPY["bf16"], NUMPY["f8e4m3"], NUMPY["f8e5m2"])


def _wide(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """All of the type: random bits, small numbers, and the numbers at its edges."""
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    bits = (
        rng.integers(0, 2 ** (8 * dtype.itemsize), shape, np.uint64, endpoint=False)
        if dtype.itemsize < 8
        else rng.integers(0, 2**64 - 1, shape, np.uint64, endpoint=True)
    )
    any_bits = bits.astype(f"u{dtype.itemsize}").view(dtype)
    small = (rng.normal(scale=3, size=shape)).astype(dtype if _is_float(dtype) else np.int64)
    edges = rng.choice(_edges(dtype), shape)
    which = rng.integers(0, 3, shape)
    return np.where(which == 0, any_bits, np.where(which == 1, small.astype(dtype), edges))


def _edges(dtype: np.dtype[Any]) -> Array:
    if _is_float(dtype):
        info = ml_dtypes.finfo(dtype)
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan]
        named = [info.max, info.min, info.tiny, info.smallest_subnormal, info.eps]
        return np.array([*values, *map(float, named)]).astype(dtype)
    info = np.iinfo(dtype)
    width = 8 * dtype.itemsize
    values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, width - 1, width, width + 1]
    values += [-1, -2, -width] if info.min else [info.max // 2, info.max // 2 + 1]
    return np.array(values, dtype)


def _normal(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Floats around zero."""
    return rng.normal(size=shape)


def _tame(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Small whole numbers: sums of a few thousand are exact in any order and type."""
    low = -2 if _is_float(dtype) or dtype.kind == "i" else 0
    return rng.integers(low, 3, shape)


def _factors(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Mostly 1, rarely 2 or -1 or 1/2: products are exact in any order."""
    choice = [1, 1, 1, 1, 1, 1, 1, 1, 2, -1 if dtype.kind != "u" else 1]
    if _is_float(dtype):
        choice.append(0.5)
    return rng.choice(np.array(choice, np.float64), shape)


def _numbers(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """As `wide`, without NaN."""
    values = _wide(dtype, shape, rng).astype(dtype)
    return np.where(np.isnan(values), np.ones(shape, dtype), values)


def _rarely(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Truths that seldom hold."""
    return rng.random(shape) < 0.03


def _mostly_positive(
    dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """Of a few hundred numbers, some below zero."""
    return np.where(rng.random(shape) < 0.01, -1, rng.integers(0, 100, shape))


def _whole_bytes(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    return rng.integers(-128, 128, shape)


def _powers_of_2(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    return rng.choice([0.25, 0.5, 1.0, 2.0], shape)


def _short(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Whole numbers of half the digits of a float type: products are often half-way."""
    digits = (ml_dtypes.finfo(dtype).nmant + 1) // 2 + 1
    return rng.integers(2 ** (digits - 1), 2**digits, shape)


def _tiny(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Next to nothing, beside whole numbers."""
    return rng.choice([-1.0, 1.0], shape) * 2.0 ** -rng.integers(12, 24, shape)


def _indices(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Mostly below 32, some below zero, some as far outside as the type goes."""
    near = rng.integers(0 if dtype.kind == "u" else -3, 32, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.05, rng.choice(_edges(dtype), shape), near)


def _permutation(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Every number below that of the elements, once."""
    return rng.permutation(int(np.prod(shape))).reshape(shape)


def _distinct(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """As `permutation`, some replaced by numbers that are outside of everything."""
    numbers = _permutation(dtype, shape, rng).astype(dtype)
    return np.where(rng.random(shape) < 0.1, rng.choice([-1, 2**31 - 1, -(2**31)], shape), numbers)


def _zeros(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    return np.zeros(shape)


def _whole(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Integers of all sizes; as floats, small ones."""
    return _tame(dtype, shape, rng) if _is_float(dtype) else _wide(dtype, shape, rng)


def _special(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Small whole numbers, infinities and NaN."""
    values = rng.choice([np.inf, -np.inf, np.nan], shape)
    return np.where(rng.random(shape) < 0.1, values, _tame(dtype, shape, rng))


def _positive(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Between 1/2 and 2."""
    return rng.uniform(0.5, 2.0, shape)


_KINDS = {
    f.__name__[1:]: f
    for f in (
        *(_wide, _normal, _tame, _factors, _numbers, _rarely, _mostly_positive),
        *(
            _whole_bytes,
            _powers_of_2,
            _short,
            _tiny,
            _indices,
            _permutation,
            _distinct,
            _zeros,
            _positive,
            _whole,
            _special,
        ),
    )
}


# ---- integers ------------------------------------------------------------------------------------


def _integer_sums(a: Arrays) -> Mapping[str, Array]:
    return {"sum": a.x + a.y, "difference": a.x - a.y, "product": a.x * a.y}


def _exactly(a: Arrays) -> Iterator[tuple[int, int, int, int]]:
    """Width, least number, and the pairs of operands as Python's integers."""
    width = 8 * a.x.dtype.itemsize
    for x, y in zip(a.x.tolist(), a.y.tolist(), strict=True):
        yield width, int(np.iinfo(a.x.dtype).min), x, y


def _wrapped(values: list[int], dtype: np.dtype[Any]) -> Array:
    width = 8 * dtype.itemsize
    return (
        np.array([v % 2**width for v in values], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    )


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0


def _quotients(a: Arrays) -> Mapping[str, Array]:
    """As language.md says, by Python's exact integers."""
    found: dict[str, list[int]] = {k: [] for k in ("quotient", "remainder", "euclidean", "high")}
    for width, _, x, y in _exactly(a):
        quotient = _truncated(x, y)
        found["quotient"].append(quotient)
        found["remainder"].append(x - quotient * y)
        found["euclidean"].append(x % abs(y) if y else x)
        found["high"].append((x * y) >> width)
    return {name: _wrapped(values, a.x.dtype) for name, values in found.items()}


def _by_constants(a: Arrays) -> Mapping[str, Array]:
    x = a.x.tolist()
    found = {
        "by_7": [_truncated(v, 7) for v in x],
        "by_8": [_truncated(v, 8) for v in x],
        "by_0": [0 for _ in x],
        "rest_of_16": [v - 16 * _truncated(v, 16) for v in x],
        "rest_of_0": x,
    }
    return {name: _wrapped(values, a.x.dtype) for name, values in found.items()}


def _bits(a: Arrays) -> Mapping[str, Array]:
    shifted = [(x << (y % width), x >> (y % width)) for width, _, x, y in _exactly(a)]
    return {
        "and": a.x & a.y,
        "or": a.x | a.y,
        "xor": a.x ^ a.y,
        "not": ~a.x,
        "left": _wrapped([left for left, _ in shifted], a.x.dtype),
        "right": _wrapped([right for _, right in shifted], a.x.dtype),
    }


def _integer_extremes(a: Arrays) -> Mapping[str, Array]:
    return {
        "least": np.minimum(a.x, a.y),
        "greatest": np.maximum(a.x, a.y),
        "size": np.abs(a.x),
        "clamped": np.clip(a.x, 3, 100),
    }


def _comparisons(a: Arrays) -> Mapping[str, Array]:
    return {
        "eq": a.x == a.y, "ne": a.x != a.y, "lt": a.x < a.y,
        "le": a.x <= a.y, "gt": a.x > a.y, "ge": a.x >= a.y,
    }  # fmt: skip


def _integer_comparisons(a: Arrays) -> Mapping[str, Array]:
    return {**_comparisons(a), "chosen": np.where(a.x > a.y, a.x - a.y, a.y - a.x)}


def _truths(a: Arrays) -> Mapping[str, Array]:
    return {
        "and": a.x & a.y, "or": a.x | a.y, "xor": a.x ^ a.y, "not": ~a.x,
        "same": a.x == a.y, "chosen": np.where(a.x, a.y, ~a.y),
    }  # fmt: skip


def _index_arithmetic(a: Arrays) -> Mapping[str, Array]:
    q = [_truncated(x, y) for x, y in zip(a.x.tolist(), a.y.tolist(), strict=True)]
    pairs = zip(q, a.x.tolist(), a.y.tolist(), strict=True)
    return {
        "quotient": _wrapped([k + x - k * y for k, x, y in pairs], a.x.dtype),
        "right": a.x >> (a.y & 63),
        "below": a.x < a.y,
        "wide": a.x.astype(np.float64),
        "narrow": a.y.astype(np.int16),
    }


_INTEGERS = {
    "sums": Entry(_integer_sums),
    "negated": Entry(lambda a: {"y": -a.x}),
    "quotients": Entry(_quotients),
    "by_constants": Entry(_by_constants),
    "bits": Entry(_bits),
    "extremes": Entry(_integer_extremes),
    "compared": Entry(_integer_comparisons),
    "truths": Entry(_truths),
    "indices": Entry(_index_arithmetic),
}


# ---- floats --------------------------------------------------------------------------------------


def _in_wider(a: Arrays, *names: str) -> list[Array]:
    """The arguments in a type in which one operation is exact enough to be rounded once more."""
    wide = {2: np.float32, 4: np.float64, 8: np.longdouble}[a.x.dtype.itemsize]
    return [getattr(a, name).astype(wide) for name in names]


def _rounded(values: Array, a: Arrays) -> Array:
    return values.astype(a.x.dtype)


def _float_sums(a: Arrays) -> Mapping[str, Array]:
    """Rounding twice is rounding once here, since the wider type has more than twice the digits;
    float64 is its own."""
    x, y = (a.x, a.y) if a.x.dtype == np.float64 else _in_wider(a, "x", "y")
    found = {"sum": x + y, "difference": x - y, "product": x * y, "quotient": x / y}
    return {**{name: _rounded(v, a) for name, v in found.items()}, "negated": -a.x}


def _products(a: Arrays) -> Mapping[str, Array]:
    """`fused` is checked where float64 holds the exact product and sum: for f16 and bf16 data of a
    few binades."""
    x, y, z = (a.x, a.y, a.z) if a.x.dtype == np.float64 else _in_wider(a, "x", "y", "z")
    product = _rounded(x * y, a).astype(x.dtype)
    found = {"separate": _rounded(product + z, a), "less": _rounded(z - product, a)}
    if a.x.dtype.itemsize == 2:
        x, y, z = (v.astype(np.float64) for v in (x, y, z))
        found["fused"] = _rounded(x * y + z, a)
    return found


def _fused(a: Arrays) -> Mapping[str, Array]:
    """Float64 holds the sums exactly, but for its own."""
    if a.y.dtype == np.float64:
        return {}
    x, y, z = (v.astype(np.float64) for v in (a.a, a.b, a.c))
    exact = x * y + z
    return {"y": _once(exact, a.y.dtype) if a.y.dtype.itemsize == 2 else exact.astype(a.y.dtype)}


def _remainders(a: Arrays) -> Mapping[str, Array]:
    x, y = a.x.astype(np.float64), a.y.astype(np.float64)
    rest = np.fmod(x, y)
    return {"remainder": _rounded(rest, a)}


def _extreme(a: Array, b: Array, sign: int, *, numbers: bool) -> Array:
    """The lesser by `sign` 1, the greater by -1; -0.0 is below 0.0."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    below = (sign * x < sign * y) | ((x == y) & (np.signbit(x) == (sign > 0)))
    found = np.where(below, a, b)
    x_nan, y_nan = np.isnan(x), np.isnan(y)
    if numbers:
        return np.where(x_nan, b, np.where(y_nan, a, found))
    return np.where(x_nan | y_nan, np.full(a.shape, np.nan).astype(a.dtype), found)


def _float_extremes(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    low, high = np.full(x.shape, -1.5).astype(x.dtype), np.full(x.shape, 2.0).astype(x.dtype)
    clamped = np.where(
        x.astype(np.float64) < -1.5, low, np.where(x.astype(np.float64) > 2, high, x)
    )
    return {
        "min": _extreme(x, a.y, 1, numbers=True),
        "max": _extreme(x, a.y, -1, numbers=True),
        "minimum": _extreme(x, a.y, 1, numbers=False),
        "maximum": _extreme(x, a.y, -1, numbers=False),
        "size": np.abs(x),
        "clamped": clamped,
    }


def _float_comparisons(a: Arrays) -> Mapping[str, Array]:
    infinity = np.full(a.x.shape, np.inf).astype(a.x.dtype)
    return {
        **_comparisons(a),
        "nan": np.isnan(a.x),
        "inf": np.isinf(a.y),
        "chosen": np.where(a.x < a.y, a.x, infinity),
    }


def _wholes(a: Arrays) -> Mapping[str, Array]:
    x = a.x.astype(np.float64)
    away = np.copysign(np.floor(np.abs(x) + 0.5), x)
    # From 2^52 on all are whole; just below 0.5 the sum above would round up.
    away = np.where(
        (np.abs(x) >= 2.0**52) | (np.abs(x) < 0.5), np.where(np.abs(x) < 0.5, x * 0, x), away
    )
    found = {
        "floor": np.floor(x), "ceil": np.ceil(x), "trunc": np.trunc(x), "root": np.sqrt(x),
        "round": away,
    }  # fmt: skip
    return {name: _rounded(values, a) for name, values in found.items()}


def _constants(a: Arrays) -> Mapping[str, Array]:
    info = ml_dtypes.finfo(a.x.dtype)
    named = [info.min, info.max, info.eps, np.inf, -np.inf, np.nan, 0.1]
    return {"y": np.concatenate([np.array([float(v) for v in named]).astype(a.x.dtype), a.x[7:]])}


_FLOATS = {
    "sums": Entry(_float_sums),
    "products": Entry(_products, data=dict.fromkeys("xyz", "normal")),
    "fused": Entry(_fused, data={"a": "short", "b": "short", "c": "tiny"}),
    "remainders": Entry(_remainders),
    "extremes": Entry(_float_extremes),
    "compared": Entry(_float_comparisons),
    "wholes": Entry(_wholes),
    "constants": Entry(_constants, dims=({},)),
}


# ---- conversions ---------------------------------------------------------------------------------


def _converted(x: Array, element: str) -> Array:
    """One conversion by language.md, number by number, by Python's exact integers and floats."""
    dtype = np.dtype(NUMPY[element])
    if _is_float(x.dtype) and not _is_float(dtype):
        info = np.iinfo(dtype)
        values = [_saturated(float(v), info) for v in x]
        return np.array(values, dtype)
    if not _is_float(x.dtype) and not _is_float(dtype):
        return _wrapped([int(v) for v in x], dtype)
    if _is_float(x.dtype):
        # From f64 to bf16 ml_dtypes rounds twice, through f32; all others are right.
        return _once(x, dtype) if x.dtype == np.float64 and element == "bf16" else x.astype(dtype)
    if element == "f64":
        return np.array([float(int(v)) for v in x])
    return _from_integers([int(v) for v in x], dtype)


def _saturated(value: float, info: Any) -> int:
    if np.isnan(value):
        return 0
    return int(max(info.min, min(info.max, value if np.isinf(value) else int(value))))


def _once(x: Array, dtype: np.dtype[Any]) -> Array:
    """float64 to bf16 in one rounding: the nearest of those around it, the even one of two."""
    near = x.astype(np.float32).astype(dtype)
    best = near.copy()
    bits = near.view(np.uint16)
    for step in (-1, 1):
        other = (bits + np.uint16(step % 65536)).view(dtype)
        gap, best_gap = (np.abs(v.astype(np.float64) - x) for v in (other, best))
        even = (other.view(np.uint16) & 1) == 0
        best = np.where((gap < best_gap) | ((gap == best_gap) & even), other, best)
    return np.where(np.isfinite(near.astype(np.float64)), best, near)


def _from_integers(values: list[int], dtype: np.dtype[Any]) -> Array:
    """The nearest floats, ties to even, by exact integer arithmetic."""
    digits = {"float16": 11, "bfloat16": 8, "float32": 24}[dtype.name]
    return np.array([_nearest(v, digits) for v in values]).astype(dtype)


def _nearest(value: int, digits: int) -> float:
    shift = max(0, abs(value).bit_length() - digits)
    kept, rest = abs(value) >> shift, abs(value) & ((1 << shift) - 1)
    half = 1 << shift >> 1
    up = shift and (rest > half or (rest == half and kept & 1))
    return float(((kept + bool(up)) << shift) * (1 if value >= 0 else -1))


def _convert(a: Arrays) -> Mapping[str, Array]:
    names = [name for name in vars(a) if name.startswith("to_")]
    return {name: _converted(a.x, name.removeprefix("to_")) for name in names}


_CONVERT = {
    "convert": Entry(_convert),
    "bits": Entry(lambda a: {"there": a.x.view(a.there.dtype), "back": a.y.view(a.back.dtype)}),
    "truths": Entry(
        lambda a: {
            "counted": a.x.astype(np.int32),
            "real": a.x.astype(np.float16),
            "truth": a.y != 0,
        }
    ),
}

# ---- reductions ----------------------------------------------------------------------------------


def _first_extreme(x: Array, axis: int | None, *, largest: bool) -> Array:
    """The first place of the largest or smallest, NaN being the largest."""
    find = np.argmax if largest else np.argmin
    if not _is_float(x.dtype):
        return np.asarray(find(x, axis=axis), np.int32)
    numbers = x.astype(np.float64)
    nan = np.isnan(numbers)
    if largest:
        return np.asarray(np.argmax(numbers, axis=axis), np.int32)  # NumPy: the first NaN, if any
    # The first of the least numbers; the first of all where there is no number.
    least = np.where(nan, np.inf, numbers).min(axis=axis, keepdims=True)
    return np.asarray(np.argmax((numbers == least) & ~nan, axis=axis), np.int32)


def _number_extreme(x: Array, axis: int | None, *, largest: bool) -> Array:
    """Of the numbers; NaN where there is none. -0.0 is below 0.0."""
    keep = axis is not None
    wide = x.astype(np.float64)
    worst = -np.inf if largest else np.inf
    keyed = np.where(np.isnan(wide), worst, wide)
    best = (keyed.max if largest else keyed.min)(axis=axis, keepdims=keep)
    # Among zeros the positive one is the largest, the negative one the smallest.
    better_zero = ((keyed == 0) & (np.signbit(keyed) != largest)).any(axis=axis, keepdims=keep)
    zero = np.where(better_zero == largest, 0.0, -0.0)
    best = np.where(best == 0, zero, best)
    none = np.isnan(wide).all(axis=axis, keepdims=keep)
    return np.where(none, np.nan, best).astype(x.dtype)


def _nan_extreme(x: Array, axis: int | None, *, largest: bool) -> Array:
    """NaN where one is NaN."""
    nan = np.isnan(x.astype(np.float64)).any(axis=axis, keepdims=axis is not None)
    found = _number_extreme(x, axis, largest=largest)
    return np.where(nan, np.full(found.shape, np.nan).astype(x.dtype), found)


def _total(x: Array, axis: int | None) -> Array:
    """Exact data only: the sum in float64, rounded once; of integers, wrapping."""
    if _is_float(x.dtype):
        return np.asarray(x.astype(np.float64).sum(axis, keepdims=axis is not None)).astype(x.dtype)
    return np.asarray(x.sum(axis, dtype=x.dtype, keepdims=axis is not None))


def _all_floats(a: Arrays) -> Mapping[str, Array]:
    """Of sum and product only what is exact in any order, by the data."""
    x = a.x
    product = np.asarray(x.astype(np.float64).prod()).astype(x.dtype)
    found = [
        _total(x, None), product,
        _number_extreme(x, None, largest=False), _number_extreme(x, None, largest=True),
        _nan_extreme(x, None, largest=False), _nan_extreme(x, None, largest=True),
        _total(x, None), _number_extreme(x, None, largest=True),
    ]  # fmt: skip
    places = [_first_extreme(x, None, largest=True), _first_extreme(x, None, largest=False)]
    return {"y": np.array(found).astype(x.dtype), "at": np.array(places, np.int32)}


def _kept(values: Array, axis: int) -> Array:
    return np.expand_dims(values, axis)


def _integer_rows_and_columns(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    return {
        "row_sum": _total(x, 1),
        "row_max": x.max(1, keepdims=True),
        "row_argmin": _kept(np.argmin(x, 1).astype(np.int32), 1),
        "column_prod": x.prod(0, dtype=x.dtype, keepdims=True),
        "column_min": x.min(0, keepdims=True),
        "column_argmax": _kept(np.argmax(x, 0).astype(np.int32), 0),
    }


def _rows_and_columns(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    return {
        "row_min": _number_extreme(x, 1, largest=False),
        "row_maximum": _nan_extreme(x, 1, largest=True),
        "row_argmax": _kept(_first_extreme(x, 1, largest=True), 1),
        "row_sum": _total(a.z, 1),
        "column_max": _number_extreme(x, 0, largest=True),
        "column_minimum": _nan_extreme(x, 0, largest=False),
        "column_argmin": _kept(_first_extreme(x, 0, largest=False), 0),
        "column_sum": _total(a.z, 0),
    }


def _reduced_truths(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    return {
        "some": x.any(1),
        "every": (~x).all(0),
        "whole": np.array([x.any(), x.all(), x.any(), (~x).all()]),
    }


def _rank_3(a: Arrays) -> Mapping[str, Array]:
    return {
        "first": _total(a.x, 0),
        "middle": _total(a.x, 1),
        "last": _total(a.x, 2),
        "place": _kept(_first_extreme(a.x, 1, largest=True), 1),
    }


def _rank_4(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    return {
        "y0": x.max(0, keepdims=True),
        "y1": _total(x, 1),
        "y2": x.min(2, keepdims=True),
        "y3": x.prod(3, dtype=x.dtype, keepdims=True),
        "y13": _total(_total(x, 1), 3),
    }


def _rank_5(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    return {
        "y0": _total(x, 0), "y2": _total(x, 2), "y3": x.max(3, keepdims=True),
        "y4": _total(x, 4), "whole": _total(x, None).reshape(1),
    }  # fmt: skip


def _combined(a: Arrays) -> Mapping[str, Array]:
    """a + b + a b is (1 + a)(1 + b) - 1, and wraps."""
    one = np.int32(1)
    return {
        "rows": (a.x + one).prod(1, dtype=np.int32, keepdims=True) - one,
        "columns": (a.x + one).prod(0, dtype=np.int32, keepdims=True) - one,
    }


def _norms(a: Arrays) -> Mapping[str, Array]:
    largest = a.x.max(1, initial=-np.inf) if a.x.shape[1] else np.full(len(a.x), -np.inf)
    return {"largest": largest.astype(np.float32), "total": _total(a.x, 1)[:, 0]}


def _together(a: Arrays) -> Mapping[str, Array]:
    x, columns = a.x, a.x.shape[1]
    place = np.argmax(x, 1, keepdims=True).astype(np.int32)
    return {
        "largest": x.max(1, keepdims=True),
        "place": place,
        "column": _total(x, 0),
        "count": (x > 0).sum(0, dtype=np.int32, keepdims=True),
        "above": place * np.int32(2) + np.int32(columns * (columns - 1) // 2),
    }


_REDUCE = {
    "all_floats": Entry(_all_floats, dims=({},), data={"x": "factors"}),
    "rows_and_columns_of_integers": Entry(_integer_rows_and_columns, dims=({},)),
    "rows_and_columns": Entry(_rows_and_columns, dims=({},), data={"z": "tame"}),
    "truths": Entry(_reduced_truths, dims=({},), data={"x": "rarely"}),
    "rank_3": Entry(_rank_3, dims=({},), data={"x": "tame"}),
    "rank_4": Entry(_rank_4, dims=({},)),
    "rank_5": Entry(_rank_5, dims=({},), data={"x": "tame"}),
    "combined": Entry(_combined, dims=({},)),
    "together": Entry(_together, dims=({},), data={"x": "tame"}),
    "norms": Entry(
        _norms,
        dims=({"M": 5, "N": 300}, {"M": 33, "N": 63}, {"M": 2, "N": 0}, {"M": 1, "N": 1}),
        data={"x": "tame"},
    ),
}


# ---- scans ---------------------------------------------------------------------------------------


def _running(x: Array, axis: int, step: Callable[[Array, Array], Array], *, rev: bool) -> Array:
    """By the definition: one element after the other."""
    moved = np.moveaxis(x, axis, 0)
    found = list(moved[-1:] if rev else moved[:1])
    for item in moved[-2::-1] if rev else moved[1:]:
        found.append(step(found[-1], item))
    return np.moveaxis(np.stack(found[::-1] if rev else found), 0, axis)


def _running_total(x: Array, axis: int, *, rev: bool = False) -> Array:
    """Exact data only."""
    wide = x.astype(np.float64) if _is_float(x.dtype) else x
    return _running(wide, axis, np.add, rev=rev).astype(x.dtype)


def _running_extreme(x: Array, axis: int, *, largest: bool, rev: bool) -> Array:
    def step(sofar: Array, item: Array) -> Array:
        both = np.stack([sofar, item])
        return _number_extreme(both, 0, largest=largest)[0]

    return _running(x, axis, step, rev=rev)


def _running_integers(a: Arrays) -> Mapping[str, Array]:
    x = a.x
    return {
        "row_sum": x.cumsum(1, dtype=x.dtype),
        "row_max": _running(x, 1, np.maximum, rev=True),
        "column_prod": _running(x, 0, np.multiply, rev=True),
        "column_min": np.minimum.accumulate(x, 0),
    }


def _running_floats(a: Arrays) -> Mapping[str, Array]:
    return {
        "row_sum": _running_total(a.z, 1, rev=True),
        "row_prod": a.f.astype(np.float64).cumprod(1).astype(a.f.dtype),
        "row_max": _running_extreme(a.x, 1, largest=True, rev=False),
        "column_sum": _running_total(a.z, 0),
        "column_min": _running_extreme(a.x, 0, largest=False, rev=True),
    }


def _running_maps(a: Arrays) -> Mapping[str, Array]:
    def after(first: Array, second: Array) -> Array:
        (p, q), (c, d) = first, second
        return np.stack([p * c, q * c + d])

    rows = len(a.factor)
    pairs = np.stack([a.factor, a.term])
    starts = np.stack([a.start, np.ones(rows, np.int32)])[..., None]
    both = np.moveaxis(np.concatenate([starts, pairs], 2), 2, 0)
    row = np.moveaxis(_running(both, 0, after, rev=False), 0, 2)[..., 1:]
    column = np.moveaxis(_running(np.moveaxis(pairs, 1, 0), 0, after, rev=True), 0, 1)
    return {
        "row_factor": row[0], "row_term": row[1],
        "column_factor": column[0], "column_term": column[1],
    }  # fmt: skip


def _running_mixture(a: Arrays) -> Mapping[str, Array]:
    largest = np.maximum.accumulate(a.x)
    rises = np.concatenate([a.x[:1] > -np.inf, a.x[1:] > largest[:-1]])
    places = np.where(rises, np.arange(len(a.x)), -1)
    return {
        "largest": largest,
        "place": np.maximum.accumulate(places).astype(np.int64),
        "any": np.logical_or.accumulate(a.m),
        "count": a.m.cumsum(dtype=np.uint8),
        "wide": np.maximum(np.maximum.accumulate(a.y[::-1])[::-1], 0.0),
        "every": np.logical_and.accumulate(~a.m),
    }


def _running_rank_3(a: Arrays) -> Mapping[str, Array]:
    return {
        "first": _running_total(a.x, 0, rev=True),
        "middle": _running_total(a.x, 1),
        "last": _running_total(a.x, 2),
    }


def _running_turned(a: Arrays) -> Mapping[str, Array]:
    x, one = a.x, np.int32(1)
    u = x.reshape(4, 4, 8, 8).transpose(3, 0, 2, 1).ravel()
    b = (np.int32(8) * (u + one).cumprod(dtype=np.int32)) - one
    return {
        "a": x.T.cumsum(0, dtype=np.int32) + x.T[:, ::-1].cumsum(1, dtype=np.int32)[:, ::-1],
        "b": b,
        "c": (u + b)[::-1].cumsum(dtype=np.int32)[::-1],
    }


def _running_rows(a: Arrays) -> Mapping[str, Array]:
    y = a.x.cumsum(1, dtype=np.int32)
    z = np.zeros_like(a.x)
    step = a.x.shape[1] if a.R == 1 else a.B
    for start in range(0, a.x.shape[1], max(1, step)):
        tile = a.x[:, start : start + step]
        z[:, start : start + step] = np.bitwise_xor.accumulate(tile[:, ::-1], 1)[:, ::-1]
    return {"y": y, "z": z}


_SCAN = {
    "integers": Entry(_running_integers, dims=({},)),
    "floats": Entry(_running_floats, dims=({},), data={"z": "tame", "f": "factors"}),
    "maps": Entry(_running_maps, dims=({},)),
    "mixed": Entry(_running_mixture, dims=({},), data={"x": "tame", "m": "rarely", "y": "numbers"}),
    "rank_3": Entry(_running_rank_3, dims=({},), data={"x": "tame"}),
    "turned": Entry(_running_turned, dims=({},)),
    "rows": Entry(
        _running_rows,
        dims=({"M": 5, "N": 700}, {"M": 9, "N": 130}, {"M": 17, "N": 64}, {"M": 2, "N": 0}),
    ),
}


# ---- shapes --------------------------------------------------------------------------------------


def _outer(a: Arrays) -> Mapping[str, Array]:
    """Two roundings, the first in the type itself."""
    product = a.column[:, None] * a.row
    return {"y": product + np.broadcast_to(a.column[:, None], product.shape)}


def _from_scalars(a: Arrays) -> Mapping[str, Array]:
    k = np.arange(len(a.y)) % 64
    return {"y": (np.float32(a.a) + np.float32(a.b)) + k.astype(np.float32)}


def _reshaped(a: Arrays) -> Mapping[str, Array]:
    return {
        "a": a.small.reshape(2, 48), "b": a.rows.ravel(), "c": a.flat.reshape(48, 64),
        "d": a.rows.reshape(16, 4, 1, 48), "e": a.rows.reshape(64, 48),
    }  # fmt: skip


def _reshaped_in_powers_of_two(a: Arrays) -> Mapping[str, Array]:
    return {name: a.x.reshape(getattr(a, name).shape) for name in "abcd"}


def _permuted_3(a: Arrays) -> Mapping[str, Array]:
    orders = {"a": (1, 0, 2), "b": (2, 1, 0), "c": (1, 2, 0), "d": (0, 2, 1)}
    return {name: a.x.transpose(order) for name, order in orders.items()}


def _viewed(a: Arrays) -> Mapping[str, Array]:
    """Past the end of x.t() there is nothing to load, and nothing to store either."""
    w = a.w.transpose(2, 0, 1)
    return {"y": a.x.T, "z": w[:, :, 0] - w[:, :, -1]}


def _chained(a: Arrays) -> Mapping[str, Array]:
    found = []
    for start in range(0, len(a.x), 16):
        t = np.zeros((16, 48), np.float32)
        rows = a.x[start : start + 16]
        t[: len(rows)] = rows
        turned = (t - t.max(1, keepdims=True)).T.reshape(2, 8, 48)
        back = (turned + turned.sum(0)).reshape(48, 16).T
        found.append((back * np.float32(0.5) + t.T.reshape(16, 48))[: len(rows)])
    return {"y": np.concatenate(found)}


_SHAPES = {
    "outer": Entry(_outer, dims=({"M": 50, "N": 70}, {"M": 1, "N": 1}), data={"column": "tame"}),
    "broadcast_middle": Entry(
        lambda a: {"y": a.x[:, None, :] + a.z[None, :, None]}, dims=({},), data={"x": "tame"}
    ),
    "from_scalars": Entry(_from_scalars, dims=({"N": 200},), scalars={"a": 1.5, "b": -0.25}),
    "reshaped": Entry(_reshaped, dims=({},)),
    "reshaped_in_powers_of_two": Entry(_reshaped_in_powers_of_two, dims=({},)),
    "squeezed": Entry(lambda a: {"y": a.x}, dims=({"N": 77},)),
    "turned": Entry(
        lambda a: {"y": a.x.T},
        dims=({"M": 96, "N": 128}, {"M": 33, "N": 150}, {"M": 1, "N": 3}, {"M": 3, "N": 0}),
    ),
    "permuted_3": Entry(_permuted_3, dims=({},)),
    "permuted_4": Entry(
        lambda a: {"a": a.x.transpose(2, 0, 3, 1), "b": a.x.transpose(1, 2, 3, 0)}, dims=({},)
    ),
    "permuted_5": Entry(
        lambda a: {"a": a.x.transpose(4, 0, 3, 1, 2), "b": a.x.transpose(2, 4, 1, 0, 3)},
        dims=({},),
    ),
    "viewed": Entry(
        _viewed, dims=({"M": 48, "N": 64, "K": 3}, {"M": 21, "N": 35, "K": 1}), data={"w": "tame"}
    ),
    "chained": Entry(_chained, dims=({"M": 40},), data={"x": "tame"}),
}


# ---- loops, branches, helpers --------------------------------------------------------------------


def _loops(a: Arrays) -> Mapping[str, Array]:
    block = len(a.up)
    count = -(-len(a.x) // block)
    tiles = np.zeros(count * block, np.int32)
    tiles[: len(a.x)] = a.x
    tiles = tiles.reshape(count, block)
    k = np.arange(block, dtype=np.int32)
    rounds: dict[str, tuple[Array, int, list[Array]]] = {
        "up": (k * 0, 3, list(tiles)),
        "down": (k, 3, list(tiles[::-1])),
        "steps": (k, 5, [np.int32(i) for i in range(getattr(a, "from"), a.to, 3)]),
        "inclusive": (k, 5, [np.int32(-i) for i in range(getattr(a, "from"), a.to + 1)]),
        "backwards": (k, 5, [np.int32(i) for i in reversed(range(7))][::2]),
    }
    found = {}
    for name, (value, factor, added) in rounds.items():
        for tile in added:
            value = value * np.int32(factor) + tile
        found[name] = value
    return found


def _nested(a: Arrays) -> Mapping[str, Array]:
    total, count = np.zeros(len(a.x), np.float32), 0
    scale, tile = np.float32(1), a.x
    for i in range(a.n):
        for j in range(i):
            total = total + tile * scale
            count += j
        scale, tile = scale * np.float32(0.5), tile + np.float32(1)
    return {"y": total + np.float32(count)}


def _halved(a: Arrays) -> Mapping[str, Array]:
    y, rounds = np.abs(a.x), np.zeros(len(a.x), np.int32)
    for start in range(0, len(y), 64):
        tile = slice(start, start + 64)
        # Past the end there are zeros, so that all-NaN tiles still have a largest number.
        padded = np.zeros(64, np.float32)
        padded[: len(y[tile])] = y[tile]
        n = 0
        while np.fmax.reduce(padded) > 1 and n < 100:
            padded, n = padded * np.float32(0.5), n + 1
        y[tile], rounds[tile] = padded[: len(y[tile])], n
    return {"y": y, "rounds": rounds}


def _branches(a: Arrays) -> Mapping[str, Array]:
    y = a.x.copy()
    for number, start in enumerate(range(0, len(y), a.B)):
        tile = slice(start, start + a.B)
        t = _window(a.x, start, a.B)
        r = t + np.int32(1) if number % 2 == 0 else t * np.int32(2)
        total = t.sum(dtype=np.int32)
        if total > a.limit:
            r = r - total
        elif total < -a.limit:
            r = r + np.arange(len(t), dtype=np.int32)
        r = r ^ np.int32(1)  # always, since 7 / 0 is 0
        y[tile] = r[: len(y[tile])]
    return {"y": y}


def _guarded(a: Arrays) -> Mapping[str, Array]:
    y = a.y.copy()
    for number, start in enumerate(range(0, len(y), 32)):
        tile = slice(start, start + 32)
        if number <= a.last and not (a.x[tile] < 0).any():
            y[tile] = a.x[tile] + np.int32(1)
    return {"y": y}


def _helped(a: Arrays) -> Mapping[str, Array]:
    y = a.x * np.int32(3)
    for i in range(0, y.shape[0], a.B):
        for j in range(0, y.shape[1], a.B):
            tile = y[i : i + a.B, j : j + a.B]
            tile -= tile.sum(dtype=np.int32)
    return {"y": y}


def _bound(a: Arrays) -> Mapping[str, Array]:
    one = np.int32(1)
    return {"y": a.x * (a.x + one) + np.int32((0 + 1 + 2) * 7 + 3 - 2)}


_CONTROL = {
    "loops": Entry(
        _loops,
        dims=({"N": 300}, {"N": 0}),
        scalars={"from": 3, "to": 20},
    ),
    "nested": Entry(_nested, dims=({"N": 200},), data={"x": "normal"}, scalars={"n": 5}),
    "halved": Entry(_halved, dims=({"N": 200},), data={"x": "numbers"}),
    "branches": Entry(_branches, dims=({"N": 1000},), data={"x": "tame"}, scalars={"limit": 5}),
    "guarded": Entry(
        _guarded, dims=({"N": 500},), data={"x": "mostly_positive"}, scalars={"last": 9}
    ),
    "helped": Entry(_helped, dims=({"M": 70, "N": 50},)),
    "bound": Entry(_bound, dims=({"N": 100},)),
}


# ---- loads and stores ----------------------------------------------------------------------------


def _window(x: Array, start: int, count: int) -> Array:
    """Elements from `start` on, zero where there are none."""
    found = np.zeros(count, x.dtype)
    for i in range(count):
        if 0 <= start + i < len(x):
            found[i] = x[start + i]
    return found


def _shifted(a: Arrays) -> Mapping[str, Array]:
    return {"y": _window(a.x, a.by, len(a.x)), "z": _window(a.x, -a.back, len(a.x))}


def _filled(a: Arrays) -> Mapping[str, Array]:
    """What is asked of tiles past the end, or before the start, is the fill."""
    rows, columns = a.x.shape
    below = np.full((rows, columns), np.float32(a.fill))
    below[: max(rows - 16, 0)] = a.x[16:]
    right = np.full((rows, columns), np.float32(-np.inf))
    right[:, : max(columns - 32, 0)] = a.x[:, 32:]
    above = np.full((rows, columns), np.int8(-128))
    above[16:] = a.u[: max(rows - 16, 0)]
    beside = np.full(columns, np.uint16(65535))
    beside[: max(columns - 32, 0)] = a.v[32:]
    return {"y": below + right, "z": above, "w": np.broadcast_to(beside, above.shape)}


def _quarters(a: Arrays) -> Mapping[str, Array]:
    i, j = np.indices(a.x.shape)
    return {"y": a.x * np.int32(10) + (i // 16 % 2 * 4 + j // 16 % 4).astype(np.int32) + a.y}


def _interleaved(a: Arrays) -> Mapping[str, Array]:
    y, n = a.y.copy(), -(-len(a.x) // 64)
    for p in range(n):
        for q in range(2):
            t = _window(a.x, 64 * p, 64) + np.int32(p + n * q + 200)
            start = 64 * (2 * p + q)
            y[start : start + 64] = t[: max(0, len(y) - start)]
    return {"y": y}


def _clipped(a: Arrays) -> Mapping[str, Array]:
    y = a.y.copy()
    for i in range(4):
        for j in range(4):
            r, c = i * 20 - 7, j * 40 - 11
            box = (slice(max(r, 0), max(r + 16, 0)), slice(max(c, 0), max(c + 32, 0)))
            y[box] = a.x[box] + np.int16(1)
    return {"y": y}


def _many_parts(a: Arrays) -> Mapping[str, Array]:
    b, m, n = np.indices(a.x.shape)
    number = (b + 10 * (m // 4) + 100 * (n // 32)).astype(np.float32)
    return {"y": a.x * np.float32(2), "rows": a.x + number}


def _twice(a: Arrays) -> Mapping[str, Array]:
    """Data whose sums are exact; the largest of each tile of 64 columns, zeros past the end."""
    sums = (a.x * a.w).sum(1)
    for start in range(0, a.x.shape[1], 64):
        tile = a.x[:, start : start + 64]
        top = tile.max(1)
        sums = sums + (top if tile.shape[1] == 64 else np.maximum(top, 0))
    return {"y": sums.astype(np.float32)}


_MEMORY = {
    "shifted": Entry(
        _shifted, dims=({"N": 300}, {"N": 1}, {"N": 5}), scalars={"by": 37, "back": 45}
    ),
    "filled": Entry(_filled, dims=({"M": 40, "N": 100}, {"M": 3, "N": 5}), scalars={"fill": -7.5}),
    "in_place": Entry(
        lambda a: {"y": a.y + a.x + a.y},
        dims=({"M": 20, "N": 150},),
        data={"x": "tame", "y": "tame"},
    ),
    "quarters": Entry(_quarters, dims=({"M": 64, "N": 128}, {"M": 45, "N": 71})),
    "interleaved": Entry(_interleaved, dims=({"N": 300, "N2": 600}, {"N": 64, "N2": 100})),
    "clipped": Entry(_clipped, dims=({"M": 60, "N": 100}, {"M": 5, "N": 5})),
    "many_parts": Entry(_many_parts, dims=({"B": 3, "M": 9, "N": 70},)),
    "part_rank_4": Entry(
        lambda a: {"y": a.x + np.uint8(1)}, dims=({"A": 3, "B": 2, "M": 9, "N": 21},)
    ),
    "part_rank_5": Entry(
        lambda a: {"y": a.x - 1}, dims=({"A": 2, "B": 3, "C": 2, "M": 5, "N": 11},)
    ),
    "known": Entry(lambda a: {"y": a.x * np.float32(2)}, dims=({},)),
    "multiples": Entry(
        lambda a: {"y": a.x * np.float16(2)}, dims=({"M": 12, "N": 192}, {"M": 0, "N": 64})
    ),
    "twice": Entry(
        _twice, dims=({"M": 13, "N": 300}, {"M": 8, "N": 128}), data={"x": "tame", "w": "tame"}
    ),
}


# ---- no axes -------------------------------------------------------------------------------------


def _copied(a: Arrays) -> Mapping[str, Array]:
    return dict.fromkeys("yzuv", a.x)


def _scaled(a: Arrays) -> Mapping[str, Array]:
    first = int(a.first)
    places = np.arange(len(a.x)) + first
    inside = (places >= 0) & (places < len(a.x))
    shifted = np.where(inside, a.x[np.clip(places, 0, len(a.x) - 1)], a.x.dtype.type(0))
    return {"y": shifted * a.by}


def _handed_on(a: Arrays) -> Mapping[str, Array]:
    value = 1
    for _ in range(a.turns):
        value = value * 3 + 1
    return {"z": _wrapped([value], np.dtype(np.uint32)).reshape(())}


_NO_AXES = {
    "copied": Entry(_copied, dims=({},)),
    "scaled": Entry(
        _scaled,
        dims=({"N": 700}, {"N": 1}),
        data={"x": "tame", "by": "tame", "first": "tame"},
    ),
    "added": Entry(
        lambda a: {"z": a.z + a.w + a.x.sum()}, dims=({"N": 300}, {"N": 1}), data={"x": "tame"}
    ),
    "by_last": Entry(
        lambda a: {"z": a.x[(len(a.x) - 1) // 64 * 64 :].sum(dtype=np.int32) * np.int32(2)},
        dims=({"N": 300}, {"N": 64}),
        data={"x": "tame"},
    ),
    "handed_on": Entry(_handed_on, dims=({},), scalars={"turns": 21}),
}


# ---- scalars -------------------------------------------------------------------------------------

_PARAMETERS = {
    "a": -100, "b": 200, "c": -30000, "d": 60000, "e": -(2**31), "f": 2**32 - 1, "g": -(2**63),
    "h": 2**64 - 1, "i": 2**40, "p": 0.1, "q": 3.1415, "r": 1e-40, "s": 1e300, "t": True,
}  # fmt: skip


def _parameters(a: Arrays) -> Mapping[str, Array]:
    whole = [a.a, a.b, a.c, a.d, a.e, a.f, a.g, -1, a.i, 1, *[0] * 6]
    real = [np.float16(a.p), NUMPY["bf16"](a.q), np.float32(a.r), a.s, *[0.0] * 12]
    return {"whole": np.array(whole, np.int64), "real": np.array([float(v) for v in real])}


def _scalar_arithmetic(a: Arrays) -> Mapping[str, Array]:
    x, n = a.x.tolist(), a.n
    first = [x[i] if i < len(x) else 0 for i in range(32)]
    p, q = int(a.a), int(a.b)
    shift = q % 32
    values = [
        _truncated(p, q), p - q * _truncated(p, q), p << shift, p >> shift, -(-n // 7),
        (n.bit_length() - 1) * 2, int(n & (n - 1) == 0), len(x), len(x) - 1 - n, min(p, q), abs(p),
        5 if (p < q and n > 3) or p == q else 6, ~p, (p * q) >> 32, p % 2**32 // 3,
        (p + 128) % 256 - 128, int(np.float32(p) / np.float32(q)), (n - 9) % 4,
        first[3], first[n] if n < 32 else 0, first[0] if n == 0 else 0, first[31], sum(first),
        *[0] * 9,
    ]  # fmt: skip
    values[2] = (values[2] + 2**31) % 2**32 - 2**31
    return {"y": _wrapped(values, np.dtype(np.int64))}


def _elements(a: Arrays) -> Mapping[str, Array]:
    y = np.zeros(a.y.shape, a.y.dtype)
    for i, j in np.ndindex(*y.shape):
        one = a.x[i, j] if i < 32 and j < 48 else 0
        inside = i // 2 < 4 and j < 48
        y[i, j] = one if j % 2 == 0 else (a.z[i % 2, i // 2, j] if inside else 0)
    return {"y": y}


def _decided(a: Arrays) -> Mapping[str, Array]:
    y = np.zeros_like(a.x)
    for start in range(0, len(y), 64):
        t = np.zeros(64, np.float32)
        rows = a.x[start : start + 64]
        t[: len(rows)] = rows
        scale = t[0] if t[0] > t[63] else t[63] * np.float32(2)
        added = np.float32(np.float64(max(t[0], t[63])) * 2 + 1)
        y[start : start + 64] = (t * scale + added)[: len(rows)]
    return {"y": y}


_SCALARS = {
    "parameters": Entry(_parameters, dims=({},), scalars=_PARAMETERS),
    "arithmetic": Entry(
        _scalar_arithmetic, dims=({"N": 100}, {"N": 5}), scalars={"a": -1000, "b": 37, "n": 21}
    ),
    "elements": Entry(_elements, dims=({"M": 7, "N": 60}, {"M": 40, "N": 3})),
    "decided": Entry(_decided, dims=({"N": 200},), data={"x": "normal"}),
    "single": Entry(
        lambda a: {"y": a.x * a.x + a.x + a.x - a.x}, dims=({"M": 3, "N": 5},), data={"x": "normal"}
    ),
}


# ---- sizes ---------------------------------------------------------------------------------------


def _padded_tiles(x: Array, rows: int, columns: int) -> Iterator[tuple[int, int, Array]]:
    for i in range(0, x.shape[0], rows):
        for j in range(0, x.shape[1], columns):
            tile = np.zeros((rows, columns), x.dtype)
            inside = x[i : i + rows, j : j + columns]
            tile[: inside.shape[0], : inside.shape[1]] = inside
            yield i, j, tile


def _by_tiles(x: Array, rows: int, columns: int, compute: Callable[[Array], Array]) -> Array:
    """What `compute` makes of each tile, transposed, put together."""
    y = np.zeros((x.shape[1] + columns, x.shape[0] + rows), x.dtype)
    for i, j, tile in _padded_tiles(x, rows, columns):
        y[j : j + columns, i : i + rows] = compute(tile).T
    return y[: x.shape[1], : x.shape[0]]


def _turned_sums(a: Arrays) -> Mapping[str, Array]:
    def compute(t: Array) -> Array:
        total = t.sum(1, dtype=np.int32, keepdims=True)
        return t * np.int32(2) + total - t.min(0, keepdims=True)

    return {"y": _by_tiles(a.x, a.B0, a.B1, compute)}


def _few_elements(a: Arrays) -> Mapping[str, Array]:
    tiles = [_window(a.x, start, a.B) for start in range(0, len(a.x), a.B)]
    found = np.concatenate([t * np.float32(2) + t.sum() - t.max() for t in tiles])
    return {"y": found[: len(a.x)]}


def _with_warps(a: Arrays) -> Mapping[str, Array]:
    def compute(t: Array) -> Array:
        return (t - t.max(1, keepdims=True)) + t.sum(0, keepdims=True)

    return {"y": _by_tiles(a.x, 32, 64, compute)}


_WARPS = Entry(_with_warps, dims=({"M": 70, "N": 130}, {"M": 32, "N": 64}), data={"x": "tame"})

_SIZES = {
    "doubled": Entry(lambda a: {"y": a.x + a.x}, dims=({"N": 200}, {"N": 7}, {"N": 384})),
    "doubled_wide": Entry(
        lambda a: {"y": a.x + a.x}, dims=({"N": 1000}, {"N": 16384}, {"N": 33333})
    ),
    "turned_sums": Entry(_turned_sums, dims=({"M": 40, "N": 30}, {"M": 3, "N": 2})),
    "one_warp": _WARPS,
    "two_warps": _WARPS,
    "eight_warps": _WARPS,
    "sixteen_warps": _WARPS,
    "few_elements": Entry(_few_elements, dims=({"N": 100},), data={"x": "tame"}),
}


# ---- elements that indices choose ----------------------------------------------------------------


def _picked(x: Array, *indices: Array) -> Array:
    """x at an index along each axis, which broadcast; zero outside."""
    inside, places = _inside(x, *indices)
    found = np.zeros(inside.shape, x.dtype)
    found[inside] = x[places]
    return found


def _inside(x: Array, *indices: Array) -> tuple[Array, tuple[Array, ...]]:
    """Where indices are inside, and those that are."""
    numbers = np.broadcast_arrays(*(np.asarray(i).astype(np.int64) for i in indices))
    inside = np.ones(numbers[0].shape, bool)
    for number, extent in zip(numbers, x.shape, strict=True):
        inside &= (number >= 0) & (number < extent)
    return inside, tuple(number[inside] for number in numbers)


def _rows(a: Arrays) -> Mapping[str, Array]:
    return {"y": _picked(a.x, a.ids[:, None], np.arange(a.y.shape[1]))}


def _shifted_rows(a: Arrays) -> Mapping[str, Array]:
    columns = np.arange(a.y.shape[1])
    return {
        "y": _picked(a.x, a.ids[:, None], columns + a.by),
        "z": _picked(a.x, a.ids[:, None], columns - 4),
    }


def _cells(a: Arrays) -> Mapping[str, Array]:
    columns = np.arange(a.y.shape[1])
    return {"y": _picked(a.x, a.r, a.c), "z": _picked(a.x, a.r, columns)}


def _crossed(a: Arrays) -> Mapping[str, Array]:
    columns = np.arange(a.y.shape[1])
    return {
        "y": _picked(a.x, a.r[:, None], a.c),
        "z": _picked(a.x.T, a.r[:, None], columns),
    }


def _reordered(a: Arrays) -> Mapping[str, Array]:
    found = []
    for start in range(0, len(a.ids), 256):
        ids = _window(a.ids, start, 256)
        row = _picked(a.x, ids[0], 255 - np.arange(256))
        found.append(row + _picked(a.w, ids).reshape(16, 16).T.reshape(256))
    return {"y": np.concatenate(found)[: len(a.ids)]}


def _marked(a: Arrays) -> Mapping[str, Array]:
    y = a.y.copy()
    padding = np.zeros(-len(a.ids) % 128, a.ids.dtype)
    _, (places,) = _inside(y, np.concatenate([a.ids, padding]))
    y[places] = places.astype(y.dtype)
    return {"y": y}


def _scattered_rows(a: Arrays) -> Mapping[str, Array]:
    y = a.y.copy()
    inside, (places,) = _inside(a.y[:, 0], a.to)
    y[places] = a.x[inside]
    return {"y": y}


def _vouched(a: Arrays) -> Mapping[str, Array]:
    y = np.empty_like(a.y)
    y[a.to] = a.x[a.to] + a.x[a.to]
    return {"y": y}


_LONG_ROWS = {"M": 37, "N": 200, "V": 24}
_ROWS = (
    {"M": 11, "N": 75, "V": 24},
    _LONG_ROWS,
    {"M": 5, "N": 16, "V": 0},
    {"M": 0, "N": 8, "V": 3},
)

_INDEXED = {
    "rows": Entry(_rows, dims=_ROWS, data={"ids": "indices"}),
    "shifted_rows": Entry(
        _shifted_rows, dims=_ROWS[:2], data={"ids": "indices"}, scalars={"by": 3}
    ),
    "cells": Entry(
        _cells,
        dims=({"M": 9, "N": 70, "V": 24}, {"M": 20, "N": 150, "V": 90}),
        data={"r": "indices", "c": "indices"},
    ),
    "crossed": Entry(
        _crossed,
        dims=({"M": 20, "N": 40, "V": 24}, {"M": 40, "N": 100, "V": 77}),
        data={"r": "indices", "c": "indices"},
    ),
    "reordered": Entry(
        _reordered,
        dims=({"M": 300, "V": 10}, {"M": 1000, "V": 24}),
        data={"ids": "indices", "x": "normal", "w": "normal"},
    ),
    "marked": Entry(
        _marked, dims=({"N": 200, "V": 24}, {"N": 1024, "V": 30}), data={"ids": "indices"}
    ),
    "scattered_rows": Entry(
        _scattered_rows,
        dims=({"M": 21, "N": 75}, {"M": 200, "N": 128}),
        data={"to": "distinct"},
    ),
    "vouched": Entry(
        _vouched,
        dims=({"M": 16, "N": 128}, {"M": 240, "N": 64}),
        data={"to": "permutation", "x": "tame"},
    ),
    "turned": Entry(lambda a: {"y": a.x + a.x[:, ::-1]}, dims=({"M": 3}, {"M": 0})),
}


# ---- atomic updates ------------------------------------------------------------------------------


def _counts(a: Arrays) -> Mapping[str, Array]:
    _, (places,) = _inside(a.count, a.x)
    count, weighted = a.count.copy(), a.weighted.copy()
    for place in places:
        count[place] += count.dtype.type(1)
        weighted[place] += weighted.dtype.type(3 if place == 3 else 2)
    return {"count": count, "weighted": weighted}


def _extremes(a: Arrays) -> Mapping[str, Array]:
    low, high = a.low.copy(), a.high.copy()
    for place in range(len(low)):
        named = a.x[a.ids == place]
        low[place] = _end_of_order(np.append(named, a.low[place]), 0)
        high[place] = _end_of_order(np.append(named, a.high[place]), -1)
    return {"low": low, "high": high}


def _end_of_order(values: Array, number: int) -> Array:
    """The least (0) or largest (-1) that is no NaN; -0.0 is below 0.0."""
    values = values[~np.isnan(values)] if not np.isnan(values).all() else values
    return values[np.lexsort((~np.signbit(values), values))[number]]


def _bits_together(a: Arrays) -> Mapping[str, Array]:
    found = {"all": a.all.copy(), "any": a.any.copy(), "odd": a.odd.copy()}
    inside, (places,) = _inside(a.all, a.ids)
    for place, value in zip(places, a.x[inside], strict=True):
        found["all"][place] &= value
        found["any"][place] |= value
        found["odd"][place] ^= value
    return found


def _before(a: Arrays) -> Mapping[str, Array]:
    inside, (places,) = _inside(a.a, a.ids)
    after, swapped = a.a.copy(), a.b.copy()
    after[places] += a.x[inside]
    swapped[places] = a.x[inside]
    z = _picked(a.b, a.ids) + _picked(after, a.ids)
    return {"y": _picked(a.a, a.ids), "z": z, "a": after, "b": swapped}


def _exchanged(a: Arrays) -> Mapping[str, Array]:
    inside, (places,) = _inside(a.a, a.ids)
    after = a.a.copy()
    after[places] = np.where(a.a[places] == a.expected[inside], a.new[inside], a.a[places])
    return {"y": _picked(a.a, a.ids), "a": after}


def _scalar(a: Arrays) -> Mapping[str, Array]:
    y, after = a.x.copy(), a.a.copy()
    for number, start in enumerate(range(0, len(y), 32)):
        part = slice(start, start + 32)
        if number < len(after):
            old = after[number]
            after[number] += a.x[part].sum(dtype=y.dtype)
            y[part] += old + after[number]
    return {"y": y, "a": after}


def _added_rows(a: Arrays) -> Mapping[str, Array]:
    found = a.a.copy()
    inside, (places,) = _inside(a.a[:, 0], a.ids)
    np.add.at(found, places, a.x[inside])
    return {"a": found}


def _last_one(a: Arrays) -> Mapping[str, Array]:
    parts = [a.x[start : start + 64].sum(dtype=np.int32) for start in range(0, len(a.x), 64)]
    total = np.sum(parts, dtype=np.int32, keepdims=True)
    return {"partial": np.array(parts), "total": total, "came": a.came + np.uint32(len(parts))}


def _chain(a: Arrays) -> Mapping[str, Array]:
    total, after = np.zeros_like(a.a), a.a.copy()
    for turn in range(3):
        total += after
        after += np.int32(turn + 1)
        total, after = total + after, total
    return {"y": total, "a": after}


_SMALL, _LARGE = {"N": 200, "K": 24}, {"N": 700, "K": 24}

_ATOMICS = {
    "counts": Entry(
        _counts,
        dims=(_SMALL, _LARGE, {"N": 10, "K": 0}),
        data={"x": "indices", "count": "tame", "weighted": "tame"},
    ),
    "extremes": Entry(_extremes, dims=(_SMALL, _LARGE), data={"ids": "indices"}),
    "bits": Entry(_bits_together, dims=(_SMALL, _LARGE), data={"ids": "indices"}),
    "before": Entry(
        _before,
        dims=({"N": 70, "K": 60}, {"N": 1000, "K": 900}),
        data={"ids": "distinct", "a": "tame", "b": "tame", "x": "tame"},
    ),
    "exchanged": Entry(
        _exchanged,
        dims=({"N": 70, "K": 60}, {"N": 1000, "K": 900}),
        data={"ids": "distinct", "a": "tame", "expected": "tame"},
    ),
    "scalar": Entry(
        _scalar,
        dims=({"N": 100, "K": 10}, {"N": 1000, "K": 7}),
        data={"a": "tame", "x": "tame"},
    ),
    "added_rows": Entry(
        _added_rows,
        dims=({"M": 20, "N": 70, "K": 24}, {"M": 300, "N": 128, "K": 10}),
        data={"ids": "indices", "a": "tame", "x": "tame"},
    ),
    "last_one": Entry(
        _last_one,
        dims=({"N": 1000, "P": 16}, {"N": 64, "P": 1}),
        data={"came": "zeros"},
    ),
    "chained": Entry(_chain, dims=({"N": 128}, {"N": 1024})),
}

# ---- dot.tile ------------------------------------------------------------------------------------


def _wide_factors(*factors: Array) -> tuple[Array, ...]:
    kinds = [np.int64 if f.dtype.kind in "iu" else np.float64 for f in factors]
    return tuple(f.astype(kind) for f, kind in zip(factors, kinds, strict=True))


def _product_as(a: Arrays, left: Array, right: Array) -> Mapping[str, Array]:
    left, right = _wide_factors(left, right)
    return {"z": (left @ right).astype(a.z.dtype)}


def _swapped(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def _as_factor(x: Array, dtype: Any) -> Array:
    return x.astype(np.float32).astype(dtype).astype(np.float64)


def _computed(a: Arrays) -> Mapping[str, Array]:
    x, y, z = _wide_factors(a.x, a.y, a.z)
    return {"z": ((2 * x + 1) @ abs(y) + z).astype(a.z.dtype)}


def _product_chained(a: Arrays) -> Mapping[str, Array]:
    inner = np.matmul(*_wide_factors(a.w, a.x)).astype(np.float64)
    return _product_as(a, _as_factor(inner, a.y.dtype), a.y)


def _product_chained_right(a: Arrays) -> Mapping[str, Array]:
    inner = np.matmul(*_wide_factors(a.w, a.x)).astype(np.float64)
    return _product_as(a, a.y, _as_factor(inner, a.y.dtype))


# Whole numbers from -2 to 2: sums are exact in any order, in f16 too. Integers of all sizes.
_WHOLE = {"x": "whole", "y": "whole", "z": "tame", "w": "tame"}
_EDGES = ({"M": 50, "N": 37, "K": 53}, {"M": 1, "N": 1, "K": 1}, {"M": 5, "N": 40, "K": 0})
_ALIGNED = ({"M": 64, "N": 32, "K": 96},)
_SIZES_OF_PRODUCTS = (*_EDGES, *_ALIGNED)


def _product_entry(reference: Reference, dims: Any = _SIZES_OF_PRODUCTS, ulps: int = 0) -> Entry:
    return Entry(reference, dims=dims, data=_WHOLE if ulps == 0 else _POSITIVE, ulps=ulps)


_SMALL = ({"M": 9, "N": 5, "K": 3}, {"M": 1, "N": 1, "K": 1}, {"M": 8, "N": 8, "K": 64})
_POSITIVE = {"x": "positive", "y": "positive", "z": "tame"}
_PRODUCT = _product_entry(lambda a: _product_as(a, a.x, a.y))
_SMALL_PRODUCT = _product_entry(lambda a: _product_as(a, a.x, a.y), _SMALL)
# Of K positive terms each addition is off by a number of the result's type at most, which may have
# doubled since: tensor cores cut off rather than round. With 96 terms, 2 * 96.
_POSITIVE_PRODUCT = _product_entry(lambda a: _product_as(a, a.x, a.y), ulps=192)
_HEADS = ({"H": 5, "M": 17, "N": 33, "K": 21}, {"H": 1, "M": 1, "N": 1, "K": 1})
_INNER = ({"M": 40, "N": 70, "K": 21, "I": 37}, {"M": 1, "N": 1, "K": 1, "I": 1})

_DOT = {
    "product": _PRODUCT,
    "product_tf32": _PRODUCT,
    "small_product": _SMALL_PRODUCT,
    "small_product_tf32": _SMALL_PRODUCT,
    "product_f8": _PRODUCT,
    "positive": _POSITIVE_PRODUCT,
    "one_term": Entry(
        lambda a: _product_as(a, a.x, a.y),
        dims=({"M": 33, "N": 21}, {"M": 16, "N": 16}),
        data={"x": "special", "y": "special"},
    ),
    "transposed": _product_entry(lambda a: _product_as(a, _swapped(a.x), _swapped(a.y))),
    "batched": _product_entry(lambda a: _product_as(a, a.x, a.y), _HEADS),
    "computed": _product_entry(_computed),
    # The factor may be off by a unit where e^x rounds the other way: 2^-8 of each term, in f32.
    "exponentials": Entry(
        lambda a: _product_as(a, _as_factor(np.exp(a.x.astype(np.float64)), a.y.dtype), a.y),
        dims=({"M": 20, "N": 37, "K": 70}, {"M": 64, "N": 64, "K": 64}),
        data={"x": "normal", "y": "positive"},
        ulps=2**16,
    ),
    "chained": _product_entry(_product_chained, _INNER),
    "chained_right": _product_entry(_product_chained_right, ({"M": 40, "N": 70}, {"M": 1, "N": 1})),
    "one_warp": _PRODUCT,
    "eight_warps": _PRODUCT,
    "sixteen_warps": _PRODUCT,
}

TABLE: Mapping[str, Mapping[str, Entry]] = {
    "integers": _INTEGERS,
    "floats": _FLOATS,
    "convert": _CONVERT,
    "reduce": _REDUCE,
    "scan": _SCAN,
    "shapes": _SHAPES,
    "control": _CONTROL,
    "memory": _MEMORY,
    "no_axes": _NO_AXES,
    "scalars": _SCALARS,
    "sizes": _SIZES,
    "dot": _DOT,
    "dot_computed": DOT_COMPUTED,
    "dot_factors": DOT_FACTORS,
    "dot_loops": DOT_LOOPS,
    "dot_nests": DOT_NESTS,
    "dot_results": DOT_RESULTS,
    "dot_pipelined": DOT_PIPELINED,
    "indexed": _INDEXED,
    "atomics": _ATOMICS,
}
