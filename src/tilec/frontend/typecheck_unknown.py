"""What to say of a function or method that there is not: how it is written here, if known."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.diagnostics import CompileError
from tilec.frontend import ast, typed
from tilec.frontend.checker import Checker
from tilec.frontend.functions_elsewhere import FUNCTIONS, MODULES
from tilec.frontend.names_elsewhere import TENSORS
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.frontend.ways import Use as ForeignUse
from tilec.frontend.ways import Way, of_signature
from tilec.ops import operations
from tilec.ops.call import Form, GenericValue, Operation, Receiver
from tilec.source import Span
from tilec.types import ELEMENTS, PartType, TensorType, TileType, Type


def unknown_method(
    checker: Checker,
    name: ast.Name,
    whole: Span,
    receiver: typed.Expression,
    operands: Sequence[Span],
    generics: tuple[GenericValue, ...] | None,
) -> CompileError:
    """E0203: a receiver of this type has no such method; `operands` are the arguments behind it."""
    type_ = checker.inference.resolve_type(receiver.type)
    help = _method_help(checker, name, whole, receiver.span, type_, operands, generics)
    return refusal(
        "E0203", f"`{type_}` has no method `{name.text}`", name.span, "not found", help=help
    )


def _method_help(
    checker: Checker,
    name: ast.Name,
    whole: Span,
    receiver: Span,
    type_: Type,
    operands: Sequence[Span],
    generics: tuple[GenericValue, ...] | None,
) -> str | None:
    if name.text in ("rev", "step_by"):
        return f"a range stands in parentheses: `(a..b).{name.text}(…)`"
    first, kind = _as_tile(checker.text(receiver), type_)
    if kind is not Receiver.TILE and name.text in TENSORS:
        return ForeignUse(()).text(TENSORS[name.text])
    is_memory = kind in (Receiver.TENSOR, Receiver.PART)
    if is_memory and _found(name.text, Form.METHOD, Receiver.TILE):
        rest = checker.text(Span(whole.file, receiver.end, whole.end))
        return f"read a tile first: `{first}{rest}`" if _is_short(rest) else None
    texts = (first, *(checker.text(span) for span in operands))
    use = ForeignUse(texts, _axis(generics), _shape(type_), _is_integer(type_))
    if name.text in FUNCTIONS:
        return use.text(FUNCTIONS[name.text])
    return _elsewhere(name.text, use, Form.METHOD) or did_you_mean(
        name.text, operations.names(Form.METHOD, kind)
    )


def _as_tile(text: str, type_: Type) -> tuple[str, Receiver]:
    """How a tile is had of a value, and what kind of receiver the value is."""
    match type_:
        case TensorType():
            return f"{text}.load::<{', '.join('…' * type_.rank)}>([…])", Receiver.TENSOR
        case PartType():
            return f"{text}.load()", Receiver.PART
        case TileType():
            return text, Receiver.TILE
    return text, Receiver.TUPLE


def is_foreign_function(name: str) -> bool:
    """Whether a function that nothing here has is one of another system."""
    return name in FUNCTIONS


def unknown_function(checker: Checker, node: ast.Call) -> CompileError:
    """E0201: nothing has this name as a function."""
    name = node.function.segments[-1].name
    use = _use_of(checker, node.arguments)
    known = {*operations.names(Form.FUNCTION, None), *checker.module.names()}
    help = _function_help(name.text, use) or did_you_mean(name.text, known)
    return refusal(
        "E0201", f"unknown function `{name.text}`", name.span, "not found in this scope", help=help
    )


def unknown_maker(name: ast.Name) -> CompileError:
    """E0201: `Tile::<…>` has no function of this name."""
    help = did_you_mean(name.text, operations.names(Form.TILE, None))
    if name.text in FUNCTIONS and FUNCTIONS[name.text].code is None:
        help = FUNCTIONS[name.text].note
    return refusal(
        "E0201", f"unknown function `{name.text}`", name.span, "not found in this scope", help=help
    )


def function_of_module(checker: Checker, node: ast.MethodCall) -> CompileError | None:
    """E0201 for `tl.exp(x)`, where the name of another system stands before a dot."""
    match node.receiver:
        case ast.Path(segments=(ast.Segment(name=owner, arguments=None),)):
            if owner.text not in MODULES or not _is_unknown(checker, owner.text):
                return None
            use = _use_of(checker, node.arguments)
            return _of_module(owner, _in_this_kernel(checker, node.method.text, use))
    return None


def _in_this_kernel(checker: Checker, name: str, use: ForeignUse) -> str | None:
    if name in ("program_id", "num_programs") and checker.kernel.has_parts:
        return "ask the part: `part.id(axis)`"
    return _function_help(name, use)


def function_of_path(checker: Checker, node: ast.Call) -> CompileError | None:
    """E0201 for `std::cmp::max(a, b)` and `f32::max(a, b)`."""
    owner, function = node.function.segments[0].name, node.function.segments[-1].name
    if owner.text not in MODULES and owner.text not in ELEMENTS:
        return None
    if not _is_unknown(checker, owner.text):
        return None
    help = _function_help(function.text, _use_of(checker, node.arguments))
    if owner.text in ELEMENTS:
        help = help or "what works on numbers are methods: `x.exp()`"
        return refusal("E0203", f"`{owner.text}` has no functions", node.function.span, help=help)
    return _of_module(owner, help)


def _of_module(owner: ast.Name, help: str | None) -> CompileError:
    help = help or "what works on tiles are methods, as `t.exp()`"
    return refusal(
        "E0201", f"unknown name `{owner.text}`", owner.span, "not found in this scope", help=help
    )


def _is_unknown(checker: Checker, name: str) -> bool:
    is_item = checker.module.find(name) is not None or name in checker.module.missing
    return not (checker.scope.has(name) or is_item or name in checker.environment.generics)


# ---- what a use is like --------------------------------------------------------------------------


def _use_of(checker: Checker, arguments: tuple[ast.Expression, ...]) -> ForeignUse:
    operands = tuple(checker.text(argument.span) for argument in arguments)
    type_ = _type_of(checker, arguments)
    return ForeignUse(operands, shape=_shape(type_), is_integer=_is_integer(type_))


def _type_of(checker: Checker, arguments: tuple[ast.Expression, ...]) -> Type | None:
    """The type of the first operand, if it is a variable."""
    match arguments:
        case (ast.Path(segments=(ast.Segment(name=name),)), *_):
            local = checker.scope.find(name.text)
            if local is not None and local.type is not None:
                return checker.inference.resolve_type(local.type)
    return None


def _is_integer(type_: Type | None) -> bool:
    return isinstance(type_, TileType) and type_.element.is_integer


def _shape(type_: Type | None) -> tuple[object, ...] | None:
    match type_:
        case TileType(element=element, shape=shape) if shape:
            return element, *shape
    return None


def _axis(generics: tuple[GenericValue, ...] | None) -> str | None:
    match generics:
        case (int() as axis,) if not isinstance(axis, bool):
            return str(axis) if axis >= 0 else f"{{{axis}}}"
    return None


def _is_short(text: str) -> bool:
    return len(text) <= 40 and "\n" not in text


# ---- operations of the language in another form --------------------------------------------------


def _function_help(name: str, use: ForeignUse) -> str | None:
    if name in ELEMENTS and name != "bool":
        return use.text(Way(f"{{0}}.to::<{name}>()"))
    return use.text(FUNCTIONS[name]) if name in FUNCTIONS else _elsewhere(name, use, Form.FUNCTION)


def _elsewhere(name: str, use: ForeignUse, form: Form) -> str | None:
    """How an operation of this name is written, if there is one in another form."""
    for found in _others(name, len(use.operands)):
        if form is Form.METHOD and found.receiver is Receiver.TILE:
            return f"write `{found.signature}`"
        if found.form is Form.METHOD and found.receiver is not Receiver.TILE:
            return f"write `{found.signature}`"
        if found.form is not form or form is Form.FUNCTION:
            return use.text(Way(of_signature(found.signature, use.operands)))
    return None


def _others(name: str, operands: int) -> list[Operation]:
    """What has the name, in any form; what takes as many operands first."""
    places = [(Form.METHOD, Receiver.TILE), (Form.FUNCTION, None), (Form.TILE, None)]
    places += [(Form.METHOD, receiver) for receiver in Receiver if receiver is not Receiver.TILE]
    found = [one for form, receiver in places for one in _found(name, form, receiver)]
    return sorted(found, key=lambda one: _operands_of(one) != operands)


def _found(name: str, form: Form, receiver: Receiver | None) -> list[Operation]:
    both = (operations.lookup(name, form, receiver, turbofish) for turbofish in (False, True))
    return list(dict.fromkeys(one for one in both if one is not None))


def _operands_of(operation: Operation) -> int:
    """How many operands a signature shows, its receiver and an axis included."""
    inside = operation.signature.partition("(")[2].rstrip(")")
    behind = len(inside.split(",")) if inside else 0
    return behind + (operation.form is Form.METHOD) + ("AXIS" in operation.signature)
