"""A kernel of the IR as the manifest describes it: what callers pass, what must hold, the grid.

Reads the IR as the front end emitted it, helpers inlined and before MLIR's rewrites: grids and
preconditions are looked up as they were written (`tilec.ops.host_expression`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlir import ir

from tilec.artifact.manifest import Access, Slot, Touched, UnsafeUse
from tilec.artifact.signature import Coverage, Generic, Parameter, Requirement
from tilec.ir.walk import operations
from tilec.ops.facts import KnownFacts
from tilec.ops.host_expression import host_expression
from tilec.ops.registry import rules
from tilec.ops.rules import HostExpression
from tilec.proofs.account import accesses_of, coverage_of, touched_of
from tilec.proofs.proof import Proof


@dataclass(frozen=True)
class Description:
    """Everything that the manifest says of an instance before there is machine code."""

    name: str
    symbol: str
    documentation: str
    line: int
    generics: tuple[Generic, ...]
    parameters: tuple[Parameter, ...]
    dims: tuple[str, ...]
    slots: tuple[Slot, ...]
    grid: tuple[HostExpression, ...]
    requires: tuple[Requirement, ...]
    unsafe: tuple[UnsafeUse, ...]
    accesses: tuple[Access, ...]
    coverage: tuple[Coverage, ...]
    touched: tuple[Touched, ...]
    hints: dict[str, Any]


def describe(proof: Proof) -> Description:
    """The description of one kernel.

    Raises:   NoHostExpressionError if a grid or precondition depends on more than what callers pass
    """
    kernel = proof.function
    slots = tuple(slots_of(kernel))
    [block] = kernel.regions[0].blocks
    attributes = kernel.attributes
    return Description(
        name=_text(attributes["tile.name"]),
        symbol=_text(attributes["sym_name"]),
        documentation=_text(attributes["tile.doc"]),
        line=kernel.location.start_line,
        generics=generics_of(kernel),
        parameters=parameters_of(kernel),
        dims=tuple(slot.name for slot in slots if slot.kind == "extent"),
        slots=slots,
        grid=_grid(block),
        requires=requirements_of(kernel),
        # A helper that is called twice has its accesses twice, at the same places.
        unsafe=tuple(dict.fromkeys(_unsafe_uses(kernel))),
        accesses=accesses_of(proof),
        coverage=coverage_of(proof),
        touched=touched_of(proof),
        hints=dict(_items(attributes["tile.hints"])),
    )


def slots_of(kernel: ir.OpView) -> Iterator[Slot]:
    """The slots of the machine code's parameters, one a function argument."""
    for attributes in ir.ArrayAttr(kernel.attributes["arg_attrs"]):
        fields = dict(_items(ir.DictAttr(attributes)["tile.slot"]))
        yield Slot(fields["kind"], fields["name"], fields.get("element"), fields.get("axis"))


def parameters_of(kernel: ir.OpView) -> tuple[Parameter, ...]:
    """What callers pass."""
    return tuple(map(_parameter, ir.ArrayAttr(kernel.attributes["tile.parameters"])))


def _parameter(attribute: ir.Attribute) -> Parameter:
    fields = dict(_items(attribute))
    return Parameter(
        name=fields["name"],
        kind=fields["kind"],
        element=fields["element"],
        extents=tuple(fields.get("extents", ())),
        own=fields.get("own"),
        block=tuple(fields.get("block", ())),
    )


def generics_of(kernel: ir.OpView) -> tuple[Generic, ...]:
    """Types and constants of the instance."""
    items = [dict(_items(item)) for item in ir.ArrayAttr(kernel.attributes["tile.generics"])]
    return tuple(
        Generic(item["name"], "type" if isinstance(item["value"], str) else "const", item["value"])
        for item in items
    )


def _grid(block: ir.Block) -> tuple[HostExpression, ...]:
    facts = KnownFacts()
    grids = []
    for op in block.operations:
        extents = rules()[op.operation.name].host_grid(op, facts)
        if extents is not None:
            grids.append(tuple(_scaled(value, size) for value, size in extents))
    return max(grids, key=len)


def _scaled(value: ir.Value | int, size: int) -> HostExpression:
    extent = value if isinstance(value, int) else host_expression(value)
    if isinstance(extent, int):
        return -(-extent // size)
    return extent if size == 1 else ("ceildiv", extent, size)


def requirements_of(kernel: ir.OpView) -> tuple[Requirement, ...]:
    """What launchers check, in the order of the program.

    Raises:   NoHostExpressionError, as `describe` does
    """
    return tuple(_requirements(kernel))


def _requirements(kernel: ir.OpView) -> Iterator[Requirement]:
    for op in operations(kernel):
        stated = rules()[op.operation.name].precondition(op)
        if stated is not None:
            expression = host_expression(stated.condition)
            yield Requirement(stated.text, expression, op.location.start_line)


def _unsafe_uses(kernel: ir.OpView) -> Iterator[UnsafeUse]:
    for op in operations(kernel):
        if "unsafe" in op.attributes:
            what = op.operation.name.removeprefix("tile.")
            yield UnsafeUse(
                file=Path(op.location.filename).name,
                line=op.location.start_line,
                column=op.location.start_col,
                what=f"{what}_unchecked" if "unchecked" in op.attributes else what,
            )


# ---- attributes as Python values -----------------------------------------------------------------


def _text(attribute: ir.Attribute) -> str:
    return str(ir.StringAttr(attribute).value)


def _items(attribute: ir.Attribute) -> Iterator[tuple[str, Any]]:
    for named in ir.DictAttr(attribute):
        yield named.name, _value(named.attr)


def _value(attribute: ir.Attribute) -> Any:
    match attribute:
        case ir.StringAttr() | ir.FloatAttr() | ir.BoolAttr():
            return attribute.value
        case ir.IntegerAttr():
            return int(attribute.value)
        case ir.ArrayAttr():
            return tuple(map(_value, attribute))
        case ir.UnitAttr():
            return True
    raise AssertionError(f"no Python value for {attribute}")
