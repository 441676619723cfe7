"""E0402: nothing is written through a shared borrow.

Shared are tensors that the kernel takes as `&`, what a helper takes as `&` (`tile.lent`), and what
is lent as `&` (`tile.borrow`). Written is what an operation says that it writes, what is lent
mutably, and a part that is given away, since its new owner may write it.

Why it is sound: what an operation writes is in its declaration; a view of a view, and what a helper
gives back of what it was lent, is as its origin. So a write whose view has no shared ancestor is of
a part, or of a `&mut` tensor.

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
from tilec.ir.views import BORROW, CALL, Views, is_view
from tilec.ir.walk import functions, operand_group, operations

PASS = "tile-verify-ownership"
INLINED = False


def check_writes(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0402 for each write, or mutable loan, through a shared borrow."""
    views = Views(module)
    for function in functions(module):
        lent = _lent_shared(function)
        for op in operations(function):
            for view in _written(op):
                shared = [v for v in views.ancestors(view) if v in lent or _is_shared(v)]
                if shared:
                    yield _refused(op, shared[-1], sources)


def _written(op: ir.OpView) -> list[ir.Value]:
    """The views that an operation writes, or lends or gives away to be written."""
    name = op.operation.name
    if name == BORROW:
        return list(op.operands) if ir.BoolAttr(op.attributes["mutable"]).value else []
    if name == CALL:
        return [view for view in op.operands if is_view(view) and _is_given_away(view)]
    declaration = declarations().get(name)
    if declaration is None:
        return []
    return [
        view
        for written in declaration.writes
        for view in operand_group(op, declaration.operands, written)
        if is_view(view)
    ]


def _is_given_away(argument: ir.Value) -> bool:
    """Whether a view is passed to a helper as its own: a part, and not lent."""
    if view_facts(argument.type).own != "part":
        return False
    return isinstance(argument.owner, ir.Block) or argument.owner.name != BORROW


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


def _is_shared(view: ir.Value) -> bool:
    if view_facts(view.type).own == "shared":
        return True
    if isinstance(view.owner, ir.Block) or view.owner.name != BORROW:
        return False
    return not ir.BoolAttr(view.owner.attributes["mutable"]).value


# ---- what is said --------------------------------------------------------------------------------


def _refused(op: ir.OpView, shared: ir.Value, sources: Sources) -> Diagnostic:
    labels = [Label(place_of(op, sources), _done(op))]
    borrowed = place_of_value(shared, sources)
    if borrowed is not None:
        labels.append(Label(borrowed, "borrowed to be read"))
    return Diagnostic(
        "E0402",
        f"{name_of(shared, sources)} is written through a shared borrow",
        tuple(labels),
        help=_way_out(shared),
    )


def _done(op: ir.OpView) -> str:
    texts = {BORROW: "lent to be written", CALL: "given away here, to be written"}
    return texts.get(op.operation.name, "written here")


def _way_out(shared: ir.Value) -> str:
    """What to write where it was borrowed."""
    if not isinstance(shared.owner, ir.Block) and shared.owner.name == BORROW:
        return "lend it to be written: `&mut …`, to a helper that takes `&mut`"
    match view_facts(shared.type).own:
        case "part":
            return "take it as `&mut Part<…>`"
        case "mut":
            return "take it as `&mut Tensor<…>`"
    return "take it as a `Part<&mut Tensor<…>, …>`"
