"""Reductions and scans: along two of the axes, and of all elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import ml_dtypes
import numpy as np

from tests.programs.generate.use import FLOATS, NUMBERS, Array, Operand, Shape, Use
from tests.programs.table import (
    _first_extreme,
    _nan_extreme,
    _number_extreme,
    _running,
    _running_extreme,
    _running_total,
    _total,
)


def reductions(element: str, shape: Shape) -> Iterator[Use]:
    """Every reduction that takes the type."""
    for axis in (*_axes(element, shape), None):
        result = () if axis is None else _folded(shape, axis)
        if element == "bool":
            yield from _of_truths(shape, axis, result)
        if element in NUMBERS:
            yield from _of_numbers(element, axis, result)
    for axis in _axes(element, shape)[:1]:
        yield from _combined(element, shape, axis)


def scans(element: str, shape: Shape) -> Iterator[Use]:
    """Every scan that takes the type."""
    for axis in _axes(element, shape):
        if element in NUMBERS:
            yield from _running_numbers(element, shape, axis)
    for axis in _axes(element, shape)[:1]:
        yield from _running_combined(element, shape, axis)


def _axes(element: str, shape: Shape) -> list[int]:
    """Up to two, by turns."""
    if not shape:
        return []
    first = crc32(f"{element} {shape}".encode()) % len(shape)
    return list(dict.fromkeys((first, (first + 1) % len(shape))))


def _folded(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


# ---- reductions ----------------------------------------------------------------------------------


def _call(name: str, axis: int | None) -> str:
    return f".{name}_all()" if axis is None else f".{name}::<{axis}>()"


def _of_truths(shape: Shape, axis: int | None, result: Shape) -> Iterator[Use]:
    for name, kind, meaning in (("any", "rarely", np.any), ("all", "wide", np.all)):
        own = (Operand("r" if kind == "rarely" else "a", "bool", kind),)
        text = f"{{{own[0].name}}}{_call(name, axis)}"
        kept = partial(meaning, axis=axis, keepdims=axis is not None)
        yield Use(text, own, "bool", result, kept)
        if axis is None:
            yield Use(f"{{{own[0].name}}}.{name}()", own, "bool", result, kept)


def _of_numbers(element: str, axis: int | None, result: Shape) -> Iterator[Use]:
    own, tame, factors = _data(element)
    yield Use(f"{{t}}{_call('sum', axis)}", tame, element, result, partial(_total, axis=axis))
    product = partial(_product, axis=axis)
    yield Use(f"{{f}}{_call('prod', axis)}", factors, element, result, product)
    for name in ("min", "max"):
        least = partial(_least, largest=name == "max", axis=axis)
        yield Use(f"{{a}}{_call(name, axis)}", own, element, result, least)
        if element in FLOATS:
            nan = partial(_nan_extreme, axis=axis, largest=name == "max")
            yield Use(f"{{a}}{_call(name + 'imum', axis)}", own, element, result, nan)
        place = partial(_place, axis=axis, largest=name == "max")
        yield Use(f"{{a}}{_call('arg' + name, axis)}", own, "i32", result, place)


def _data(element: str) -> list[tuple[Operand, ...]]:
    """Any; and such whose sums, and products, are exact in any order."""
    if element not in FLOATS:
        return [(Operand(name, element),) for name in "atf"]
    return [
        (Operand("a", element),),
        (Operand("t", element, "tame"),),
        (Operand("f", element, "factors"),),
    ]


def _product(a: Array, axis: int | None) -> Array:
    keep = axis is not None
    if a.dtype.kind in "iu":
        return np.asarray(a.prod(axis, dtype=a.dtype, keepdims=keep))
    return np.asarray(a.astype(np.float64).prod(axis, keepdims=keep)).astype(a.dtype)


def _least(a: Array, axis: int | None, *, largest: bool) -> Array:
    if a.dtype.kind in "iu":
        return np.asarray((np.max if largest else np.min)(a, axis=axis, keepdims=axis is not None))
    return np.asarray(_number_extreme(a, axis, largest=largest))


def _place(a: Array, axis: int | None, *, largest: bool) -> Array:
    found = _first_extreme(a if axis is not None else a.ravel(), axis, largest=largest)
    return found if axis is None else np.expand_dims(found, axis)


# ---- any combination -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Combiner:
    """`text` combines `p` and `q`; `start` is what it starts from."""

    start: str
    text: str
    reduce: Callable[..., Array]  # of an array, along `axis`, which stays
    run: Callable[..., Array]  # the same of all before each element, or from it on (`rev`)

    def of(self, p: str, q: str) -> str:
        return self.text.format(p=p, q=q)


def _combiner(element: str) -> _Combiner:
    if element in FLOATS:
        return _Combiner(
            f"{element}::NEG_INFINITY",
            "{p}.maximum({q})",
            partial(_nan_extreme, largest=True),
            partial(_running, step=_larger),
        )
    if element in NUMBERS:
        xor = partial(np.bitwise_xor.reduce, keepdims=True)
        return _Combiner("0", "{p} ^ {q}", xor, partial(_running, step=np.bitwise_xor))
    if element == "bool":
        xor = partial(np.logical_xor.reduce, keepdims=True)
        return _Combiner("false", "{p} ^ {q}", xor, partial(_running, step=np.logical_xor))
    return _Combiner(
        "0.0",
        f"{{p}}.to::<f32>().max({{q}}.to::<f32>()).to::<{element}>()",
        _largest_f8,
        _running_f8,
    )


def _larger(a: Array, b: Array) -> Array:
    return _nan_extreme(np.stack([a, b]), 0, largest=True)[0]


def _largest_f8(a: Array, axis: int) -> Array:
    """From zero on, and saturated."""
    return _running_f8(a, axis).take([-1], axis)


def _running_f8(a: Array, axis: int, *, rev: bool = False) -> Array:
    numbers = np.where(np.isnan(a.astype(np.float64)), 0, a.astype(np.float64))
    inside = np.clip(numbers, 0, float(ml_dtypes.finfo(a.dtype).max)) + 0.0
    return _running(inside, axis, np.maximum, rev=rev).astype(a.dtype)


def _combined(element: str, shape: Shape, axis: int) -> Iterator[Use]:
    combiner, result = _combiner(element), _folded(shape, axis)
    yield from _one_and_two(f"reduce::<{axis}>", combiner, element, result, axis, combiner.reduce)


def _running_combined(element: str, shape: Shape, axis: int) -> Iterator[Use]:
    combiner = _combiner(element)
    for name, rev in (("scan", False), ("scan_rev", True)):
        run = partial(combiner.run, rev=rev)
        yield from _one_and_two(f"{name}::<{axis}>", combiner, element, shape, axis, run)


def _one_and_two(
    call: str,
    combiner: _Combiner,
    element: str,
    result: Shape,
    axis: int,
    meaning: Callable[..., Array],
) -> Iterator[Use]:
    """Of one tile, and of two together."""
    start, both = combiner.start, (Operand("a", element), Operand("b", element))
    one = f"{{a}}.{call}({start}, |p, q| {combiner.of('p', 'q')})"
    yield Use(one, both[:1], element, result, partial(meaning, axis=axis))
    pair = f"|(p, q), (r, s)| ({combiner.of('p', 'r')}, {combiner.of('q', 's')})"
    two = f"({{a}}, {{b}}).{call}(({start}, {start}), {pair})"
    text = f"{{{{ let (_, second) = {two}; second }}}}"
    yield Use(text, both, element, result, lambda a, b: meaning(b, axis=axis))


# ---- scans ---------------------------------------------------------------------------------------


def _running_numbers(element: str, shape: Shape, axis: int) -> Iterator[Use]:
    own, tame, factors = _data(element)
    for suffix, rev in (("", False), ("_rev", True)):
        total = partial(_running_total, axis=axis, rev=rev)
        yield Use(f"{{t}}.cumsum{suffix}::<{axis}>()", tame, element, shape, total)
        product = partial(_running_product, axis=axis, rev=rev)
        yield Use(f"{{f}}.cumprod{suffix}::<{axis}>()", factors, element, shape, product)
        for name, step in (("min", np.minimum), ("max", np.maximum)):
            extreme = partial(_running, axis=axis, step=step, rev=rev)
            if element in FLOATS:
                extreme = partial(_running_extreme, axis=axis, largest=name == "max", rev=rev)
            yield Use(f"{{a}}.cum{name}{suffix}::<{axis}>()", own, element, shape, extreme)


def _running_product(a: Array, axis: int, *, rev: bool) -> Array:
    wide = a if a.dtype.kind in "iu" else a.astype(np.float64)
    return _running(wide, axis, np.multiply, rev=rev).astype(a.dtype)
