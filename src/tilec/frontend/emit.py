"""Typed instances → the tile dialect: one `func.func` a kernel, its helpers beside it.

A kernel's arguments are exactly the slots of its binary interface, each with `tile.slot`. Views are
made of them in the entry block. A helper is private, called by `func.call`, and stays a function
until the ownership checks have run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func, memref

from tilec.frontend import emit_control, emit_loops, typed  # noqa: F401  (register their rules)
from tilec.frontend.emitter import Emitter, flatten, mlir_types, structured
from tilec.frontend.instance_attributes import kernel_attributes
from tilec.frontend.lift_preconditions import lift_preconditions
from tilec.frontend.patterns import bound_values
from tilec.ir.places import location_of
from tilec.ir.types import DYNAMIC, base_type, part_type, tensor_type, tile_type
from tilec.ops.build import integer_list, make
from tilec.ops.call import Value
from tilec.recursion import deep_recursion
from tilec.source import SourceFile, Span
from tilec.types import Dim, Element, Own, PartType, TensorType, TileType


def emit(instances: Sequence[typed.KernelInstance], sources: Mapping[str, SourceFile]) -> ir.Module:
    """The module of these instances, verified by its own reader. Needs a current context."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body), deep_recursion():
        for instance in instances:
            _emit_kernel(instance, sources)
            for helper in instance.helpers:
                _emit_helper(helper, sources)
    return module


# ---- kernels -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """One argument of a kernel."""

    kind: str  # pointer, stride, scalar, extent
    name: str
    type: ir.Type
    span: Span
    axis: int | None = None
    element: Element | None = None

    def attribute(self) -> ir.Attribute:
        entries: dict[str, ir.Attribute] = {
            "kind": ir.StringAttr.get(self.kind),
            "name": ir.StringAttr.get(self.name),
        }
        if self.axis is not None:
            entries["axis"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.axis)
        if self.element is not None:
            entries["element"] = ir.StringAttr.get(self.element.name)
        return ir.DictAttr.get({"tile.slot": ir.DictAttr.get(entries)})


def slots_of(instance: typed.KernelInstance) -> list[Slot]:
    """The arguments of a kernel: each parameter's in source order, then one a `Dim`."""
    slots: list[Slot] = []
    index = ir.IndexType.get()
    for local in instance.parameters:
        match local.type:
            case TileType(element=Element() as element) as scalar:
                kind = tile_type(scalar)
                slots.append(Slot("scalar", local.name, kind, local.span, element=element))
                continue
            case PartType(tensor=tensor) | (TensorType() as tensor):
                pass
            case _:
                raise AssertionError(f"no parameter is of type {local.type}")
        pointer = base_type(tensor)
        slots.append(Slot("pointer", local.name, pointer, local.span, element=tensor.element))
        for axis in range(tensor.rank - 1):
            slots.append(Slot("stride", local.name, index, local.span, axis))
    return slots + [Slot("extent", dim.name, index, instance.span) for dim in instance.dims]


def _emit_kernel(instance: typed.KernelInstance, sources: Mapping[str, SourceFile]) -> None:
    slots = slots_of(instance)
    with location_of(instance.span, sources[instance.span.file]):
        function = func.FuncOp(instance.symbol, ([slot.type for slot in slots], []))
        function.arg_attrs = [slot.attribute() for slot in slots]
        for name, attribute in kernel_attributes(instance).items():
            function.attributes[name] = attribute
        places = [location_of(slot.span, sources[slot.span.file]) for slot in slots]
        entry = function.add_entry_block(places)
        with ir.InsertionPoint(entry):
            _emit_body(instance, list(entry.arguments), sources)
            func.return_([])
        lift_preconditions(function)


