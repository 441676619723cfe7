"""Traced pipelines → what plans are made of: scalars and extents become what launchers evaluate.

Each value is emitted as kernels' are, into a function that is thrown away, and read back by the
rules of its operations (`OpRules.host`): a pipeline computes as kernels and their launchers do.
Needs a current context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlir import ir
from mlir.dialects import func

from tilec.artifact import signature
from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.expression import (
    Expression,
    TooLarge,
    divides_by_zero,
    evaluate,
    is_conversion,
    is_too_deep,
    names_in,
    text_of,
)
from tilec.artifact.pipeline import Argument, Temporary
from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import emit_control, emit_loops, typed  # noqa: F401  (register their rules)
from tilec.frontend.emit import Slot
from tilec.frontend.emitter import Emitter
from tilec.frontend.pipeline.trace import (
    Frame,
    Launch,
    Passed,
    PipelineInstance,
    Required,
    Scalar,
    Tensor,
)
from tilec.integers.polynomial import number
from tilec.ir.places import location_of, span_of
from tilec.ir.types import tile_type
from tilec.ops.host_expression import as_unsigned
from tilec.ops.registry import rules
from tilec.pipelines.traced import Given, Traced, TracedLaunch, TracedTemporary
from tilec.recursion import deep_recursion
from tilec.source import SourceFile, Span
from tilec.types import Dim, Element, Kind, Own, TensorType, TileType

# Units: operations and operands of one expression.
LARGEST = 1000


class NoValueError(Exception):
    """A scalar that no launcher computes."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def traced(
    instance: PipelineInstance, sources: Mapping[str, SourceFile]
) -> tuple[Traced | None, list[Diagnostic]]:
    """The pipeline in launchers' terms; None, and what is wrong, if they cannot compute it."""
    with deep_recursion(), location_of(instance.span, sources[instance.span.file]):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function, slots = _function(instance)
        values = _Values(instance, sources, function, slots)
        with ir.InsertionPoint(function.regions[0].blocks[0]):
            try:
                return _traced(instance, sources, values), []
            except NoValueError as error:
                return None, [error.diagnostic]


def _function(instance: PipelineInstance) -> tuple[ir.OpView, list[Slot]]:
    slots = [
        Slot("scalar", local.name, tile_type(local.type), local.span, element=local.type.element)
        for local in instance.parameters
        if isinstance(local.type, TileType) and isinstance(local.type.element, Element)
    ]
    index = ir.IndexType.get()
    slots += [Slot("extent", dim.name, index, instance.span) for dim in instance.dims]
    function = func.FuncOp("scalars", ([slot.type for slot in slots], []))
    function.arg_attrs = [slot.attribute() for slot in slots]
    function.add_entry_block()
    return function, slots


