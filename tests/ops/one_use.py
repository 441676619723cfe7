"""One use of an operation: checked, emitted alone in a function, verified, executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir
from mlir.passmanager import PassManager

from tilec.diagnostics.diagnostic import CompileError, Diagnostic
from tilec.interpret.machine import Machine, code_of
from tilec.ir.dialect import context
from tilec.ir.types import part_type, tensor_type, tile_type
from tilec.ops.call import Argument, Call, Emission, Form, GenericValue, Operation, Receiver
from tilec.ops.formats import dtype_of
from tilec.ops.operations import lookup
from tilec.source import Span
from tilec.types import (
    F32,
    I32,
    ArrayType,
    Element,
    ElementLike,
    ElementVariable,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
)


class Literals:
    """The simplest inference: variables are bound once, by what they meet first."""

    def __init__(self) -> None:
        self.known: dict[ElementVariable, ElementLike] = {}

    def resolve(self, element: ElementLike) -> ElementLike:
        while isinstance(element, ElementVariable) and element in self.known:
            element = self.known[element]
        return element

    def unify(self, left: ElementLike, right: ElementLike) -> bool:
        left, right = self.resolve(left), self.resolve(right)
        if isinstance(right, ElementVariable):
            left, right = right, left
        if not isinstance(left, ElementVariable):
            return left == right
        fits = left.is_float == right.is_float and left.is_integer == right.is_integer
        if fits and left != right:
            self.known[left] = right
        return fits

    def final(self, kind: Type) -> Type:
        """The type with every literal's element decided."""
        match kind:
            case TileType(element, shape):
                found = self.resolve(element)
                if isinstance(found, ElementVariable):
                    found = F32 if found.is_float else I32
                return TileType(found, shape)
            case TupleType(items):
                return TupleType(tuple(map(self.final, items)))
            case ArrayType(item, length):
                final = self.final(item)
                assert isinstance(final, TileType)
                return ArrayType(final, length)
        return kind


class Use:
    """A use as the front end would make it; places are characters of an imaginary line."""

    def __init__(
        self,
        name: str,
        *types: Type,
        generics: Sequence[GenericValue] | None = None,
        form: Form = Form.METHOD,
        receiver: Receiver | None = None,
        closure: Callable[[tuple[Type, ...]], Type] | None = None,
        body: Callable[[tuple[Any, ...]], Any] | None = None,
        in_unsafe: bool = False,
        constants: Sequence[GenericValue | None] = (),
    ) -> None:
        if form is Form.METHOD and receiver is None:
            receiver = Receiver.TILE
        found = lookup(name, form, receiver, generics is not None)
        assert found is not None, f"no operation `{name}`"
        self.operation: Operation = found
        self.inference = Literals()
        self.types = types
        self.body = body
        known = [*constants, *[None] * (len(types) - len(constants))]
        arguments = [
            Argument(kind, Span("t", 10 * i, 10 * i + 5), constant)
            for i, (kind, constant) in enumerate(zip(types, known, strict=True))
        ]
        start = 6 if form is Form.METHOD else -1
        count = len(generics or ())
        self.call = Call(
            name=name,
            span=Span("t", 0, 99),
            name_span=Span("t", start, start + 1),
            arguments=tuple(arguments),
            inference=self.inference,
            generics=None if generics is None else tuple(generics),
            generic_spans=tuple(Span("t", 200 + i, 201 + i) for i in range(count)),
            closure=closure,
            in_unsafe=in_unsafe,
        )

    def type(self) -> Type:
        return self.inference.final(self.operation.result_type(self.call))

    def refusal(self) -> Diagnostic:
        """The one diagnostic that the type rule raises."""
        try:
            got = self.operation.result_type(self.call)
        except CompileError as error:
            [diagnostic] = error.diagnostics
            return diagnostic
        raise AssertionError(f"accepted, as `{got}`")

    def emit(self, operands: Sequence[Any]) -> Any:
        result = self.type()
        return self.operation.emit(
            Emission(
                name=self.call.name,
                types=tuple(map(self.inference.final, self.types)),
                operands=tuple(operands),
                result=result,
                generics=self.call.generics,
                closure=self.body,
                in_unsafe=self.call.in_unsafe,
            )
        )

    def run(self, *values: Any) -> Any:
        """The result for these arguments (arrays or numbers; tuples for index lists)."""
        self.type()
        types = [self.inference.final(kind) for kind in self.types]
        with context():
            module = ir.Module.create()
            flat = [leaf for kind in types for leaf in _leaves(kind)]
            mlir_types = [_mlir(leaf) for leaf in flat]
            results: list[Any] = []
            with ir.InsertionPoint(module.body):
                function = ir.Operation.create(
                    "func.func",
                    regions=1,
                    attributes={
                        "sym_name": ir.StringAttr.get("use"),
                        "function_type": ir.TypeAttr.get(ir.FunctionType.get(mlir_types, [])),
                    },
                )
            block = function.regions[0].blocks.append(*mlir_types)
            with ir.InsertionPoint(block):
                rest = iter(block.arguments)
                got = self.emit([_grouped(kind, rest) for kind in types])
                results = list(got) if isinstance(got, tuple) else [got]
                ir.Operation.create("func.return", operands=results)
            kinds = ir.TypeAttr.get(ir.FunctionType.get(mlir_types, [r.type for r in results]))
            function.attributes["function_type"] = kinds
            assert module.operation.verify()
            with np.errstate(all="ignore"):
                arguments = [
                    _datum(leaf, value)
                    for leaf, value in zip(flat, _flat_values(values), strict=True)
                ]
                found = Machine(code_of(function.opview)).run(block, arguments)
                PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
                again = Machine(code_of(function.opview)).run(block, arguments)
            _expect_same(found, again)
        return found if isinstance(got, tuple) else found[0]


def _expect_same(found: Sequence[Any], again: Sequence[Any]) -> None:
    """MLIR's own simplifications keep the meaning."""
    for one, other in zip(found, again, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes() or np.isnan(one.astype(float)).any()


def _leaves(kind: Type) -> list[Type]:
    match kind:
        case TupleType(items):
            return [leaf for item in items for leaf in _leaves(item)]
        case ArrayType(item, length):
            return [item] * length
    return [kind]


def _grouped(kind: Type, rest: Any) -> Any:
    if isinstance(kind, (TupleType, ArrayType)):
        return tuple(next(rest) for _ in _leaves(kind))
    return next(rest)


def _mlir(kind: Type) -> ir.Type:
    match kind:
        case TileType():
            return tile_type(kind)
        case TensorType():
            return tensor_type(kind)
        case PartType():
            return part_type(kind)
    raise AssertionError(f"no argument is a {kind}")


def _flat_values(values: Sequence[Any]) -> list[Any]:
    return [x for v in values for x in (v if isinstance(v, tuple) else (v,))]


def _datum(kind: Type, value: Any) -> Any:
    if not isinstance(kind, TileType):
        return value
    wanted = dtype_of(tile_type(kind))
    array = np.asarray(value)
    if array.dtype.kind == "u" and array.dtype.itemsize == wanted.itemsize:
        array = array.view(f"i{wanted.itemsize}")
    array = array.astype(wanted)
    return np.broadcast_to(array, kind.shape) if kind.shape and not array.ndim else array


def tile(element: Element, *shape: int) -> TileType:
    return TileType(element, shape)


def run(name: str, *values: tuple[TileType, Any], generics: Any = None, **rest: Any) -> Any:
    """Check, emit and run: `run("exp", (tile(F32, 4), x))`."""
    return Use(name, *(kind for kind, _ in values), generics=generics, **rest).run(
        *(value for _, value in values)
    )
