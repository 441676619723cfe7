"""Which operations the programs use on which element types, and which they could."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from tests.ops.one_use import Literals
from tests.programs.cases import names, text_of
from tilec.diagnostics.diagnostic import CompileError
from tilec.frontend import typed
from tilec.frontend.check import check_program
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.ops.call import Argument, Call, Form, GenericValue, Operation, Receiver
from tilec.ops.operations import all_operations
from tilec.source import SourceFile, Span
from tilec.types import (
    BOOL,
    ELEMENTS,
    I32,
    USIZE,
    Element,
    Own,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
)

Covered = tuple[Operation, str]  # an element type by its name

# What operations answer to uses that no program can have: the parser and the look-up by receiver
# see to it that there are as many operands as an operator has.
_NEVER_WRITTEN = (AssertionError, IndexError, ValueError)

# A list of indices.
_INDEX = TupleType((TileType(USIZE), TileType(USIZE)))
_MANY = TupleType((TileType(I32, (16,)), TileType(I32, (16,))))


def used() -> set[Covered]:
    """What the programs use, on each of its types; and once on the type of no name, if at all."""
    found: set[Covered] = set()
    for name in names():
        program, _ = load_program(SourceFile(f"{name}.tile", text_of(name)), parse)
        instances, faults = check_program(program)
        assert not faults, f"{name}: {faults}"
        for instance in instances:
            for body in (instance, *instance.helpers):
                assert body.body is not None
                for use in _operations(body.body):
                    found |= {(use.operation, element) for element in ("", *_elements(use, body))}
    return found


def _operations(node: typed.Node) -> Iterator[typed.Operate]:
    if isinstance(node, typed.Operate):
        yield node
    for child in typed.children(node):
        yield from _operations(child)


def _elements(
    use: typed.Operate, body: typed.KernelInstance | typed.FunctionInstance
) -> Iterator[str]:
    """Of the arguments, and where there are none, of the result."""
    types = [argument.type for argument in use.arguments]
    if types and isinstance(types[0], TupleType):  # tiles that are combined together
        types[:1] = types[0].items
    for kind in types or [use.type]:
        if isinstance(kind, TileType | TensorType | PartType):
            yield str(body.inference.resolve(kind.element))


def usable() -> dict[Operation, set[str]]:
    """Of each operation, the element types of which its own rule takes an argument."""
    return {
        operation: {name for name, element in ELEMENTS.items() if _takes(operation, element)}
        for operation in all_operations()
    }


def _takes(operation: Operation, element: Element) -> bool:
    """Whether some use is accepted; all that operations take is tried, not each by its own rule."""
    uses = product(_arguments(operation, element), _generics(element), (None, _first))
    for arguments, generics, closure in uses:
        if operation.turbofish is not None and operation.turbofish != (generics is not None):
            continue
        try:
            _check(operation, arguments, generics, closure)
        except (CompileError, *_NEVER_WRITTEN):
            continue
        return True
    return False


def _first(types: tuple[Type, ...]) -> Type:
    """The type of a combiner's body."""
    return types[0] if len(types) <= 2 else TupleType(types[: len(types) // 2])


def _check(
    operation: Operation,
    arguments: Sequence[Type],
    generics: tuple[GenericValue, ...] | None,
    closure: Callable[[tuple[Type, ...]], Type] | None,
) -> None:
    place = Span("use.tile", 0, 1)
    call = Call(
        operation.name,
        place,
        place,
        tuple(Argument(kind, place, constant=0) for kind in arguments),
        Literals(),
        generics,
        (place,) * len(generics or ()),
        closure,
        in_unsafe=True,
    )
    operation.result_type(call)


def _arguments(operation: Operation, element: Element) -> Iterator[list[Type]]:
    own: list[Type] = [TileType(element, (16, 16))]
    scalar: Type = TileType(element)
    if operation.receiver is Receiver.TENSOR:
        for rank, write in product((2,), (Own.SHARED, Own.MUT, Own.ATOMIC)):
            tensor = TensorType(element, (64,) * rank, write)
            part = _part(element)
            values = ([], own, [scalar], [scalar, scalar], [part])
            for index in ([], [_INDEX], [_MANY]):
                yield from ([tensor, *index, *more] for more in values)
        return
    if operation.receiver is Receiver.PART:
        part = _part(element)
        yield from ([part, *more] for more in ([], own, [TileType(USIZE)], [_INDEX]))
        return
    if operation.receiver is Receiver.TUPLE:
        yield [TupleType(tuple(own * 2)), TupleType((scalar, scalar))]
        return
    if operation.form is Form.TILE:
        yield from ([], [scalar])
        return
    square = own * 3
    one: list[Type] = [TileType(element, (1, 16))]
    yield from ([], square[:1], square[:2], square, [scalar], [scalar] * 2, one)
    yield [TileType(element, (1, 1))]
    yield [*own, _INDEX]
    yield [*own, scalar]
    yield [*own, TileType(I32, (16, 16))]
    yield [TileType(BOOL, (16, 16)), *square[:2]]
    yield [*square[:2], TileType(ELEMENTS["f32"], (16, 16))]


def _generics(element: Element) -> Iterator[tuple[GenericValue, ...] | None]:
    yield None
    yield from ((0,), (1,), (1, 0), (16, 16), (256,), (element, 16), (element, 16, 16), (16, 1))
    yield from ((element,), (ELEMENTS["f32"],))


def _part(element: Element) -> PartType:
    return PartType(TensorType(element, (64, 64), Own.MUT), (16, 16))
