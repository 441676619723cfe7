"""Products turned round: (a b)ᵀ = bᵀ aᵀ, where so the second factor may be computed, or rows few.

Tensor cores that read shared memory take the first factor from registers too, and in rows of 64.

Before:   a function in the tile dialect
After:    some products are of transposed factors, and loops carry their sums transposed

    for k { c = a b + c }; store c           for k { cᵀ = bᵀ aᵀ + cᵀ }; store (cᵀ)ᵀ

Sound: multiplication of elements is commutative, and the order of sums is not stated.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.hints import Hints
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.build import integers, make_with_body
from tilec.ops.fragments import bit_width
from tilec.ops.lower_control import terminator_of
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules, shape_of
from tilec.ops.send import By
from tilec.schedule.plan import NoSchedule, Schedule, plan
from tilec.schedule.products import TURNED, Product, Unfit, find_products
from tilec.target.description import Target
from tilec.transforms.remove_dead import remove_dead


def plan_either_way(
    function: ir.OpView,
    hints: Hints,
    target: Target,
    fitting: int | None = None,
    by: By = "copies",
) -> tuple[ir.OpView, Schedule | NoSchedule]:
    """The function, with products turned round if more of them are scheduled so, and its schedule.

    If neither form has all of them, factors that are computed may go through shared memory.
    `hints`, `fitting` and `by` are those of `plan`. The function that is not taken is erased.
    Needs a current location.
    """
    straight = plan(function, hints, target, fitting, by)
    done = _products(straight)
    found = enumerate(find_products(function))
    left = [number for number, one in found if one.op not in done and _may_turn(one)]
    if not left or not target.has_async_products:
        return function, straight
    tried = [(function, straight)]
    turned = function.operation.clone().opview
    ops = [one.op for one in find_products(turned)]
    if turn([ops[number] for number in left], turned):
        tried.append((turned, plan(turned, hints, target, fitting, by)))
    else:
        turned.operation.erase()
    if all(len(_products(one)) < len(done) + len(left) for _, one in tried):
        tried.append((function, plan(function, hints, target, fitting, by, stages=True)))
    # The first one of those with the most.
    taken, schedule = max(tried, key=lambda one: len(_products(one[1])))
    for spare in {one for one, _ in tried} - {taken}:
        spare.operation.erase()
    return taken, schedule


def _products(schedule: Schedule | NoSchedule) -> list[ir.OpView]:
    return [p.op for p in schedule.products] if isinstance(schedule, Schedule) else []


def _may_turn(one: Product | Unfit) -> bool:
    """Whether what keeps it from being scheduled may be otherwise when it is turned round."""
    return isinstance(one, Product) or one.may_turn


def turn(products: Sequence[ir.OpView], function: ir.OpView) -> bool:
    """Turn those of these products that can be; whether there were any."""
    found = [op for op in products if _can_be_turned(op)]
    for op in found:
        _turn(op)
    changed = bool(found)
    while changed:
        loops = [op for op in operations(function) if op.operation.name == "scf.for"]
        changed = sum(map(_carry_turned, loops)) > 0
    for op in list(operations(function)):
        _narrow_first(op)
    remove_dead(function)
    return bool(found)


def _can_be_turned(op: ir.OpView) -> bool:
    left, right = (ir.RankedTensorType(v.type).element_type for v in list(op.operands)[:2])
    return bool(left == right)


def _turn(op: ir.OpView) -> None:
    with op.location, ir.InsertionPoint(op):
        a, b, sums = (_turned(value) for value in op.operands)
        other = op.operation.clone()
        for number, value in enumerate((b, a, sums)):
            other.operands[number] = value
        other.results[0].set_type(sums.type)
        other.attributes[TURNED] = ir.UnitAttr.get()
        result = _turned(other.results[0])
    op.results[0].replace_all_uses_with(result)
    op.operation.erase()


def _carry_turned(loop: ir.OpView) -> bool:
    """Have a loop carry transposed what it only uses and gives so; whether there was anything."""
    [body] = loop.regions[0].blocks
    end = terminator_of(body)
    found = False
    for number, argument in enumerate(list(body.arguments)[1:]):
        uses = [use.owner.operation.opview for use in argument.uses]
        given = end.operands[number]
        if not uses or not all(map(_turns, uses)) or not _is_turned(given):
            continue
        found = True
        with loop.location, ir.InsertionPoint(loop):
            first = _turned(loop.operands[3 + number])
        loop.operands[3 + number] = first
        argument.set_type(first.type)
        for use in uses:
            use.results[0].replace_all_uses_with(argument)
            use.operation.erase()
        end.operands[number] = given.owner.operands[0]
        # An unused use would make each iteration wait for the accumulator.
        if not any(True for _ in given.uses):
            given.owner.erase()
        result = loop.results[number]
        result.set_type(first.type)
        with loop.location, ir.InsertionPoint.after(loop.operation):
            back = _turned(result)
        result.replace_all_uses_except(back, back.owner.operation)
    return found


def _narrow_first(op: ir.OpView) -> None:
    """Have a tile turned after it was converted to fewer bits, which is less to exchange.

    convert (xᵀ)           (convert x)ᵀ
    """
    tiles = [value for value in (*op.operands, *op.results) if is_tile(value)]
    is_alone = len(op.operands) == len(op.results) == 1 and len(tiles) == 2
    if not is_alone or type(rules()[op.operation.name]).place is not OpRules.place:
        return
    before, after = (bit_width(ir.RankedTensorType(one.type).element_type) for one in tiles)
    if after >= before or not _is_turned(op.operands[0]):
        return
    source, result = op.operands[0].owner.operands[0], op.results[0]
    with op.location, ir.InsertionPoint(op):
        other = op.operation.clone()
        other.operands[0] = source
        element = ir.RankedTensorType(result.type).element_type
        other.results[0].set_type(ir.RankedTensorType.get(shape_of(source), element))
        back = _turned(other.results[0])
    result.replace_all_uses_with(back)
    op.operation.erase()


# ---- tiles ---------------------------------------------------------------------------------------


def _turned(value: ir.Value) -> ir.Value:
    """A tile with its last two axes in the other order."""
    if _is_turned(value):
        return value.owner.operands[0]
    *batch, rows, columns = shape_of(value)
    element = ir.RankedTensorType(value.type).element_type
    kind = ir.RankedTensorType.get([*batch, columns, rows], element)
    if not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant":
        number = ir.DenseElementsAttr(value.owner.attributes["value"])
        if number.is_splat:
            splat = ir.DenseElementsAttr.get_splat(kind, number.get_splat_value())
            return ir.Operation.create(
                "arith.constant", results=[kind], attributes={"value": splat}
            ).results[0]
    order = (*range(len(batch)), len(batch) + 1, len(batch))
    made = ir.Operation.create("tensor.empty", results=[kind]).results[0]
    return make_with_body(
        "linalg.transpose",
        [kind],
        [value, made],
        lambda block: [block.arguments[0]],
        [element, element],
        permutation=integers(order),
    ).results[0]


def _is_turned(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and _turns(value.owner.operation.opview)


def _turns(op: ir.OpView) -> bool:
    if op.operation.name != "linalg.transpose":
        return False
    *batch, rows, columns = op.attributes["permutation"]
    count = len(batch)
    return bool(batch == list(range(count)) and (rows, columns) == (count + 1, count))
