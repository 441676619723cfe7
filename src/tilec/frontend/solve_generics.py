"""Values for the generics of a helper, from the turbofish and the types of its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.diagnostics import Label
from tilec.frontend import ast, typed
from tilec.frontend.bindings import Binding, Constant, Environment
from tilec.frontend.checker import Checker
from tilec.frontend.constants import binding_of, fitted
from tilec.frontend.generics import bound_value, const_element, is_dim
from tilec.frontend.modules import Module
from tilec.frontend.refusal import refusal
from tilec.frontend.typecheck_operations import generic_values
from tilec.source import Span
from tilec.types import (
    USIZE,
    ArrayType,
    Dim,
    Element,
    ElementLike,
    Extent,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
)


@dataclass
class Solution:
    """Values for the generics of a helper; `extents` are those of its `Dim`s to the caller."""

    bindings: dict[str, Binding] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)


def solve_generics(
    checker: Checker,
    node: ast.Call,
    module: Module,
    function: ast.Function,
    arguments: tuple[typed.Expression, ...],
) -> Solution:
    solution = Solution(dict(from_turbofish(checker, node, function) or {}))
    matcher = _Matcher(checker, module, function, solution)
    pairs = list(zip(function.parameters, arguments, strict=True))
    # What is known first, so that a literal takes its type from the other arguments.
    for final in (False, True):
        for parameter, argument in pairs:
            matcher.match(parameter.type, argument.type, argument.span, final)
    missing = [g for g in function.generics if g.name.text not in solution.bindings]
    if missing:
        listed = ", ".join(f"`{g.name.text}`" for g in missing)
        raise refusal(
            "E0701",
            f"no argument of `{function.name.text}` gives a value to {listed}",
            node.span,
            "",
            *(Label(g.span, "has no value") for g in missing),
            help=f"write `{function.name.text}::<…>(…)`",
        )
    return solution


def from_turbofish(
    checker: Checker, node: ast.Call, function: ast.Function
) -> dict[str, Element | Constant] | None:
    """Type and const generics in order, as written; `Dim`s are never written. None if there is no
    turbofish.

    Raises:   CompileError E02xx
    """
    written = node.function.segments[0].arguments
    if written is None:
        return None
    values, spans = generic_values(checker, written)
    assert values is not None, "a turbofish was written"
    generics = [g for g in function.generics if not is_dim(g)]
    if len(values) != len(generics):
        raise refusal(
            "E0203",
            f"`{function.name.text}` has {len(generics)} type and const generics",
            node.function.span,
            f"got {len(values)}",
            Label(function.name.span, "defined here"),
            notes=("a `Dim` is not written: tensors bind it",),
        )
    found: dict[str, Element | Constant] = {}
    for generic, value, span in zip(generics, values, spans, strict=True):
        if not isinstance(value, Element) and generic.const_type is not None:
            element = const_element(generic)
            found[generic.name.text] = fitted(Constant(value), element, span)
        else:
            constant = value if isinstance(value, Element) else Constant(value)
            found[generic.name.text] = bound_value(generic, constant, span)
    return found


class _Matcher:
    """Reads values of generics off the types of arguments. What disagrees is found later."""

    def __init__(
        self, checker: Checker, module: Module, function: ast.Function, solution: Solution
    ) -> None:
        self._checker = checker
        self._module = module
        self._generics = {g.name.text: g for g in function.generics}
        self._solution = solution

    def match(self, node: ast.TypeNode, actual: Type, span: Span, final: bool) -> None:
        match node, actual:
            case ast.ReferenceType(target=target), (TensorType() | PartType()):
                self.match(target, actual, span, final)
            case ast.PathType(
                name=ast.Name(text="Atomic"), arguments=(ast.PathType() as target,)
            ), TensorType():
                self.match(target, actual, span, final)
            case ast.PathType(arguments=()), TileType(shape=()):
                self._element(node, actual.element, span, final)
            case ast.PathType(arguments=(element, *extents)), TileType():
                self._element(element, actual.element, span, final)
                self._extents(extents, actual.shape, span)
            case ast.PathType(name=ast.Name(text="Tensor"), arguments=(element, *extents)), (
                TensorType()
            ):
                self._element(element, actual.element, span, final)
                self._extents(extents, actual.extents, span)
            case ast.PathType(
                name=ast.Name(text="Part"),
                arguments=(ast.ReferenceType(target=target), *extents),
            ), PartType():
                self.match(target, actual.tensor, span, final)
                self._extents(extents, actual.block, span)
            case ast.TupleTypeNode(items=nodes), TupleType(items=items):
                for item_node, item in zip(nodes, items, strict=False):
                    self.match(item_node, item, span, final)
            case ast.ArrayTypeNode(item=item_node, length=length), ArrayType():
                self.match(item_node, actual.item, span, final)
                self._extents([ast.ConstArgument(length.span, length)], (actual.length,), span)

    def _unbound(self, node: ast.GenericArgument) -> ast.GenericParameter | None:
        match node:
            case ast.PathType(name=ast.Name(text=name), arguments=()):
                pass
            case ast.ConstArgument(value=ast.Path(segments=(ast.Segment(name=inner),))):
                name = inner.text
            case _:
                return None
        generic = self._generics.get(name)
        return None if generic is None or name in self._solution.bindings else generic

    def _element(
        self, node: ast.GenericArgument, actual: ElementLike, span: Span, final: bool
    ) -> None:
        inference = self._checker.inference
        known = inference.resolve(actual)
        generic = self._unbound(node)
        if not isinstance(known, Element):
            self._literal(node, known, final)
            known = inference.known(actual)
            if not final:
                return
        if generic is not None and generic.const_type is None and not is_dim(generic):
            value = bound_value(generic, known, span)
            self._solution.bindings[generic.name.text] = value

    def _literal(self, node: ast.GenericArgument, variable: ElementLike, final: bool) -> None:
        """A literal takes the type of its parameter, if that is known."""
        if not isinstance(node, ast.PathType) or not final:
            return
        environment = Environment(self._module, self._solution.bindings)
        element = binding_of(node.name, environment)
        if isinstance(element, Element):
            self._checker.inference.unify(variable, element)

    def _extents(
        self, nodes: list[ast.GenericArgument], extents: tuple[Extent, ...], span: Span
    ) -> None:
        for node, extent in zip(nodes, extents, strict=False):
            generic = self._unbound(node)
            if generic is None:
                continue
            name = generic.name.text
            if is_dim(generic):
                self._solution.extents[name] = extent
                binding = Constant(extent, USIZE) if isinstance(extent, int) else Dim(name)
                self._solution.bindings[name] = binding
            elif generic.const_type is not None and isinstance(extent, int):
                value = bound_value(generic, Constant(extent), span)
                self._solution.bindings[name] = value
