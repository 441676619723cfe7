"""What a kernel's function says of itself, for the passes and the manifest."""

from __future__ import annotations

from mlir import ir

from tilec.frontend import typed
from tilec.types import Element, PartType, TensorType, TileType, Type


def kernel_attributes(instance: typed.KernelInstance) -> dict[str, ir.Attribute]:
    """`tile.kernel`, `tile.name`, `tile.doc`, `tile.generics`, `tile.hints`, `tile.parameters`.

    And `tile.hint_places`: where each hint stands in the kernel's file, in characters.
    """
    # A dictionary attribute sorts its names; callers see generics in the order of declaration.
    generics = [
        ir.DictAttr.get({"name": ir.StringAttr.get(name), "value": _value(value)})
        for name, value in instance.generics
    ]
    hints = {name: _value(value) for name, value in instance.hints.items()}
    places = {name: _value((span.start, span.end)) for name, span in instance.hint_spans.items()}
    return {
        "tile.kernel": ir.UnitAttr.get(),
        "tile.name": ir.StringAttr.get(instance.name),
        "tile.doc": ir.StringAttr.get(instance.documentation),
        "tile.generics": ir.ArrayAttr.get(generics),
        "tile.hints": ir.DictAttr.get(hints),
        "tile.hint_places": ir.DictAttr.get(places),
        "tile.parameters": ir.ArrayAttr.get([_parameter(p) for p in instance.parameters]),
    }


def _parameter(local: typed.Local) -> ir.Attribute:
    entries = {"name": ir.StringAttr.get(local.name)}
    type_: Type | None = local.type
    match type_:
        case TileType():
            entries["kind"] = ir.StringAttr.get("scalar")
            entries["element"] = ir.StringAttr.get(str(type_.element))
        case TensorType():
            entries |= _tensor(type_, type_.own.value)
        case PartType():
            entries |= _tensor(type_.tensor, "part")
            entries["block"] = _value(type_.block)
    return ir.DictAttr.get(entries)


def _tensor(tensor: TensorType, own: str) -> dict[str, ir.Attribute]:
    extents = [
        _value(e) if isinstance(e, int) else ir.StringAttr.get(e.name) for e in tensor.extents
    ]
    return {
        "kind": ir.StringAttr.get("tensor"),
        "element": ir.StringAttr.get(tensor.element.name),
        "own": ir.StringAttr.get(own),
        "extents": ir.ArrayAttr.get(extents),
    }


def _value(value: Element | bool | int | float | tuple[int, ...]) -> ir.Attribute:
    match value:
        case Element():
            return ir.StringAttr.get(value.name)
        case bool():
            return ir.BoolAttr.get(value)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        case float():
            return ir.FloatAttr.get(ir.F64Type.get(), value)
        case tuple():
            return ir.ArrayAttr.get([_value(item) for item in value])
