"""Element types of literals: variables made one by union-find, with Rust's defaults."""

from __future__ import annotations

from collections.abc import Callable

from tilec.types import (
    BOOL,
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


class ElementInference:
    """What is known of the element variables of one function; an `ops.call.Inference`.

    An integer variable never becomes a float nor the reverse. What nothing decides is `i32` or
    `f32`.
    """

    def __init__(self) -> None:
        self._links: dict[ElementVariable, ElementLike] = {}

    def resolve(self, element: ElementLike) -> ElementLike:
        """The element type, if it is known by now; else the variable that stands for its class."""
        passed: list[ElementVariable] = []
        while isinstance(element, ElementVariable) and element in self._links:
            passed.append(element)
            element = self._links[element]
        # Each is linked to the end at once: chains of variables are walked once.
        for variable in passed:
            self._links[variable] = element
        return element

    def unify(self, left: ElementLike, right: ElementLike) -> bool:
        """Make two element types one; False if they differ."""
        left, right = self.resolve(left), self.resolve(right)
        if left == right:
            return True
        if not isinstance(left, ElementVariable):
            left, right = right, left
        if not isinstance(left, ElementVariable) or not _fits(left, right):
            return False
        self._links[left] = right
        return True

    def known(self, element: ElementLike) -> Element:
        """The element type once everything was seen: the default, if nothing decided."""
        found = self.resolve(element)
        if isinstance(found, Element):
            return found
        return F32 if found.is_float else I32

    def resolve_type(self, type_: Type) -> Type:
        """The type with what is known by now of its element variables."""
        return _mapped(type_, self.resolve)

    def final_type(self, type_: Type) -> Type:
        """The type without variables."""
        return _mapped(type_, self.known)


def element_variables(type_: Type) -> list[ElementVariable]:
    """The element variables in a type."""
    found: list[ElementVariable] = []

    def note(element: ElementLike) -> ElementLike:
        if isinstance(element, ElementVariable):
            found.append(element)
        return element

    _mapped(type_, note)
    return found


def _fits(variable: ElementVariable, element: ElementLike) -> bool:
    if isinstance(element, Element) and element == BOOL:
        return False
    return variable.is_float == element.is_float


def _mapped(type_: Type, element_of: Callable[[ElementLike], ElementLike]) -> Type:
    match type_:
        case TileType():
            return TileType(element_of(type_.element), type_.shape)
        case TupleType():
            return TupleType(tuple(_mapped(item, element_of) for item in type_.items))
        case ArrayType():
            return ArrayType(TileType(element_of(type_.item.element)), type_.length)
        case TensorType() | PartType():
            return type_
