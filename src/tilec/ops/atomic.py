"""Atomic updates of elements of an `&Atomic<Tensor<…>>`, one for each index.

Index tiles broadcast with each other; there is one update for each of their elements, and a scalar
index is the same for all. The value is a tile of their shape, or a scalar. The result is what each
element was before, in that shape: 0 where the index is outside, which touches nothing. The CPU
execution updates in row-major order. On a GPU, `fetch_add` of `f32` takes subnormal numbers for
zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import is_tile, tile_type
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.access import (
    expect_atomic,
    expect_rank_of_index,
    expect_turbofish,
    expect_unsafe,
    expect_value,
    marks,
)
from tilec.ops.broadcasting import element_in
from tilec.ops.build import make, segments, spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.formats import Array, dtype_of, shape_of
from tilec.ops.index_tiles import (
    axes_of,
    claims_of_indexed,
    index_operands,
    paired_shape,
    places_of,
)
from tilec.ops.lower_atomic import lower_update, update_layout
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.registry import rules
from tilec.ops.rules import (
    Claim,
    Data,
    DataOf,
    Datum,
    IndexedShape,
    Machine,
    OpRules,
    Places,
    Placing,
)
from tilec.types import STORAGE_ONLY, Kind, Own, TensorType, TileType, Type


@dataclass(frozen=True)
class _Update:
    """One kind of update; `value_names` are its arguments behind the index."""

    name: str
    word: str  # in the IR
    meaning: str
    value_names: tuple[str, ...] = ("value",)
    on_floats: bool = True


@dataclass(frozen=True)
class _Atomic(Operation):
    """An update in one of its forms."""

    update: _Update
    suffix: str
    form_summary: str = ""
    form: Form = Form.METHOD
    receiver: Receiver | None = Receiver.TENSOR

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.update.name + self.suffix

    @property
    def signature(self) -> str:  # type: ignore[override]
        return f"a.{self.name}({', '.join(('[i, …]', *self.update.value_names))})"

    @property
    def summary(self) -> str:  # type: ignore[override]
        return self.form_summary or self.update.meaning

    @property
    def turbofish(self) -> bool | None:  # type: ignore[override]
        # `load` and `load_unchecked` of a plain tensor have one.
        return None if self.update.value_names else False

    def result_type(self, call: Call) -> Type:
        tensor = self._tensor(call)
        if self.suffix == "_unchecked":
            expect_unsafe(call)
        uses.expect_counts(call, 2 + len(self.update.value_names))
        self._expect_element(call, tensor)
        expect_rank_of_index(call, tensor, len(uses.index_tile_types(call, 1)))
        shape = paired_shape(call, 1)
        for index in range(2, len(call.arguments)):
            _expect_value(call, index, tensor, shape)
        return TileType(tensor.element, shape)

    def _tensor(self, call: Call) -> TensorType:
        tensor = call.arguments[0].type
        if self.turbofish is False and isinstance(tensor, TensorType) and tensor.own != Own.ATOMIC:
            # What is meant is the operation of plain tensors.
            expect_turbofish(call, tensor)
        return expect_atomic(call)

    def _expect_element(self, call: Call, tensor: TensorType) -> None:
        element = tensor.element
        is_wide_integer = element.is_integer and element.bits >= 32
        is_float = element.is_float and element not in STORAGE_ONLY
        if is_wide_integer or (is_float and self.update.on_floats):
            return
        known = "integers of 32 and 64 bits" + (", and floats" if self.update.on_floats else "")
        message = f"`{call.name}` works on {known}, got `{element}`"
        label = Label(call.arguments[0].span, f"this is `{tensor}`")
        raise uses.refuse("E0203", message, label)

    def emit(self, emission: Emission) -> ir.Value:
        kind = emission.result
        assert isinstance(kind, TileType)
        view, _, *values = emission.operands
        element = element_in(kind)
        scalars, tiles, tiled = index_operands(emission, 1, kind.shape)
        word = self.update.word
        if word in ("min", "max") and element.kind is Kind.UNSIGNED:
            word = f"u{word}"
        return make(
            "tile.atomic",
            tile_type(kind),
            view,
            *scalars,
            *tiles,
            *(spread(value, element, kind.shape) for value in values),
            tiled=tiled,
            update=ir.StringAttr.get(word),
            ordering=ir.StringAttr.get("acq_rel" if self.suffix == "_acq_rel" else "relaxed"),
            operandSegmentSizes=segments(1, len(scalars), len(tiles), len(values)),
            **marks(emission, unchecked=self.suffix == "_unchecked"),
        )


def _expect_value(call: Call, index: int, tensor: TensorType, shape: tuple[int, ...]) -> None:
    """E0202, E0301 unless an argument is a tile of the shape of the indices, or a scalar."""
    tile = uses.expect_tile(call, index)
    if not (shape or tile.is_scalar):
        message = f"the index is one, the value is `{tile}`"
        help = "index by tiles too, or combine the value first: `.sum_all()`"
        raise uses.refuse("E0301", message, Label(call.arguments[index].span), help=help)
    owner = Label(call.arguments[1].span, f"indices of shape {uses.shape_text(shape)}")
    expect_value(call, index, tensor.element, shape, owner)


_UPDATES = (
    _Update("load", "load", "The element, read atomically.", ()),
    _Update("swap", "swap", "The value takes the element's place."),
    _Update(
        "compare_exchange",
        "compare_exchange",
        "`new` takes the element's place if that is `expected`; it was if the result is. Outside"
        " the result is 0, whatever is expected.",
        ("expected", "new"),
        on_floats=False,
    ),
    _Update("fetch_add", "add", "The value is added; integers wrap."),
    _Update("fetch_min", "min", "The smaller of both, as by `min`."),
    _Update("fetch_max", "max", "The larger of both, as by `max`."),
    _Update("fetch_and", "and", "The bits in both.", on_floats=False),
    _Update("fetch_or", "or", "The bits in either.", on_floats=False),
    _Update("fetch_xor", "xor", "The bits in one of them.", on_floats=False),
)


def _forms() -> Iterator[_Atomic]:
    for update in _UPDATES:
        yield _Atomic(update, "")
        if update.value_names:
            summary = f"`{update.name}` that acquires and releases; the others are relaxed."
            yield _Atomic(update, "_acq_rel", summary)
        summary = (
            f"`{update.name}` of elements that the program vouches are inside; in `unsafe` only."
        )
        yield _Atomic(update, "_unchecked", summary)


OPERATIONS: tuple[Operation, ...] = tuple(_forms())

# What an update means, by the operation of MLIR that means it: on integers, and on floats.
_MEANINGS = {
    "add": ("arith.addi", "arith.addf"),
    "min": ("arith.minsi", "arith.minnumf"),
    "max": ("arith.maxsi", "arith.maxnumf"),
    "umin": ("arith.minui", ""),
    "umax": ("arith.maxui", ""),
    "and": ("arith.andi", ""),
    "or": ("arith.ori", ""),
    "xor": ("arith.xori", ""),
}


class _TileAtomic(OpRules):
    name = "tile.atomic"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        _, scalar_count, tile_count, _ = op.attributes["operandSegmentSizes"]
        view, *rest = operands
        scalars, rest = rest[:scalar_count], rest[scalar_count:]
        tiles, values = rest[:tile_count], rest[tile_count:]
        kind = op.results[0].type
        shape = shape_of(kind)
        indices = places_of(op, scalars, tiles, shape)
        update = ir.StringAttr(op.attributes["update"]).value
        if update == "load":
            return [view.gather(indices, shape, op, atomic=True).view(dtype_of(kind))]

        def change(old: Array, *given: Array) -> Array:
            return _changed(update, op, old, given, machine)

        return [view.update(indices, change, values, np.zeros(shape, dtype_of(kind)), op)]

    def indexed(self, op: ir.OpView) -> IndexedShape:
        _, *counts, _ = op.attributes["operandSegmentSizes"]
        view, *rest = op.operands
        starts, chosen = axes_of(op, rest[: sum(counts)])
        # A scalar is an index too: nothing lies along its axis.
        indices = tuple(t if s is None else s for s, t in zip(starts, chosen, strict=True))
        shape = shape_of(op.results[0].type)
        return IndexedShape(op.results[0], view, (None,) * len(indices), indices, shape)

    def orders_all(self, op: ir.OpView) -> bool:
        return bool(ir.StringAttr(op.attributes["ordering"]).value == "acq_rel")

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        return claims_of_indexed(op, self.indexed(op))

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        return Data.UNKNOWN

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        layout = update_layout(op, self.indexed(op), known, placing)
        operands = tuple(layout if is_tile(value) else None for value in op.operands)
        return Places(operands, (layout if is_tile(op.results[0]) else None,))

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [lower_update(op, self.indexed(op), operands, lowering)]


def _changed(
    update: str, op: ir.OpView, old: Array, values: Sequence[Array], machine: Machine
) -> Array:
    """What elements become; each stands for itself."""
    match update:
        case "swap":
            return values[0]
        case "compare_exchange":
            expected, new = values
            return np.where(old == expected, new, old)
    name = _MEANINGS[update][old.dtype.kind not in "iu"]
    [changed] = rules()[name].interpret(op, [old, *values], machine)
    return np.asarray(changed)


RULES: tuple[OpRules, ...] = (_TileAtomic(),)
