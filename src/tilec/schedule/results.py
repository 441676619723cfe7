"""Which tiles of a kernel with roles may leave it box by box, through shared memory.

Copies by hardware go on beside the program, in no order with anything that it does: so such a tile
is all that the kernel does with its tensor, and it is stored once. It must be of the tensor itself
or of the part that the program has: where hardware cuts a copy is the tensor's end, and nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.types import is_tile
from tilec.ir.walk import argument_names, operations
from tilec.layout.boxes import box_of, narrow_box_of
from tilec.layout.swizzled import SwizzledTile
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape, ElementwiseRules


@dataclass(frozen=True)
class Result:
    """A store whose tile may leave so; `box` is the largest that a warp may have of it.

    Units:    bytes, of the whole tile
    """

    op: ir.OpView
    param: str
    box: SwizzledTile
    bytes: int


@dataclass(frozen=True)
class Stored:
    """A store as any other, and why. Units: bytes, of the whole tile."""

    op: ir.OpView
    param: str
    why: str
    bytes: int


def find_results(function: ir.OpView) -> list[Result | Stored]:
    """All stores of tiles, in program order."""
    names = argument_names(function)
    touched = list(_touched(function, names))
    found: list[Result | Stored] = []
    for op in operations(function):
        access = rules()[op.operation.name].access(op)
        if access is not None and access.tile not in list(op.results):
            found.append(_result(op, access, names, touched))
    return found


def _result(
    op: ir.OpView, access: AccessShape, names: dict[ir.Value, str], touched: list[str]
) -> Result | Stored:
    size = bit_width(ir.MemRefType(access.view.type).element_type) // 8
    param = parameter_of(access.view, names)
    box = box_of(access.shape, size)
    if box is not None and _is_turned(access.tile):
        box = narrow_box_of(access.shape, size) or box
    why = _why_not(op, access, names)
    if touched.count(param) > 1:
        why = "the kernel does more with that tensor"
    whole = size * prod(access.shape)
    if why or box is None:
        return Stored(op, param, why or "no copy takes boxes of such a tile", whole)
    return Result(op, param, box, whole)


def _why_not(op: ir.OpView, access: AccessShape, names: dict[ir.Value, str]) -> str | None:
    if not rules()[op.operation.name].is_sendable:
        return "it is no store alone"
    if _is_in_loop(op):
        return "a loop stores it"
    view = access.view
    strides, _ = ir.MemRefType(view.type).get_strides_and_offset()
    if isinstance(view.owner, ir.Block) or not strides or strides[-1] != 1:
        return "the last axis is not the contiguous one"
    maker = view.owner.opview
    if rules()[maker.operation.name].of_program:
        view = maker.operands[0]
    if isinstance(view.owner, ir.Block) or view.owner.opview.operands[0] not in names:
        return "it is a part of a part, or a view"
    return None


def _is_turned(tile: ir.Value) -> bool:
    """Whether it is transposed, and then computed element by element at most: as sums of products
    that are turned round, of which a warp has few columns."""
    while not isinstance(tile.owner, ir.Block):
        op = tile.owner.opview
        rule = rules()[op.operation.name]
        if op.operation.name == "linalg.transpose":
            *_, row, column = op.attributes["permutation"]
            return bool(row > column)
        tiles = [value for value in op.operands if is_tile(value)]
        if not isinstance(rule, ElementwiseRules) or len(tiles) != 1:
            return False
        [tile] = tiles
    return False


def _is_in_loop(op: ir.OpView) -> bool:
    around = op.operation.parent
    while around is not None and around.name != "func.func":
        if around.name in ("scf.for", "scf.while"):
            return True
        around = around.parent
    return False


def parameter_of(view: ir.Value, names: dict[ir.Value, str]) -> str:
    """The parameter that a view is of; "" where a branch or loop chooses."""
    while view not in names:
        if isinstance(view.owner, ir.Block):
            return ""
        view = view.owner.opview.operands[0]
    return names[view]


def _touched(function: ir.OpView, names: dict[ir.Value, str]) -> Iterator[str]:
    """The parameter of each operand through which an operation reads or writes a tensor."""
    for op in operations(function):
        declared = declarations().get(op.operation.name)
        if declared is None or not (declared.reads or declared.writes or declared.updates):
            continue
        for value in op.operands:
            if isinstance(value.type, ir.MemRefType):
                yield parameter_of(value, names)
