"""E0404: the parts of one kernel have the same grid.

A part of extents E cut in blocks B has ceil(E/B) tiles along each axis; grids are compared axis by
axis, padded with 1 at the end, as functions of the extents, under `requires!`.

Algorithm:
1. Axes with the same extent and block, or equal constants, are equal.
2. Else the set of extents at which they differ is asked of isl; it is empty, or its least point is
   the witness in the message. Preconditions that are not affine are left out, so that a pair that
   only they make equal is refused.

    refused                                       accepted
    Part<…N…, 256>, Part<…N…, 512>                Part<…M, N…, 1, 64>, Part<…M…, 1>, 0 < N <= 64
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from mlir import ir

from tilec.artifact.abi import COUNT_LIMIT
from tilec.checks.affine import Affine, NotAffineError, affine, condition
from tilec.checks.places import Sources, name_of, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.walk import functions, operations
from tilec.ops.host_expression import NoHostExpressionError, host_expression
from tilec.ops.registry import rules
from tilec.ops.rules import HostExpression

if TYPE_CHECKING:
    import islpy

PASS = "tile-verify-grids"
INLINED = False


def check_grids(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0404 for each part whose grid is not that of the kernel's first part."""
    for function in functions(module):
        kernel = _Kernel(function)
        if len(kernel.parts) < 2:
            continue
        first, *others = kernel.parts
        for other in others:
            found = next(_differences(kernel, first, other), None)
            if found is not None:
                yield _finding(first, other, found, sources)


@dataclass(frozen=True, eq=False)
class _Part:
    op: ir.OpView
    extents: tuple[HostExpression, ...]
    block: tuple[int, ...]

    @property
    def counts(self) -> tuple[HostExpression, ...]:
        """The number of tiles along each axis."""
        pairs = zip(self.extents, self.block, strict=True)
        return tuple(_count(extent, block) for extent, block in pairs)


