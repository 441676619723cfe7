"""E0402: nothing is written through a shared borrow.

Why it is sound: what an operation writes is in its declaration; whether a view may be written is in
its memory space, and for what was lent to a helper in the helper's `tile.lent`. A view of a view is
as its origin. So a write whose view has no shared ancestor is of a part, or of a `&mut` tensor.

    refused                                  accepted
    fn f(x: &Tensor<f32, N>) { x.store… }    fn f(z: &mut Part<…>) { z.store… }
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.checks.places import Sources, name_of, place_of, place_of_value
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.dialect import declarations
from tilec.ir.types import view_facts
from tilec.ir.views import ancestors, is_view
from tilec.ir.walk import functions, operand_group, operations

PASS = "tile-verify-ownership"
INLINED = False


def check_writes(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0402 for each write, or mutable loan, through a shared borrow."""
    for function in functions(module):
        lent = _lent_shared(function)
        for op in operations(function):
            for view in _written(op):
                shared = [v for v in ancestors(view) if _is_shared(v, lent)]
                if shared:
                    yield _refused(op, shared[-1], sources)


def _written(op: ir.OpView) -> list[ir.Value]:
    """The views that an operation writes, or lends to be written."""
    name = op.operation.name
    if name == "tile.borrow":
        return list(op.operands) if ir.BoolAttr(op.attributes["mutable"]).value else []
    declaration = declarations().get(name)
    if declaration is None:
        return []
    return [
        view
        for written in declaration.writes
        for view in operand_group(op, declaration.operands, written)
        if is_view(view)
    ]


def _lent_shared(function: ir.OpView) -> set[ir.Value]:
    arguments = function.regions[0].blocks[0].arguments
    if "arg_attrs" not in function.attributes:
        return set()
    attributes = ir.ArrayAttr(function.attributes["arg_attrs"])
    return {
        argument
        for argument, entries in zip(arguments, map(ir.DictAttr, attributes), strict=True)
        if "tile.lent" in entries and ir.StringAttr(entries["tile.lent"]).value == "shared"
    }


def _is_shared(view: ir.Value, lent: set[ir.Value]) -> bool:
    return view in lent or view_facts(view.type).own == "shared"


def _refused(op: ir.OpView, shared: ir.Value, sources: Sources) -> Diagnostic:
    lends = op.operation.name == "tile.borrow"
    labels = [Label(place_of(op, sources), "lent to be written" if lends else "written here")]
    borrowed = place_of_value(shared, sources)
    if borrowed is not None:
        labels.append(Label(borrowed, "borrowed to be read"))
    return Diagnostic(
        "E0402",
        f"{name_of(shared, sources)} is written through a shared borrow",
        tuple(labels),
        help="take it as a `Part<&mut Tensor<…>, …>`",
    )
