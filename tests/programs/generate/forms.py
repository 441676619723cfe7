"""How a kernel comes by a tile: what it loads, and through what, so that layouts differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.programs.generate.use import NUMBERS, Array, Operand, Shape, listed


@dataclass(frozen=True)
class Form:
    """`stored` is the shape of the tensor, `text` the expression that makes the tile of it.

    `tile` does the same to an array; `kind` is that of the data where the form needs its own.
    """

    stored: Shape
    text: str
    tile: Callable[[Array], Array]
    kind: str | None = None


def _load(shape: Shape, of: str = "{x}") -> str:
    return f"{of}.load::<{listed(shape)}>([{', '.join('0' * len(shape))}])"


def plain(operand: Operand, shape: Shape) -> Form:
    if not shape:
        return Form((1,), f"{_load((1,))}.item()", lambda a: a.reshape(()))
    return Form(shape, _load(shape), lambda a: a)


def turned(operand: Operand, shape: Shape) -> Form:
    """Loaded with its axes in reverse order, and turned round as a tile."""
    if len(shape) < 2:
        return doubled(operand, shape)
    order = tuple(reversed(range(len(shape))))
    stored = tuple(reversed(shape))
    return Form(stored, f"{_load(stored)}.permute::<{listed(order)}>()", np.transpose)


def viewed(operand: Operand, shape: Shape) -> Form:
    """Loaded from a view whose last axis is not the contiguous one."""
    if len(shape) < 2:
        return plain(operand, shape)
    order = tuple(reversed(range(len(shape))))
    view = f"{{x}}.permute::<{listed(order)}>()" if len(shape) > 2 else "{x}.t()"
    return Form(tuple(reversed(shape)), _load(shape, view), np.transpose)


def reduced(operand: Operand, shape: Shape) -> Form:
    """What is left of an axis: held by several threads at once."""
    axis = next((a for a, extent in enumerate(shape) if extent == 1), None)
    if axis is None or operand.element not in NUMBERS:
        return viewed(operand, shape)
    stored = (*shape[:axis], 16, *shape[axis + 1 :])
    text = f"{_load(stored)}.max::<{axis}>()"
    return Form(stored, text, lambda a: a.max(axis, keepdims=True), "tame")


def doubled(operand: Operand, shape: Shape) -> Form:
    """The second half of a tile."""
    legal = (shape and (2 * shape[-1]) % 16 == 0) or shape[-1:] in ((1,), (2,), (4,))
    if not legal:
        return plain(operand, shape)
    axis = len(shape) - 1
    stored = (*shape[:-1], 2 * shape[-1])
    text = f"{{{{ let (_, high) = {_load(stored)}.split::<{axis}>(); high }}}}"
    return Form(stored, text, lambda a: np.split(a, 2, axis)[1])


FORMS = {form.__name__: form for form in (plain, turned, viewed, reduced, doubled)}
