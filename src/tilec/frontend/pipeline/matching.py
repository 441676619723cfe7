"""Whether what a call gives fits the parameters of a kernel or pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from tilec.diagnostics import CompileError, Label
from tilec.frontend.inference import ElementInference
from tilec.frontend.pipeline.extents import certainly_differ, shown
from tilec.frontend.pipeline.kernels import Parameter
from tilec.frontend.pipeline.trace import Given, Size, Tensor, View
from tilec.frontend.refusal import refusal
from tilec.integers.polynomial import number
from tilec.ops.conversions import conversion
from tilec.types import Dim, Element, ElementLike, Own, PartType, TensorType, TileType


def own_of(parameter: Parameter) -> str | None:
    """How a parameter is owned, as manifests say it; None of a scalar."""
    match parameter.type:
        case PartType():
            return "part"
        case TensorType(own=own):
            return own.value
    return None


def tensor_of(parameter: Parameter) -> TensorType | None:
    """The tensor that a parameter is, or is a part of."""
    match parameter.type:
        case PartType(tensor=tensor) | (TensorType() as tensor):
            return tensor
    return None


@dataclass
class Fit:
    """How arguments fit parameters: the first reason why not, and what the `Dim`s are."""

    dims: dict[Dim, Size] = field(default_factory=dict)
    fault: CompileError | None = None
    position: int = 0  # of the argument at fault


def fit(
    parameters: Sequence[Parameter], arguments: Sequence[Given], inference: ElementInference
) -> Fit:
    """Checks types, ranks and what is known of extents; changes nothing."""
    found = Fit()
    places: dict[Dim, Given] = {}
    for position, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        try:
            _kinds(parameter, argument, inference)
            for fault in _extents(parameter, argument, found.dims, places):
                raise fault
        except CompileError as error:
            return Fit(found.dims, error, position)
    return found


def _kinds(parameter: Parameter, argument: Given, inference: ElementInference) -> None:
    tensor = tensor_of(parameter)
    here = Label(parameter.span, "declared here")
    expected, got = f"expected `{parameter.type}`", f"got `{_shown(argument, inference)}`"
    if (tensor is None) != (argument.view is None):
        raise refusal("E0203", "mismatched types", argument.span, f"{expected}, {got}", here)
    if tensor is None or argument.view is None:
        assert argument.scalar is not None and isinstance(argument.scalar.type, TileType)
        assert isinstance(parameter.type, TileType), "what is no tensor is a scalar"
        element = inference.resolve(argument.scalar.type.element)
        wanted = parameter.type.element
        if isinstance(element, Element):
            agrees = element == wanted
        else:
            agrees = (
                isinstance(wanted, Element)
                and element.is_float == wanted.is_float
                and (wanted.is_float or wanted.is_integer)
            )
        if not agrees:
            message = f"argument `{parameter.name}`: element types differ"
            help = _converted(element, wanted)
            raise refusal("E0202", message, argument.span, f"{expected}, {got}", here, help=help)
        return
    view = argument.view
    if view.tensor.element != tensor.element:
        message = f"argument `{parameter.name}`: element types differ"
        raise refusal("E0202", message, argument.span, f"{expected}, {got}", here)
    if len(view.axes) != tensor.rank:
        message = f"argument `{parameter.name}`: ranks of tensors differ"
        raise refusal("E0303", message, argument.span, f"{expected}, {got}", here)


def _converted(actual: ElementLike, wanted: ElementLike) -> str | None:
    """What to write for a scalar of another type; launchers convert no floats."""
    is_literal = not isinstance(actual, Element)
    if is_literal or (actual.is_integer and wanted.is_integer):
        return conversion(actual, wanted, is_scalar=True)
    return None


def _shown(argument: Given, inference: ElementInference) -> str:
    if argument.view is not None:
        return str(argument.view)
    assert argument.scalar is not None, "a tensor or a scalar"
    return str(inference.resolve_type(argument.scalar.type))


def _extents(
    parameter: Parameter, argument: Given, dims: dict[Dim, Size], places: dict[Dim, Given]
) -> Iterator[CompileError]:
    tensor = tensor_of(parameter)
    if tensor is None or argument.view is None:
        return
    pairs = enumerate(zip(tensor.extents, argument.view.extents, strict=True))
    for axis, (extent, size) in pairs:
        if isinstance(extent, Dim):
            wanted = dims.setdefault(extent, size).form
            place = places.setdefault(extent, argument)
            other = Label(place.span, f"`{extent}` is `{shown(wanted)}` by this")
        else:
            wanted = number(extent)
            other = Label(parameter.span, "declared here")
        if certainly_differ(wanted, size.form):
            yield refusal(
                "E0301",
                f"argument `{parameter.name}`: extents of tensors differ",
                argument.span,
                f"axis {axis}: expected `{shown(wanted)}`, got `{shown(size.form)}`",
                other,
            )


# ---- ownership -----------------------------------------------------------------------------------


def check_lending(parameter: Parameter, argument: Given, callee: str) -> None:
    """That a tensor may be used as the parameter uses it. Raises CompileError E0402, E0503."""
    view, own = argument.view, own_of(parameter)
    if view is None or own is None:
        return
    declared = Label(view.tensor.span, "declared here")
    name = view.tensor.written
    taken = Label(parameter.span, f"as `{callee}` takes it")
    if own != "atomic" and view.held is Own.ATOMIC:
        raise refusal(
            "E0503",
            "an atomic tensor is used as a plain one",
            argument.span,
            f"expected `{parameter.type}`, got `{view}`",
            taken,
            help=f"take `{name}` as `&mut Tensor<…>`: it can be lent to be updated atomically, too",
        )
    if own == "shared" or view.held in (Own.MUT, Own.ATOMIC):
        return
    is_temporary = view.tensor.own is None
    raise refusal(
        "E0402",
        f"`{name}` is written through a shared borrow",
        argument.span,
        "lent here, to be written",
        taken,
        declared,
        help=f"lend it to be written: `&mut {name}`"
        if is_temporary
        else f"take `{name}` as `&mut Tensor<…>`",
    )


def check_exclusive(
    parameters: Sequence[Parameter], arguments: Sequence[Given], what: str = "launch"
) -> None:
    """That what a launch, or a call, writes is given to it once. Raises CompileError E0802."""
    used: dict[Tensor, list[tuple[Parameter, Given, View]]] = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        if argument.view is not None:
            used.setdefault(argument.view.tensor, []).append((parameter, argument, argument.view))
    for tensor, uses in used.items():
        for (first, earlier, _), (second, later, _) in combinations(uses, 2):
            if own_of(first) == "shared" and own_of(second) == "shared":
                continue
            raise refusal(
                "E0802",
                f"`{tensor.written}` is borrowed both mutably and otherwise in one {what}",
                later.span,
                f"{_use(second)} as `{second.name}`",
                Label(earlier.span, f"{_use(first)} as `{first.name}`"),
                help="write to another tensor: `let mut t = Tensor::<…>::uninit();`",
            )


def _use(parameter: Parameter) -> str:
    own = own_of(parameter)
    return {"shared": "read", "atomic": "updated"}.get(own or "", "written")
