"""Operations that make and rearrange tiles, for one element type and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

import numpy as np

from tests.programs.generate.use import (
    NUMBERS,
    Array,
    Operand,
    Shape,
    Use,
    listed,
)
from tests.programs.table import (
    NUMPY,
)

MOST_ELEMENTS = 8192


def rearranging(element: str, shape: Shape) -> Iterator[Use]:
    """Every operation that moves elements, along every axis."""
    own = (Operand("a", element),)
    for other in _same_size(shape):
        reshape = partial(_reshaped, other)
        yield Use(f"{{a}}.reshape::<{listed(other)}>()", own, element, other, reshape)
    for axis in range(len(shape) + 1 if len(shape) < 4 else 0):
        wider = (*shape[:axis], 1, *shape[axis:])
        if shape:
            expand = partial(_reshaped, wider)
            yield Use(f"{{a}}.expand::<{axis}>()", own, element, wider, expand)
    if shape == ():
        yield Use("{a}.broadcast::<4, 16>()", own, element, (4, 16), _stretched((4, 16)))
    for axis, extent in enumerate(shape):
        yield from _along(element, shape, axis, extent)
    if len(shape) >= 2:
        swapped = (*shape[:-2], shape[-1], shape[-2])
        yield Use("{a}.t()", own, element, swapped, lambda a: np.swapaxes(a, -1, -2))
        turned = (*range(1, len(shape)), 0)
        permuted = tuple(shape[axis] for axis in turned)
        transpose = partial(_transposed, turned)
        yield Use(f"{{a}}.permute::<{listed(turned)}>()", own, element, permuted, transpose)
    if shape:
        yield from _elements(element, shape)


def _reshaped(shape: Shape, a: Array) -> Array:
    return np.reshape(a, shape)


def _transposed(order: Shape, a: Array) -> Array:
    return np.transpose(a, order)


def _stretched(shape: Shape) -> Callable[[Array], Array]:
    return lambda a: np.broadcast_to(a, shape)


def _same_size(shape: Shape) -> Iterator[Shape]:
    """Two other shapes of as many elements."""
    count = prod(shape)
    if len(shape) != 1 and shape:
        yield (count,)
    two = count & -count
    low = 1 << (two.bit_length() - 1) // 2
    if shape and (low, count // low) != shape and _is_legal(count // low):
        yield low, count // low


def _is_legal(extent: int) -> bool:
    return extent % 16 == 0 or extent & (extent - 1) == 0


def _along(element: str, shape: Shape, axis: int, extent: int) -> Iterator[Use]:
    own = (Operand("a", element),)
    flip = partial(_flipped, axis)
    yield Use(f"{{a}}.flip::<{axis}>()", own, element, shape, flip)
    if extent % 2 == 0 and _is_legal(extent // 2):
        half = _with(shape, axis, extent // 2)
        for number in range(2):
            # A tuple is no value of an expression: a block takes it apart.
            text = f"{{{{ let (low, high) = {{a}}.split::<{axis}>(); {('low', 'high')[number]} }}}}"
            yield Use(text, own, element, half, partial(_half, axis, number))
    others = [extent, *(n for n in (16, 32) if extent >= 16 and n != extent)]
    for other in others:
        whole = _with(shape, axis, extent + other)
        if not _is_legal(extent + other) or prod(whole) > MOST_ELEMENTS:
            continue
        name = f"d{axis}_{other}"
        second = Operand(name, element, shape=_with(shape, axis, other))
        join = partial(_joined, axis)
        yield Use(f"cat::<{axis}>({{a}}, {{{name}}})", (*own, second), element, whole, join)
    if extent == 1:
        fewer = (*shape[:axis], *shape[axis + 1 :])
        if fewer:
            squeeze = partial(_reshaped, fewer)
            yield Use(f"{{a}}.squeeze::<{axis}>()", own, element, fewer, squeeze)
        stretched = _with(shape, axis, 16)
        yield Use(
            f"{{a}}.broadcast::<{listed(stretched)}>()", own, element, stretched,
            _stretched(stretched),
        )  # fmt: skip


def _with(shape: Shape, axis: int, extent: int) -> Shape:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _flipped(axis: int, a: Array) -> Array:
    return np.flip(a, axis)


def _half(axis: int, number: int, a: Array) -> Array:
    return np.split(a, 2, axis)[number]


def _joined(axis: int, a: Array, b: Array) -> Array:
    return np.concatenate([a, b], axis)


def _elements(element: str, shape: Shape) -> Iterator[Use]:
    own = (Operand("a", element),)
    last = tuple(n - 1 for n in shape)
    outside = (*last[:-1], shape[-1])
    yield Use(f"{{a}}.at([{listed(last)}])", own, element, (), lambda a: a[last])
    zero = partial(_zero_like, element)
    yield Use(f"{{a}}.at([{listed(outside)}])", own, element, (), zero)
    if prod(shape) == 1:
        yield Use("{a}.item()", own, element, (), lambda a: a.reshape(()))


def _zero_like(element: str, _: Array) -> Array:
    return np.zeros((), NUMPY[element])


# ---- from nothing --------------------------------------------------------------------------------


def made(element: str, shape: Shape) -> Iterator[Use]:
    """Tiles that no operand gives, and what every type must have met once."""
    if not shape:
        return
    own, dtype = (Operand("s", element, shape=()),), NUMPY[element]
    kind = f"Tile::<{element}, {listed(shape)}>"
    yield Use(f"{kind}::zeros()", (), element, shape, partial(np.zeros, shape, dtype))
    yield Use(f"{kind}::ones()", (), element, shape, lambda: np.ones(shape).astype(dtype))
    yield Use(f"{kind}::full({{s}})", own, element, shape, _stretched(shape))
    yield Use(f"splat::<{listed(shape)}>({{s}})", own, element, shape, _stretched(shape))
    yield Use(f"{{s}}.splat::<{listed(shape)}>()", own, element, shape, _stretched(shape))
    if element in NUMBERS:
        count = shape[-1]
        text = f"iota::<{element}, {count}>()"
        yield Use(text, (), element, (count,), partial(_iota, dtype, count))
    unit = Operand("u", element, shape=(1, *shape[-1:]))
    yield Use("{u}.squeeze::<0>()", (unit,), element, shape[-1:], partial(_reshaped, shape[-1:]))


def _iota(dtype, count: int) -> Array:
    with np.errstate(over="ignore"):
        return np.arange(count).astype(dtype)
