"""Extents as polynomials, so that those that certainly differ are told from those that may not.

Arithmetic over `Dim`s is exact (docs/language.md, "Indices"). What is no sum or product is an
unknown of its own, and equal where it is made of equals in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from tilec.artifact.abi import COUNT_LIMIT
from tilec.frontend import typed
from tilec.integers.polynomial import Polynomial, Unknown, number, variable
from tilec.ops.call import Form
from tilec.types import USIZE, ElementLike, ElementVariable, TileType

_WIDEST = 1 << 63

# What grows beyond, in loops that multiply, is an unknown like what is no sum or product: terms of
# a polynomial, factors of a term, bits of a coefficient.
_MOST_TERMS, _MOST_FACTORS, _MOST_BITS = 64, 16, 256
_LONGEST = 80  # characters of an operand in a message


class Extents:
    """The unknowns of one pipeline: its `Dim`s and scalars by name, and what is made of them."""

    def __init__(self) -> None:
        self._known: dict[object, Unknown] = {}

    def named(self, name: str, *, is_dim: bool) -> Polynomial:
        """A `Dim` or a scalar parameter of the outermost pipeline."""
        low, high = (0, COUNT_LIMIT) if is_dim else (-_WIDEST, _WIDEST)
        return self._unknown(("named", name), name, low, high)

    def form_of(
        self, value: typed.Expression, read: Callable[[typed.Expression], Polynomial | None]
    ) -> Polynomial:
        """The polynomial of a value; `read` knows variables and `Dim`s."""
        match value:
            case typed.Literal(value=constant) if isinstance(constant, int):
                return number(int(constant))
            case typed.DimValue() | typed.Read():
                known = read(value)
                return self._opaque(value, "?") if known is None else known
            case typed.Operate(arguments=arguments):
                operands = [self.form_of(argument, read) for argument in arguments]
                return self._combined(value, operands)
        return self._opaque(value, "?")

    def _combined(self, value: typed.Operate, operands: list[Polynomial]) -> Polynomial:
        is_exact = isinstance(value.type, TileType) and self._is_exact(value.type.element)
        if is_exact and value.operation.form is Form.OPERATOR and len(operands) == 2:
            left, right = operands
            if value.name == "+" and _is_small_sum(left, right):
                return left + right
            if value.name == "-" and _is_small_sum(left, right):
                return left - right
            if value.name == "*" and _is_small_product(left, right):
                return left * right
        generics = tuple(map(str, value.generics or ()))
        shown_operands = ", ".join(map(_shown_briefly, operands))
        key = (value.name, generics, *(form.terms for form in operands))
        return self._opaque(key, f"{value.name}({shown_operands})")

    @staticmethod
    def _is_exact(element: ElementLike) -> bool:
        return element == USIZE or isinstance(element, ElementVariable)

    def _opaque(self, key: object, shown: str) -> Polynomial:
        return self._unknown(key, shown, -_WIDEST, _WIDEST)

    def _unknown(self, key: object, name: str, low: int, high: int) -> Polynomial:
        if key not in self._known:
            self._known[key] = Unknown(name, low, high, len(self._known))
        return variable(self._known[key])


def _is_small_sum(left: Polynomial, right: Polynomial) -> bool:
    return (
        len(left.terms) + len(right.terms) <= _MOST_TERMS
        and max(_bits_in(left), _bits_in(right)) < _MOST_BITS
    )


def _is_small_product(left: Polynomial, right: Polynomial) -> bool:
    return (
        len(left.terms) * len(right.terms) <= _MOST_TERMS
        and _factors_in(left) + _factors_in(right) <= _MOST_FACTORS
        and _bits_in(left) + _bits_in(right) <= _MOST_BITS
    )


def _factors_in(form: Polynomial) -> int:
    return max((len(monomial) for monomial, _ in form.terms), default=0)


def _bits_in(form: Polynomial) -> int:
    return max((coefficient.bit_length() for _, coefficient in form.terms), default=0)


def shown(form: Polynomial) -> str:
    """An extent as messages print it: `N * 2 + 1`."""
    texts: list[str] = []
    for monomial, coefficient in sorted(form.terms, key=lambda term: -len(term[0])):
        factors = [str(unknown) for unknown in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        texts += [sign, " * ".join(factors)]
    if not texts:
        return "0"
    return " ".join(texts[1:]) if texts[0] == "+" else texts[0] + " ".join(texts[1:])


def _shown_briefly(form: Polynomial) -> str:
    text = shown(form)
    return text if len(text) <= _LONGEST else "…"


def certainly_differ(left: Polynomial, right: Polynomial) -> bool:
    """Whether no launch has the two equal."""
    low, high = (left - right).interval
    return low > 0 or high < 0
