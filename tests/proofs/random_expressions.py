"""Random scalar expressions of index arithmetic, as source text that type-checks.

Mostly affine in program ids and loop variables, and everything beside it that proofs must not trip
over: divisions, clamps, casts that wrap, variables that are assigned in branches.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Variable:
    name: str
    type: str  # usize, i32, u8
    weight: int = 2
    is_mutable: bool = False
    below: str | None = None  # an extent that it is always below, from 0 on


@dataclass
class Expressions:
    """What can be said with the variables in scope; `dims` are always in scope."""

    random: random.Random
    dims: tuple[str, ...]
    helper: str | None = None  # a function of two `usize`s
    scope: list[Variable] = field(default_factory=list)
    frozen: set[str] = field(default_factory=set)  # mutable variables that loops count with

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    @contextmanager
    def block(self, *variables: Variable):
        """A scope: what is declared in it ends with it."""
        kept = len(self.scope)
        self.scope += variables
        yield
        del self.scope[kept:]

    def index(self) -> str:
        """A component of an index list, of any integer type."""
        kind = self.random.choices(("usize", "i32", "u8"), (12, 2, 1))[0]
        return self.of(kind, self.random.choice((0, 0, 1, 1, 1, 2, 2, 3)))

    def of(self, kind: str, depth: int) -> str:
        """An expression of a type, nested as deep as `depth`."""
        if depth <= 0:
            return self.leaf(kind)
        return getattr(self, f"_{kind}")(depth)

    def condition(self, depth: int = 1) -> str:
        if depth > 0 and self.chance(0.3):
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            word = self.random.choice(("&&", "||"))
            return f"({left}) {word} ({right})"
        if self.chance(0.1):
            return f"!({self.condition(0)})"
        kind = self.random.choices(("usize", "i32"), (5, 2))[0]
        left = self.of(kind, self.random.choice((0, 0, 1)))
        if self.chance(0.3):
            # A remainder is what guards on indices are mostly about.
            return f"{left} % {self.random.randint(2, 3)} == {self.random.randint(0, 2)}"
        right = self.constant() if self.chance(0.4) else self.of(kind, 0)
        return f"({left}) {self.random.choice(COMPARISONS)} ({right})"

    def condition_of_launch(self) -> str:
        """A condition over extents (and scalars) alone."""
        choices: list[Callable[[], str]] = [
            lambda: f"{self.dim()} % {self.random.choice((2, 3, 4))} == 0",
            lambda: f"{self.dim()} <= {self.random.choice((2, 4, 8))}",
            lambda: f"{self.dim()} >= {self.random.randint(1, 2)}",
            lambda: f"{self.dim()} <= {self.dim()} * {self.random.randint(1, 2)}",
            lambda: f"{self.dim()} == {self.dim()}",
        ]
        scalars = [v for v in self.scope if v.name in ("s", "t")]
        if scalars:
            scalar = self.random.choice(scalars)
            choices += [
                lambda: f"{scalar.name} >= 0",
                lambda: f"{scalar.name} >= 0 && {scalar.name} < {self.random.randint(2, 4)}",
                lambda: f"{scalar.name} < ({self.dim()} as {scalar.type})",
            ]
        return self.random.choice(choices)()

    def dim(self) -> str:
        return self.random.choice(self.dims)

    def constant(self, low: int = 0, high: int = 4) -> str:
        return str(self.random.randint(low, high))

    def leaf(self, kind: str) -> str:
        """A variable, or something as short that is not a bare literal."""
        known = [v for v in self.scope if v.type == kind]
        if kind == "usize" and self.chance(0.12):
            return self.dim()
        if known and not self.chance(0.1):
            return self.random.choices(known, [v.weight for v in known])[0].name
        if kind == "usize":
            return self.constant() + "usize"
        return f"({self.leaf('usize')} as {kind})"

    def below(self, extent: str) -> list[str]:
        """The variables that stay inside of an extent."""
        return [v.name for v in self.scope if v.below == extent]

    def assignable(self) -> Variable | None:
        """A variable that may be assigned here."""
        found = [v for v in self.scope if v.is_mutable and v.name not in self.frozen]
        return self.random.choice(found) if found else None

    def _usize(self, depth: int) -> str:
        a = self.of("usize", depth - 1)
        c = self.random.randint(1, 4)
        choices: list[tuple[int, Callable[[], str]]] = [
            (8, lambda: f"({a} + {c})"),
            (6, lambda: f"({a} - {c})"),
            (8, lambda: f"({a} * {self.random.choice((2, 2, 3, 4, 8))})"),
            (6, lambda: f"({a} + {self.of('usize', depth - 1)})"),
            (4, lambda: f"({a} - {self.of('usize', depth - 1)})"),
            (1, lambda: f"({a} * {self.dim()})"),
            (2, lambda: f"({c} - {a})"),
            (4, lambda: f"({a} / {c})"),
            (4, lambda: f"({a} % {c})"),
            (2, lambda: f"({a} / {self.dim()})"),
            (2, lambda: f"({a} % {self.dim()})"),
            (2, lambda: f"{_receiver(a)}.min({self.of('usize', 0)})"),
            (2, lambda: f"{_receiver(a)}.max({self.of('usize', 0)})"),
            (1, lambda: f"{_receiver(a)}.min({c})"),
            (1, lambda: f"{_receiver(a)}.max({c})"),
            (2, lambda: f"{_receiver(a)}.clamp(0, {self.dim()} - 1)"),
            (1, lambda: f"{_receiver(a)}.clamp({c - 2}, {c + 1})"),
            (1, lambda: f"{_receiver(a)}.div_ceil({c})"),
            (1, lambda: f"{_receiver(a)}.rem_euclid({c})"),
            (1, lambda: f"({a} << 1)"),
            (1, lambda: f"({a} >> 1)"),
            (1, lambda: f"({a} & {self.random.choice((1, 3))})"),
            (3, lambda: f"({self.of('i32', depth - 1)} as usize)"),
            (1, lambda: f"({self.of('u8', depth - 1)} as usize)"),
            (2, lambda: self._chosen("usize", depth)),
        ]
        if self.helper is not None:
            choices.append((3, lambda: f"{self.helper}({a}, {self.of('usize', 0)})"))
        return self._pick(choices)

    def _i32(self, depth: int) -> str:
        a = self.of("i32", depth - 1)
        c = self.random.randint(1, 4)
        return self._pick(
            [
                (4, lambda: f"({a} + {c})"),
                (4, lambda: f"({a} - {c})"),
                (4, lambda: f"({a} * {self.random.choice((2, 3))})"),
                # These wrap, for the second from small numbers on.
                (1, lambda: f"({a} * 1073741824)"),
                (1, lambda: f"({a} + 2147483646)"),
                (3, lambda: f"({a} + {self.of('i32', 0)})"),
                (2, lambda: f"({a} / {c})"),
                (2, lambda: f"({a} % {c})"),
                (1, lambda: f"{_receiver(a)}.min({self.of('i32', 0)})"),
                (1, lambda: f"{_receiver(a)}.max({c - 2})"),
                (1, lambda: f"{_receiver(a)}.clamp({-c}, {c})"),
                (1, lambda: f"(-{a})"),
                (1, lambda: f"({a} >> 1)"),
                (3, lambda: f"({self.of('usize', depth - 1)} as i32)"),
                (1, lambda: self._chosen("i32", depth)),
            ]
        )

    def _u8(self, depth: int) -> str:
        a = self.of("u8", depth - 1)
        return self._pick(
            [
                (2, lambda: f"({a} + {self.random.choice((1, 3, 254))})"),
                (2, lambda: f"({a} * {self.random.choice((2, 17, 85))})"),
                (1, lambda: f"({a} - {self.random.randint(1, 3)})"),
                (1, lambda: f"({a} / {self.random.randint(1, 3)})"),
                (1, lambda: f"({a} >> 1)"),
                (1, lambda: f"{_receiver(a)}.min({self.random.choice((3, 130))})"),
            ]
        )

    def _chosen(self, kind: str, depth: int) -> str:
        left, right = self.of(kind, depth - 1), self.of(kind, 0)
        return f"(if {self.condition(0)} {{ {left} }} else {{ {right} }})"

    def _pick(self, choices: list[tuple[int, Callable[[], str]]]) -> str:
        weights = [weight for weight, _ in choices]
        return self.random.choices([make for _, make in choices], weights)[0]()


def _receiver(text: str) -> str:
    """The text as what a method may be called on."""
    return text if text.isidentifier() or (text[0] == "(" and text[-1] == ")") else f"({text})"


def enclosed(text: str) -> str:
    """The text as an operand."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"