def _emit_body(
    instance: typed.KernelInstance,
    arguments: list[ir.Value],
    sources: Mapping[str, SourceFile],
) -> None:
    split = len(arguments) - len(instance.dims)
    dims = dict(zip(instance.dims, arguments[split:], strict=True))
    emitter = Emitter(instance.inference, sources, dims)
    rest = arguments[:split]
    for local in instance.parameters:
        with emitter.at(local.span):
            emitter.values[local] = _parameter(local, rest, dims)
    assert not rest, "every slot belongs to a parameter"
    if instance.grid is not None:
        with emitter.at(instance.span):
            extents = [emitter.scalar(extent) for extent in instance.grid]
            ir.Operation.create("tile.grid", operands=extents)
    emitter.expression(instance.body)


def _parameter(local: typed.Local, rest: list[ir.Value], dims: dict[Dim, ir.Value]) -> Value:
    """The value of a parameter, made of its slots, which are taken from `rest`."""
    match local.type:
        case TensorType() as tensor:
            return _view(tensor, rest, dims)
        case PartType() as part:
            view = _view(part.tensor, rest, dims)
            return make("tile.part", part_type(part), view, block=integer_list(part.block))
    return rest.pop(0)


def _view(tensor: TensorType, rest: list[ir.Value], dims: dict[Dim, ir.Value]) -> ir.Value:
    pointer = rest.pop(0)
    strides = [rest.pop(0) for _ in range(tensor.rank - 1)]
    dynamic = [dims[extent] for extent in tensor.extents if isinstance(extent, Dim)]
    unknown_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = [extent if isinstance(extent, int) else DYNAMIC for extent in tensor.extents]
    static_strides = [unknown_stride] * len(strides) + [1] * (tensor.rank > 0)
    return memref.ReinterpretCastOp(
        tensor_type(tensor),
        pointer,
        [],
        dynamic,
        strides,
        ir.DenseI64ArrayAttr.get([0]),
        ir.DenseI64ArrayAttr.get(sizes),
        ir.DenseI64ArrayAttr.get(static_strides),
    ).result


# ---- helpers -----------------------------------------------------------------------------------


def _emit_helper(helper: typed.FunctionInstance, sources: Mapping[str, SourceFile]) -> None:
    assert helper.body is not None, f"{helper.symbol} was checked without errors"
    types = [helper.inference.final_type(parameter.type) for parameter in helper.parameters]
    index = ir.IndexType.get()
    inputs = [[index]] * len(helper.dims) + [mlir_types(type_) for type_ in types]
    result = helper.inference.final_type(helper.result)
    with location_of(helper.span, sources[helper.span.file]):
        signature = [one for group in inputs for one in group], mlir_types(result)
        function = func.FuncOp(helper.symbol, signature, visibility="private")
        function.arg_attrs = [ir.DictAttr.get({}) for _ in helper.dims] + [
            _lent(parameter.lent)
            for parameter, type_ in zip(helper.parameters, types, strict=True)
            for _ in mlir_types(type_)
        ]
        spans = [helper.span] * len(helper.dims) + [
            parameter.pattern.span
            for parameter, type_ in zip(helper.parameters, types, strict=True)
            for _ in mlir_types(type_)
        ]
        places = [location_of(span, sources[span.file]) for span in spans]
        entry = function.add_entry_block(places)
        with ir.InsertionPoint(entry):
            rest = list(entry.arguments)
            dims = {dim: rest.pop(0) for dim in helper.dims}
            emitter = Emitter(helper.inference, sources, dims)
            for parameter, type_ in zip(helper.parameters, types, strict=True):
                value = structured(type_, rest)
                emitter.values.update(bound_values(parameter.pattern, value))
            given_back = flatten(emitter.expression(helper.body))
            with emitter.at(helper.body.tail.span if helper.body.tail else helper.span):
                func.return_(given_back)


def _lent(lent: Own | None) -> ir.Attribute:
    """`tile.lent` on an argument that is borrowed: "mut" or "shared"."""
    entries = {} if lent is None else {"tile.lent": ir.StringAttr.get(lent.value)}
    return ir.DictAttr.get(entries)
