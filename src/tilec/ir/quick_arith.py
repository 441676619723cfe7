"""The builders of `arith` that lowering calls for every register, without what theirs do for all.

The bindings' own take three times as long, most of it to find out what is the same each time. Each
makes what its namesake in `mlir.dialects.arith` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mlir import ir


def constant(result: ir.Type, value: Any) -> ir.Value:
    """A number of this type; `value` may be an attribute."""
    if not isinstance(value, ir.Attribute):
        is_float = isinstance(value, float)
        value = (ir.FloatAttr if is_float else ir.IntegerAttr).get(result, value)
    pool = _pool.get()
    if pool is None:
        return _constant(result, value)
    if value not in pool.made:
        with pool.place:
            pool.made[value] = _constant(result, value)
    return pool.made[value]


@contextmanager
def constants_once(place: ir.InsertionPoint) -> Iterator[None]:
    """What is built in here has one operation for each constant, all of them at `place`.

    Assumes:  `place` dominates all that is built
    """
    token = _pool.set(_Pool(place))
    try:
        yield
    finally:
        _pool.reset(token)


@dataclass
class _Pool:
    place: ir.InsertionPoint
    made: dict[ir.Attribute, ir.Value] = field(default_factory=dict)


_pool: ContextVar[_Pool | None] = ContextVar("_pool", default=None)


def _constant(result: ir.Type, value: ir.Attribute) -> ir.Value:
    done = ir.Operation.create("arith.constant", results=[result], attributes={"value": value})
    return done.result


def cmpi(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    """A comparison of integers, of scalars or of vectors."""
    kind: ir.Type = ir.IntegerType.get_signless(1)
    if isinstance(left.type, ir.VectorType):
        kind = ir.VectorType.get(left.type.shape, kind)
    chosen = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(predicate))
    done = ir.Operation.create(
        "arith.cmpi", results=[kind], operands=[left, right], attributes={"predicate": chosen}
    )
    return done.result


def select(condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
    """One of two values."""
    done = ir.Operation.create("arith.select", results=[yes.type], operands=[condition, yes, no])
    return done.result


def _converting(name: str) -> Callable[[ir.Type, ir.Value], ir.Value]:
    def build(result: ir.Type, value: ir.Value) -> ir.Value:
        return ir.Operation.create(name, results=[result], operands=[value]).result

    return build


def _binary(name: str) -> Callable[[ir.Value, ir.Value], ir.Value]:
    def build(left: ir.Value, right: ir.Value) -> ir.Value:
        return ir.Operation.create(name, results=[left.type], operands=[left, right]).result

    return build


BUILDERS: dict[str, Callable[..., ir.Value]] = {
    "constant": constant,
    "cmpi": cmpi,
    "select": select,
    **{
        name: _binary(f"arith.{name}")
        for name in (
            "addi", "andi", "maxsi", "minsi", "muli", "ori", "shli", "shrui", "subi", "xori",
        )
    },
    **{name: _converting(f"arith.{name}") for name in ("bitcast", "extui", "index_cast", "trunci")},
}  # fmt: skip
