"""The programs of this folder: at which extents and on what data each kernel runs, and what NumPy says
that it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

Array = Any
Arrays = SimpleNamespace  # the arguments of a kernel by name: arrays, and NumPy scalars
Reference = Callable[[Arrays], Mapping[str, Array]]

NUMPY: dict[str, Any] = {
    "bool": np.bool_, "usize": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64,
    **{f"{sign}{bits}": np.dtype(f"{kind}{bits}") for sign, kind in (("i", "int"), ("u", "uint"))
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """How one kernel, in each of its instances, is tried.

    `dims` are the sets of extents; `data` names the kind of data of an argument where it is not
    `wide`; `scalars` are the scalar arguments. `reference` gives what the kernel writes, and is
    None where the CPU execution alone says it. Units: `ulps` are numbers of the result's type by
    which results on the GPU may be off; integers are always exact
    """

    reference: Reference | None = None
    dims: tuple[Mapping[str, int], ...] = ({"N": 1000},)
    data: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    ulps: int = 0


# ---- data ----------------------------------------------------------------------------------------


def data(kind: str, element: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """An array of an element type; its kind is the name of one of the functions below."""
    dtype = np.dtype(NUMPY[element])
    with np.errstate(over="ignore", invalid="ignore"):
        return _KINDS[kind](dtype, shape, rng).astype(dtype)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == NUMPY["bf16"]


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


_KINDS = {f.__name__[1:]: f for f in (_wide, _normal, _tame, _factors, _numbers, _rarely)}


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


def _indices(a: Arrays) -> Mapping[str, Array]:
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
    "indices": Entry(_indices),
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
    """float64 to bf16 in one rounding: the nearest of the two around it, even if they are as near."""
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

TABLE: Mapping[str, Mapping[str, Entry]] = {
    "integers": _INTEGERS,
    "floats": _FLOATS,
    "convert": _CONVERT,
}
