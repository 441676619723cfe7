"""A kernel of the tile dialect, executed with NumPy: the meaning of the language.

Takes the IR before or after helpers are inlined, one program at a time, in any order asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from mlir import ir

from tilec.artifact.expression import DivisionByZero, ExpressionError, TooLarge, Value, evaluate
from tilec.interpret.contract import BrokenContract, bind, parameters_of, strides_of
from tilec.interpret.machine import Code, Machine, code_of
from tilec.interpret.memory import Array, Observer, View, view_of
from tilec.ops.host_expression import NoHostExpressionError, host_expression
from tilec.ops.rules import Datum


def run_kernel(
    function: ir.OpView,
    arguments: Mapping[str, Any],
    order: Sequence[int] | int | None = None,
    observer: Observer | None = None,
    code: Code | None = None,
) -> None:
    """Run every program of a kernel on arrays, in place.

    Shapes:   any strided arrays whose last stride is 1; scalars are Python or NumPy numbers
    Units:    `order` is a permutation of the programs' row-major numbers, or a seed for one;
              None is their own order; `code` is `code_of` the function, which launches may share
    Raises:   BrokenContract if the arguments do not fit, or a `requires!` or `assert!` fails
    """
    code = code or code_of(function)
    entry = function.regions[0].blocks[0]
    slots, grid = _prepared(function, arguments, observer, code)
    # Conversions and overflow have their meaning by the language, not by NumPy's warnings.
    with np.errstate(all="ignore"):
        for number in _order(order, prod(grid)):
            program = tuple(int(i) for i in np.unravel_index(number, grid)) if grid else ()
            if observer is not None:
                observer.starts(program)
            Machine(code, program, grid).run(entry, slots)


def check_launch(
    function: ir.OpView, arguments: Mapping[str, Any], code: Code | None = None
) -> None:
    """Do what `run_kernel` does before the first program runs, and nothing more.

    Raises:   BrokenContract as `run_kernel`
    """
    _prepared(function, arguments, None, code or code_of(function))


def _prepared(
    function: ir.OpView, arguments: Mapping[str, Any], observer: Observer | None, code: Code
) -> tuple[list[Datum], tuple[int, ...]]:
    """The values of the function's arguments and the grid, once the contract holds."""
    entry = function.regions[0].blocks[0]
    slots = _slots(function, arguments, observer)
    with np.errstate(all="ignore"):
        ahead = Machine(
            code, values=dict(zip(map(code.number, entry.arguments), slots, strict=True))
        )
        _check_claims(entry, ahead, _numbers(function, arguments))
        return slots, _grid(entry, ahead)


def _slots(
    function: ir.OpView, arguments: Mapping[str, Any], observer: Observer | None
) -> list[Datum]:
    """One datum an argument of the function, by its `tile.slot`."""
    arrays, dims = bind(parameters_of(function), arguments)
    views: dict[str, View] = {}
    found: list[Datum] = []
    for attributes in ir.ArrayAttr(function.attributes["arg_attrs"]):
        slot = ir.DictAttr(ir.DictAttr(attributes)["tile.slot"])
        name = ir.StringAttr(slot["name"]).value
        match ir.StringAttr(slot["kind"]).value:
            case "pointer":
                views[name] = view_of(name, arrays[name], observer)
                found.append(views[name])
            case "stride":
                axis = ir.IntegerAttr(slot["axis"]).value
                found.append(np.asarray(strides_of(arrays[name])[axis], np.int64))
            case "scalar":
                found.append(arrays[name])
            case kind:
                assert kind == "extent", f"no such slot: {kind}"
                if name not in dims:
                    raise BrokenContract(f"no tensor binds the extent `{name}`")
                found.append(np.asarray(dims[name], np.int64))
    return found


def _check_claims(entry: ir.Block, machine: Machine, numbers: Mapping[str, Value]) -> None:
    """Every `requires!` holds, and launchers can compute the grid, even if no program is to run."""
    for op in entry.operations:
        if op.operation.name != "tile.assume":
            continue
        why = _not_computed(op.operands[0], numbers)
        if why is not None:
            text = ir.StringAttr(op.attributes["text"]).value
            machine.fail(op, f"`requires!({text})` does not hold: {why}")
        machine.evaluate(op.operands[0])
        machine.execute(machine.code.step(op))
    for op in entry.operations:
        for extent in op.operands if op.operation.name == "tile.grid" else ():
            why = _not_computed(extent, numbers, total=True)
            if why is not None:
                machine.fail(op, f"there is no such grid: {why}")


def _not_computed(
    value: ir.Value, numbers: Mapping[str, Value], *, total: bool = False
) -> str | None:
    """Why launchers compute no number that the program has; None if they do.

    `total`: a division by zero is a number to them.
    """
    try:
        evaluate(host_expression(value), numbers, total=total)
    except DivisionByZero:
        return "it divides by zero"
    except TooLarge as error:
        return str(error)
    except (ExpressionError, NoHostExpressionError):  # the IR of no program that was checked
        pass
    return None


def _numbers(function: ir.OpView, arguments: Mapping[str, Any]) -> dict[str, Value]:
    """The extents and scalars of a launch, as launchers have them."""
    parameters = parameters_of(function)
    arrays, dims = bind(parameters, arguments)
    scalars = {p.name: (arrays[p.name], p.element) for p in parameters if p.extents is None}
    return {**dims, **{name: _number(*held) for name, held in scalars.items()}}


def _number(held: Array, element: str) -> Value:
    unsigned = element[0] == "u" and element != "usize"
    plain = held.view(f"u{held.itemsize}") if unsigned else held
    value: Value = plain.item()
    return value if isinstance(value, bool | int) else float(value)


def _grid(entry: ir.Block, machine: Machine) -> tuple[int, ...]:
    """The extents of the grid: those of `tile.grid`, or how many parts the tensors are cut in."""
    grid: tuple[int, ...] | None = None
    for op in entry.operations:
        extents = _extents_by(op, machine)
        if extents is None:
            continue
        if grid is not None and _without_ones(grid) != _without_ones(extents):
            raise BrokenContract(f"two parts have different grids: {grid} and {extents}")
        grid = max(grid or (), extents, key=len)
    assert grid is not None, "a kernel has parts or a grid"
    return grid


def _extents_by(op: ir.OpView, machine: Machine) -> tuple[int, ...] | None:
    """What an operation of the entry block says of the grid, if it does."""
    if op.operation.name == "tile.grid":
        return tuple(max(0, int(machine.evaluate(extent))) for extent in op.operands)
    if op.operation.name != "tile.part":
        return None
    block = (ir.IntegerAttr(extent).value for extent in ir.ArrayAttr(op.attributes["block"]))
    extents: Array = machine.evaluate(op.operands[0]).extents
    return tuple(-(-extent // size) for extent, size in zip(extents, block, strict=True))


def _without_ones(grid: tuple[int, ...]) -> tuple[int, ...]:
    """The grid without the ones that pad it at the end."""
    while grid and grid[-1] == 1:
        grid = grid[:-1]
    return grid


def _order(order: Sequence[int] | int | None, count: int) -> Iterable[int]:
    if order is None:
        return range(count)
    if isinstance(order, int):
        return (int(i) for i in np.random.default_rng(order).permutation(count))
    assert sorted(order) == list(range(count)), f"not an order of {count} programs"
    return order
