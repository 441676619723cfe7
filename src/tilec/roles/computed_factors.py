"""Factors that threads compute, each while products of another one are under way.

Before:   r = read t; a = f r; c = begin a x + c
After:    r = read t
          a = f (r, lower half of k); c = begin a x + c
          b = f (r, upper half of k); c = begin b x + c, from the middle of k on

Registers of `b` are made while the product of `a` is under way, and in the next turn those of `a`
while that of `b` is. What is computed element by element is computed right before its product, so
that nothing else delays the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ops.async_dot import K_FROM
from tilec.ops.build import integer
from tilec.ops.registry import rules
from tilec.ops.rules import ElementwiseRules
from tilec.roles.of_roles import takes_held

# Units: bytes along k. A half has two instructions at least.
_LEAST_HALF = 64


def halved(product: ir.OpView) -> list[ir.OpView]:
    """A product whose first factor is computed, as two, each of one half of k; it alone if k is
    short or its factor comes from elsewhere."""
    if not takes_held(product) or not _is_computed_here(product.operands[0], product):
        return [product]
    factor = product.operands[0]
    kind = ir.RankedTensorType(factor.type)
    depth, bits = kind.shape[-1], kind.element_type.width
    half = depth // 2
    if half * bits // 8 < _LEAST_HALF or half * bits // 8 % _LEAST_HALF:
        return [product]
    found: list[ir.OpView] = []
    sums = product.operands[2]
    for first in (0, half):
        with product.location, ir.InsertionPoint(product):
            copy = product.operation.clone().opview
        copy.operands[0] = _Sliced(copy, first, half).of(factor)
        copy.operands[2] = sums
        copy.attributes[K_FROM] = integer(first)
        sums = copy.results[0]
        found.append(copy)
    product.results[0].replace_all_uses_with(sums)
    product.operation.erase()
    _erase_unused(factor)
    return found


def _is_computed_here(factor: ir.Value, product: ir.OpView) -> bool:
    if (
        isinstance(factor.owner, ir.Block)
        or factor.owner.operation.block != product.operation.block
    ):
        return False
    return isinstance(rules()[factor.owner.operation.name], ElementwiseRules)


class _Sliced:
    """Some of a tile along its last axis, computed anew from slices of what it is computed of."""

    def __init__(self, before: ir.OpView, first: int, count: int) -> None:
        self.before, self.first, self.count = before, first, count
        self._made: dict[ir.Value, ir.Value] = {}

    def of(self, value: ir.Value) -> ir.Value:
        if value not in self._made:
            self._made[value] = self._make(value)
        return self._made[value]

    def _make(self, value: ir.Value) -> ir.Value:
        kind = ir.RankedTensorType(value.type)
        target = ir.RankedTensorType.get([*kind.shape[:-1], self.count], kind.element_type)
        if (
            not isinstance(value.owner, ir.Block)
            and value.owner.operation.block == self.before.operation.block
        ):
            op = value.owner.opview
            rule = rules()[op.operation.name]
            if isinstance(rule, ElementwiseRules) and len(op.results) == 1:
                operands = [self.of(one) if is_tile(one) else one for one in op.operands]
                return self._clone(op, target, operands)
        if _is_splat(value):
            return self._splat(value, target)
        return self._slice(value, target)

    def _clone(self, op: ir.OpView, target: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
        with op.location, ir.InsertionPoint(self.before):
            made = ir.Operation.create(
                op.operation.name,
                results=[target],
                operands=list(operands),
                attributes={name: op.attributes[name] for name in op.attributes},
            )
        return made.results[0]

    def _splat(self, value: ir.Value, target: ir.RankedTensorType) -> ir.Value:
        number = ir.DenseElementsAttr(value.owner.attributes["value"]).get_splat_value()
        with value.owner.location, ir.InsertionPoint(self.before):
            made = ir.Operation.create(
                "arith.constant",
                results=[target],
                attributes={"value": ir.DenseElementsAttr.get_splat(target, number)},
            )
        return made.results[0]

    def _slice(self, value: ir.Value, target: ir.RankedTensorType) -> ir.Value:
        starts = [0] * (target.rank - 1) + [self.first]
        with self.before.location, ir.InsertionPoint(self.before):
            made = ir.Operation.create(
                "tensor.extract_slice",
                results=[target],
                operands=[value],
                attributes={
                    "static_offsets": ir.DenseI64ArrayAttr.get(starts),
                    "static_sizes": ir.DenseI64ArrayAttr.get(target.shape),
                    "static_strides": ir.DenseI64ArrayAttr.get([1] * target.rank),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                },
            )
        return made.results[0]


def _is_splat(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    return bool(ir.DenseElementsAttr(value.owner.attributes["value"]).is_splat)


def _erase_unused(value: ir.Value) -> None:
    """What only a product used that is gone: users first, each operation once."""
    for op in reversed(_made_of(value)):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()


def _made_of(value: ir.Value) -> list[ir.Operation]:
    """What a tile is computed of element by element, itself last; operands before their users."""
    found: dict[ir.Operation, None] = {}
    # Each with whether its operands have been visited.
    waiting = [(value, False)]
    while waiting:
        value, is_done = waiting.pop()
        op = value.owner
        if isinstance(op, ir.Block) or op.operation in found:
            continue
        if not isinstance(rules()[op.operation.name], ElementwiseRules):
            continue
        if is_done:
            found[op.operation] = None
            continue
        waiting.append((value, True))
        waiting += [(one, False) for one in op.operands if is_tile(one)]
    return list(found)


def compute_late(products: Sequence[ir.OpView]) -> None:
    """Moves what is computed element by element for these products only, of one block, to right
    before the first one that takes it."""
    products = [op for op in products if takes_held(op)]
    if len(products) < 2:
        return
    block = products[0].operation.block
    late = {op.operation for op in products}
    for op in reversed(list(block.operations)):
        rule = rules()[op.operation.name]
        is_slice = op.operation.name == "tensor.extract_slice"
        if not is_slice and not isinstance(rule, ElementwiseRules):
            continue
        users = {use.owner.operation for result in op.results for use in result.uses}
        if users and users <= late:
            first = next(one for one in block.operations if one.operation in users)
            op.operation.move_before(first.operation)
            late.add(op.operation)


def are_made_apart(products: Sequence[ir.OpView]) -> bool:
    """Whether what each product takes from registers is made behind the product before it, in
    registers of its own."""
    block = products[0].operation.block
    listed = [op.operation for op in block.operations]
    for before, op in pairwise(products):
        maker = op.operands[0].owner
        if isinstance(maker, ir.Block) or maker.operation not in listed:
            return False
        if listed.index(maker.operation) < listed.index(before.operation):
            return False
    first = products[0].operands[0].owner
    return len(products) > 1 and not isinstance(first, ir.Block) and first.operation in listed