@dataclass(eq=False)
class _Values:
    """The expressions of scalars, each made once."""

    instance: PipelineInstance
    sources: Mapping[str, SourceFile]
    function: ir.OpView
    slots: list[Slot]
    _emitters: dict[Frame, Emitter] = field(default_factory=dict)
    _known: dict[ir.Value, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arguments = dict(zip((s.name for s in self.slots), self._arguments(), strict=True))
        dims = {dim: arguments[dim.name] for dim in self.instance.dims}
        frame = self.instance.frame
        emitter = Emitter(frame.inference, self.sources, dims)
        for local in self.instance.parameters:
            if isinstance(local.type, TileType):
                emitter.values[local] = arguments[local.name]
        self._emitters[frame] = emitter

    def _arguments(self) -> list[ir.Value]:
        return list(self.function.regions[0].blocks[0].arguments)

    def expression(self, scalar: Scalar, element: Element | None = None) -> Expression:
        """What a launcher computes; for an unsigned element type the unsigned number.

        Raises:   NoValueError
        """
        try:
            return _total(self.with_divisions(scalar, element))
        except TooLarge:
            raise NoValueError(_too_large(scalar.value.span)) from None

    def with_divisions(self, scalar: Scalar, element: Element | None = None) -> Expression:
        """As `expression`, with the divisions by 0 that are in it.

        Raises:   NoValueError
        """
        too_large = NoValueError(_refused(scalar.value.span, "this takes too many operations"))
        try:
            value = self._emitted(scalar)
            found = self._host(value, scalar.value.span)
        except RecursionError:  # variables of loops are made of those of the turn before
            raise too_large from None
        if element is not None and element.kind is Kind.UNSIGNED:
            found = as_unsigned(value.type, found)
        if _size_of(found) > LARGEST or is_too_deep(found):
            raise too_large
        return found

    def _emitted(self, scalar: Scalar) -> ir.Value:
        frame = scalar.frame
        if frame not in self._emitters:
            self._emitters[frame] = Emitter(frame.inference, self.sources, {})
        emitter = self._emitters[frame]
        for node in typed.below(scalar.value, typed.Expression):
            match node:
                case typed.Read(local=local) if local not in emitter.values:
                    emitter.values[local] = self._emitted(frame.values[local])
                case typed.DimValue(dim=dim) if dim not in emitter.dims:
                    emitter.dims[dim] = self._emitted(frame.dims[dim])
        return emitter.scalar(scalar.value)

    def _host(self, value: ir.Value, span: Span) -> Expression:
        """As `host_expression`, shared parts read once and numbers computed."""
        if value in self._known:
            return self._known[value]
        if isinstance(value.owner, ir.Block):
            op = value.owner.owner.opview
            found = rules()[op.operation.name].argument_host(op, value)
        else:
            op = value.owner.opview
            found = rules()[op.operation.name].host(
                op, value.result_number, lambda operand: self._host(operand, span)
            )
        if found is None:
            place = span_of(op.location, dict(self.sources)) or span
            is_in = place.file == span.file and span.start <= place.start and place.end <= span.end
            needed = () if is_in else (Label(span, "this is made of it"),)
            raise NoValueError(_refused(place, "a launcher cannot compute this", *needed))
        self._known[value] = _computed(found)
        return self._known[value]


def _computed(expression: Expression) -> Expression:
    """What is left to compute, its operands being computed as far as they are known."""
    match expression:
        case ("and", bool(first), second):
            return second if first else False
        case ("or", bool(first), second):
            return True if first else second
        case ("select", bool(first), yes, no):
            return yes if first else no
        case tuple() if not any(isinstance(operand, str | tuple) for operand in expression[1:]):
            # What launchers refuse is left to be seen: a `requires!` that divides by zero, and what
            # is too large.
            try:
                return expression if divides_by_zero(expression) else evaluate(expression, {})
            except TooLarge:
                return expression
    return expression


def _total(expression: Expression) -> Expression:
    """The same number, where `x / 0` is one too."""
    if not isinstance(expression, tuple):
        return expression
    if not any(names_in(expression)):
        return evaluate(expression, {})
    match expression:
        case (str(conversion), (str(inner), *operands)) if is_conversion(conversion):
            return (conversion, (inner, *map(_total, operands)))
    name, *operands = expression
    return (name, *map(_total, operands))


def _size_of(expression: Expression) -> int:
    """The operations and operands, counted up to a little above LARGEST."""
    count, waiting = 0, [expression]
    while waiting and count <= LARGEST:
        one = waiting.pop()
        count += 1
        if isinstance(one, tuple):
            waiting += one[1:]
    return count


def _never_holds(required: Required, why: str) -> Diagnostic:
    around = (Label(span, "in the pipeline that is called here") for span in required.calls)
    labels = Label(required.span, why), *around
    return Diagnostic("E0805", "a precondition of a pipeline is never met", labels)


def _refused(span: Span, text: str, *others: Label) -> Diagnostic:
    return Diagnostic(
        "E0804",
        "a pipeline computes with extents, scalar parameters and constants",
        (Label(span, text), *others),
        notes=("launchers compute with integers; floats they pass on and compare",),
        help="compute it in a kernel",
    )


def _too_large(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0804",
        "a pipeline computes with numbers of 64 bits",
        (Label(span, "this is too large"),),
        notes=("nothing is launched where a `usize` would wrap",),
    )


# ---- the pipeline --------------------------------------------------------------------------------


def _traced(
    instance: PipelineInstance, sources: Mapping[str, SourceFile], values: _Values
) -> Traced:
    return Traced(
        name=instance.name,
        symbol=instance.symbol,
        generics=tuple(_generic(name, value) for name, value in instance.generics),
        documentation=instance.documentation,
        span=instance.span,
        line=_line(instance.span, sources),
        parameters=tuple(map(_parameter, instance.parameters)),
        places=tuple(local.span for local in instance.parameters),
        dims=tuple(dim.name for dim in instance.dims),
        requires=tuple(_requirements(instance, sources, values)),
        temporaries=tuple(_temporary(tensor, values) for tensor in instance.temporaries),
        launches=tuple(_launch(launch, sources, values) for launch in instance.launches),
    )


def _line(span: Span, sources: Mapping[str, SourceFile]) -> int:
    return sources[span.file].position(span.start)[0] + 1


def _generic(name: str, value: object) -> signature.Generic:
    if isinstance(value, Element):
        return signature.Generic(name, "type", value.name)
    assert isinstance(value, bool | int | float), "a const generic"
    return signature.Generic(name, "const", value)


def _parameter(local: typed.Local) -> signature.Parameter:
    match local.type:
        case TensorType(element=element, extents=extents, own=own):
            sizes = tuple(e.name if isinstance(e, Dim) else e for e in extents)
            return signature.Parameter(local.name, "tensor", element.name, sizes, _OWN[own])
        case TileType(element=Element() as element):
            return signature.Parameter(local.name, "scalar", element.name)
    raise AssertionError(f"no parameter is of type {local.type}")


_OWN: dict[Own, signature.Own] = {
    Own.SHARED: "shared", Own.MUT: "mut", Own.ATOMIC: "atomic"
}  # fmt: skip


def _requirements(
    instance: PipelineInstance, sources: Mapping[str, SourceFile], values: _Values
) -> list[signature.Requirement]:
    found = []
    for required in instance.requires:
        expression = values.with_divisions(required.condition)
        if divides_by_zero(expression):
            raise NoValueError(_never_holds(required, "this divides by zero"))
        if not any(names_in(expression)):
            try:
                does_hold = evaluate(expression, {})
            except TooLarge:
                raise NoValueError(_never_holds(required, "this is too large to compute")) from None
            if not does_hold:
                raise NoValueError(_never_holds(required, "this is false"))
            continue  # it holds, whatever the arguments
        text = text_of(expression) if required.text is None else required.text
        line = _line(required.span, sources)
        found.append(signature.Requirement(text, expression, line))
    return list(dict.fromkeys(found))


def _temporary(tensor: Tensor, values: _Values) -> TracedTemporary:
    extents = tuple(values.expression(size.scalar) for size in tensor.extents)
    size = number(ELEMENT_BYTES[tensor.element.name])
    for extent in tensor.extents:
        size = size * extent.form
    made = Temporary(tensor.name, tensor.element.name, extents, slot=0)
    return TracedTemporary(made, tensor.written, tensor.span, size.terms)


def _launch(launch: Launch, sources: Mapping[str, SourceFile], values: _Values) -> TracedLaunch:
    return TracedLaunch(
        kernel=launch.kernel,
        instances=launch.instances,
        given=tuple(_given(one, values) for one in launch.arguments),
        span=launch.span,
        file=Path(launch.span.file).name,
        line=_line(launch.span, sources),
        calls=launch.calls,
    )


def _given(passed: Passed, values: _Values) -> Given:
    if passed.view is None:
        assert passed.scalar is not None, "a tensor or a scalar"
        value = values.expression(passed.scalar, passed.element)
        return Given(Argument(passed.parameter, value=value), None, passed.span)
    view = passed.view
    axes = () if view.axes == tuple(range(len(view.axes))) else view.axes
    argument = Argument(passed.parameter, view.tensor.name, axes)
    return Given(argument, passed.own, passed.span)