def _count(extent: HostExpression, block: int) -> HostExpression:
    if isinstance(extent, int):
        return -(-extent // block)
    return extent if block == 1 else ("ceildiv", extent, block)


class _Kernel:
    """The parts of a function, its extents and scalars by name, and its preconditions."""

    def __init__(self, function: ir.OpView) -> None:
        arguments = list(function.regions[0].blocks[0].arguments)
        self.names: dict[ir.Value, str] = {}
        self.extents: list[str] = []
        for argument, slot in zip(arguments, _slots(function), strict=False):
            kind, name = (ir.StringAttr(slot[key]).value for key in ("kind", "name"))
            if kind in ("extent", "scalar"):
                self.names[argument] = name
            if kind == "extent":
                self.extents.append(name)
        ops = list(operations(function))
        self.parts = [self._part(op) for op in ops if op.operation.name == "tile.part"]
        stated = (rules()[op.operation.name].precondition(op) for op in ops)
        self.assumed = [one.condition for one in stated if one is not None]

    def _part(self, op: ir.OpView) -> _Part:
        view = op.operands[0].owner
        dynamic = iter(view.operands[1:])
        unknown = ir.ShapedType.get_dynamic_size()
        sizes = ir.DenseI64ArrayAttr(view.attributes["static_sizes"])
        extents = tuple(self.names[next(dynamic)] if s == unknown else int(s) for s in sizes)
        block = tuple(ir.IntegerAttr(b).value for b in ir.ArrayAttr(op.attributes["block"]))
        return _Part(op, extents, block)

    def preconditions(self, variables: Mapping[str, Affine]) -> Iterator[str]:
        """Each precondition that is affine, in isl's text."""
        for assumed in self.assumed:
            try:
                yield condition(host_expression(assumed), variables)
            except (NoHostExpressionError, NotAffineError):
                continue


def _slots(function: ir.OpView) -> Iterator[ir.DictAttr]:
    if "arg_attrs" not in function.attributes:
        return
    for entries in map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"])):
        if "tile.slot" in entries:
            yield ir.DictAttr(entries["tile.slot"])


@dataclass(frozen=True)
class _Difference:
    """Where two grids differ; `point` is the extents of a witness and `counts` what is there."""

    axis: int
    point: tuple[tuple[str, int], ...]
    counts: tuple[int, int]


def _differences(kernel: _Kernel, first: _Part, other: _Part) -> Iterator[_Difference]:
    pairs = zip_longest(first.counts, other.counts, fillvalue=1)
    for axis, (left, right) in enumerate(pairs):
        if left == right:
            continue
        found = _witness(kernel, axis, left, right)
        if found is not None:
            yield found


def _witness(
    kernel: _Kernel, axis: int, left: HostExpression, right: HostExpression
) -> _Difference | None:
    import islpy  # loaded only by kernels whose parts differ as they are written

    names = list(kernel.names.values())
    variables = {
        name: Affine(f"v{number}", name in kernel.extents) for number, name in enumerate(names)
    }
    listed = ", ".join(variables[name].text for name in names)
    sides = [affine(side, variables).text for side in (left, right)]
    facts = [f"{sides[0]} != {sides[1]}", *kernel.preconditions(variables)]
    # Rather a witness that is not empty.
    for least in (1, 0):
        bounds = [f"{least} <= {variables[n].text} <= {COUNT_LIMIT}" for n in kernel.extents]
        text = f"{{ [{listed}] : {' and '.join([*bounds, *facts])} }}"
        differing = islpy.Set(text)
        if not differing.is_empty():
            return _least(differing, kernel, axis, left, right)
    return None


def _least(
    differing: islpy.Set, kernel: _Kernel, axis: int, left: HostExpression, right: HostExpression
) -> _Difference:
    """The least point of a set, extents first, in the terms of the two counts."""
    import islpy

    names = list(kernel.names.values())
    scalars = [number for number, name in enumerate(names) if name not in kernel.extents]
    # A scalar may have no least value.
    for number in reversed(scalars):
        differing = differing.project_out(islpy.dim_type.set, number, 1)
    point = differing.lexmin().sample_point()
    values = {
        name: int(point.get_coordinate_val(islpy.dim_type.set, number).to_python())
        for number, name in enumerate(kernel.extents)
    }
    used = [name for name in kernel.extents if name in (*_names(left), *_names(right))]
    return _Difference(
        axis, tuple((n, values[n]) for n in used), (_at(left, values), _at(right, values))
    )


def _names(count: HostExpression) -> tuple[str, ...]:
    match count:
        case str():
            return (count,)
        case ("ceildiv", str(name), _):
            return (name,)
    return ()


def _at(count: HostExpression, values: Mapping[str, int]) -> int:
    match count:
        case int():
            return count
        case str():
            return values[count]
        case ("ceildiv", str(name), int(block)):
            return -(-values[name] // block)
    raise AssertionError(f"{count} is no number of tiles")


def _finding(first: _Part, other: _Part, found: _Difference, sources: Sources) -> Diagnostic:
    here, there = place_of(other.op, sources), place_of(first.op, sources)
    names = name_of(first.op.results[0], sources), name_of(other.op.results[0], sources)
    at = ", ".join(f"{name} = {value}" for name, value in found.point)
    axis = f"along axis {found.axis}"
    text = f"{axis}{f', at {at}' if at else ''}: {found.counts[0]} and {found.counts[1]} tiles"
    return Diagnostic(
        "E0404",
        f"{names[0]} and {names[1]} have different grids",
        (
            Label(here, f"cut in {_shown(other.block)}"),
            Label(there, f"cut in {_shown(first.block)}"),
        ),
        notes=(text,),
        help="cut them in as many parts, or state in `requires!` what makes the grids agree",
    )


def _shown(block: tuple[int, ...]) -> str:
    return " × ".join(map(str, block)) if block else "one"
