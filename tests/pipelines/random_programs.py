"""Random pipelines: their text, and beside each statement what it does to arrays.

All have the same parameters, so that one may call another: outputs `y` (N), `w` (M by N) and `s`
(one element), `q` (N) that is only updated, inputs `x` (N) and `u` (M by N), a number `k`, and a
constant `C`. Names of temporaries begin with t.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np
from launched_kernels import KERNELS, Array, Kernel, Refused

Scope = ChainMap[str, Any]  # arrays and numbers by name, while a pipeline runs
Shape = tuple[str, ...]  # extents as they are written: equal where the texts are

PARAMETERS: dict[str, Shape] = {
    "y": ("N",), "w": ("M", "N"), "s": (), "q": ("N",), "x": ("N",), "u": ("M", "N")
}  # fmt: skip
CONSTANTS = (0, 2)
HEAD = """#[pipeline]
#[instance(C = 0)]
#[instance(C = 2)]
pub fn {}<M: Dim, N: Dim, const C: usize>(
    y: &mut Tensor<i32, N>, w: &mut Tensor<i32, M, N>, s: &mut Tensor<i32>,
    q: &Atomic<Tensor<i32, N>>, x: &Tensor<i32, N>, u: &Tensor<i32, M, N>, k: i32,
) {{
"""


class Number(NamedTuple):
    """A scalar: its text, and what it is where names have values."""

    text: str
    value: Callable[[Mapping[str, Any]], int]


EXTENTS = {
    one.text: one
    for one in (
        *(Number(name, lambda scope, name=name: scope[name]) for name in "NMC"),
        Number("5", lambda scope: 5),
        Number("N * 2", lambda scope: scope["N"] * 2),
        Number("N + 1", lambda scope: scope["N"] + 1),
        Number("N - 3", lambda scope: scope["N"] - 3),
        Number("N.div_ceil(16)", lambda scope: -(-scope["N"] // 16)),
    )
}
# `N` more often than others, so that much fits together.
SHAPES: tuple[Shape, ...] = (
    *[("N",)] * 5, ("M",), ("N * 2",), ("N + 1",), ("N - 3",), ("N.div_ceil(16)",), ("5",), ("C",),
    (), ("M", "N"), ("M", "N"), ("N", "M"), ("5", "M", "N"), ("M", "5", "N"), ("N * 2", "M"),
)  # fmt: skip


class Statement(NamedTuple):
    """Its lines, and what it does."""

    lines: list[str]
    run: Callable[[Scope], None]


@dataclass(frozen=True)
class Made:
    """A pipeline."""

    name: str
    text: str
    body: tuple[Statement, ...]

    def run(self, tensors: Mapping[str, Array], k: int, constant: int) -> None:
        """Do what is written, in the order in which it is written. Raises Refused."""
        numbers = {"k": k, "C": constant, "M": len(tensors["w"]), "N": len(tensors["y"])}
        execute(self.body, ChainMap({**tensors, **numbers}))


def execute(body: Sequence[Statement], scope: Scope) -> None:
    for statement in body:
        statement.run(scope)


@dataclass
class Names:
    """What is in scope where a statement is made."""

    tensors: dict[str, Shape] = field(default_factory=lambda: dict(PARAMETERS))
    numbers: list[str] = field(default_factory=lambda: ["k"])  # i32
    constants: list[str] = field(default_factory=lambda: ["C"])  # known when it is compiled
    depth: int = 0

    @property
    def temporaries(self) -> list[str]:
        return [name for name in self.tensors if name[0] == "t"]

    def inner(self) -> Names:
        return Names(dict(self.tensors), list(self.numbers), list(self.constants), self.depth + 1)


class Maker:
    """Makes one pipeline; it may call `others`."""

    def __init__(self, name: str, random: Random, others: Sequence[Made]) -> None:
        self._random, self._others, self._count = random, others, 0
        names = Names()
        body = [*self._body(names, random.randint(6, 14)), *self._seen(names)]
        lines = [f"    {line}" for statement in body for line in statement.lines]
        text = "\n".join([HEAD.format(name) + lines[0], *lines[1:], "}\n"])
        self.made = Made(name, text, tuple(body))

    def _body(self, names: Names, count: int) -> list[Statement]:
        acts = (
            *[self._declare] * 3, *[self._launch] * 4, *[self._call] * 2, self._move, self._rotate,
            self._loop, self._branch, self._block, self._let, self._assign, *[self._between] * 3,
        )  # fmt: skip
        return [made for _ in range(count) for made in self._random.choice(acts)(names)]

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _number(self, names: Names) -> Number:
        """An i32."""
        made: list[Number] = []
        for _ in range(2):
            name = self._random.choice([*names.numbers, "N", *names.constants, ""])
            if name == "":
                number = self._random.randint(0, 9)
                made.append(Number(str(number), lambda scope, number=number: number))
            elif name in names.numbers:
                made.append(Number(name, lambda scope, name=name: scope[name]))
            else:
                made.append(Number(f"({name} as i32)", lambda scope, name=name: scope[name]))
        one, other = made
        match self._random.choice("=+-*"):
            case "+":
                return wrapped(
                    f"{one.text} + {other.text}", lambda s: one.value(s) + other.value(s)
                )
            case "-":
                return wrapped(
                    f"{one.text} - {other.text}", lambda s: one.value(s) - other.value(s)
                )
            case "*":
                return wrapped(
                    f"{one.text} * {other.text}", lambda s: one.value(s) * other.value(s)
                )
        return one

    # ---- launches --------------------------------------------------------------------------------

    def _declare(self, names: Names) -> list[Statement]:
        """A temporary, and mostly a launch that gives it values."""
        again = self._random.random() < 0.1 and names.temporaries
        name = self._random.choice(names.temporaries) if again else self._new("t")
        shape = self._random.choice(SHAPES)
        names.tensors[name] = shape
        written = ", ".join(["i32", *(f"{{ {one} }}" for one in shape)])

        def run(scope: Scope) -> None:
            extents = [EXTENTS[one].value(scope) for one in shape]
            if any(extent < 0 for extent in extents):
                raise Refused
            scope[name] = scope["new"](extents)

        made = Statement([f"let mut {name} = Tensor::<{written}>::uninit();"], run)
        return [made, *self._launch(names, name)]

    def _launch(self, names: Names, target: str | None = None) -> list[Statement]:
        for _ in range(40):
            kernel = self._random.choice(list(KERNELS.values()))
            if target is not None and not kernel.fills and self._random.random() < 0.97:
                continue
            given = self._given(kernel.tensors, names, target)
            if given is not None:
                return [self._launched(kernel, given, names)]
        return []

    def _given(
        self, wanted: Sequence[str], names: Names, target: str | None = None
    ) -> list[tuple[str, bool]] | None:
        """A tensor for each, and whether it is permuted; None if nothing fits."""
        extents: dict[str, str] = {}
        written: list[str] = []
        found: list[tuple[str, bool]] = []
        # What is written is given once: chosen first.
        for told in wanted:
            how, axes = told[0], told[2:]
            fits = []
            for name, shape in names.tensors.items():
                is_open = {"w": "tyws", "u": "tywsq", "r": "tywsxu"}[how]
                if name[0] not in is_open or name in written:
                    continue
                if target is not None and not found and name != target:
                    continue
                if how != "r" and any(name == other for other, _ in found):
                    continue
                for is_permuted in (False, True)[: 2 if len(shape) == 3 else 1]:
                    seen = (shape[1], shape[0], shape[2]) if is_permuted else shape
                    # Some fit only if extents are equal when it is launched.
                    loose = bool(shape) and self._random.random() < 0.01
                    if len(seen) == len(axes) and (
                        loose
                        or all(extents.get(a, e) == e for a, e in zip(axes, seen, strict=True))
                    ):
                        fits.append((name, is_permuted, seen))
            if not fits:
                return None
            name, is_permuted, seen = self._random.choice(fits)
            for axis, extent in zip(axes, seen, strict=True):
                extents.setdefault(axis, extent)
            written += [name] if how != "r" else []
            found.append((name, is_permuted))
        return found

    def _launched(self, kernel: Kernel, given: list[tuple[str, bool]], names: Names) -> Statement:
        number = self._number(names)
        count = EXTENTS[self._random.choice(("N", "M", "C", "N - 3", "N.div_ceil(16)"))]
        arguments = [lent(*one, told[0]) for one, told in zip(given, kernel.tensors, strict=True)]
        arguments += [count.text] if kernel.has_count else []

        def run(scope: Scope) -> None:
            tensors = [
                scope[name].transpose(1, 0, 2) if is_permuted else scope[name]
                for name, is_permuted in given
            ]
            kernel.launch(tensors, count.value(scope), number.value(scope))

        return Statement([f"{kernel.name}({', '.join([*arguments, number.text])});"], run)

    def _call(self, names: Names) -> list[Statement]:
        wanted = ("w:N", "w:MN", "w:", "u:N", "r:N", "r:MN")
        given = self._given(wanted, names) if self._others else None
        if given is None:
            return []
        called = self._random.choice(self._others)
        number, constant = self._number(names), self._random.choice(("0", "1", "2", "C"))
        arguments = [lent(*one, told[0]) for one, told in zip(given, wanted, strict=True)]

        def run(scope: Scope) -> None:
            tensors = {p: scope[name] for p, (name, _) in zip(PARAMETERS, given, strict=True)}
            value = scope["C"] if constant == "C" else int(constant)
            called.run({**tensors, "new": scope["new"]}, number.value(scope), value)

        listed = ", ".join([*arguments, number.text])
        return [Statement([f"{called.name}::<{constant}>({listed});"], run)]

    def _seen(self, names: Names) -> list[Statement]:
        """Launches at the end that read temporaries, so that most of what was launched matters."""
        made = []
        for name in names.temporaries:
            for kernel, target, rest in (("more", "y", ["x"]), ("onto", "w", [])):
                if names.tensors[name] == PARAMETERS[target]:
                    given = [(target, False), (name, False), *((one, False) for one in rest)]
                    made.append(self._launched(KERNELS[kernel], given, names))
        return made

    # ---- names and control flow ------------------------------------------------------------------

    def _move(self, names: Names) -> list[Statement]:
        if not names.temporaries or names.depth:
            return []
        old, new = self._random.choice(names.temporaries), self._new("t")
        names.tensors[new] = names.tensors.pop(old)

        def run(scope: Scope) -> None:
            scope[new] = scope[old]

        return [Statement([f"let mut {new} = {old};"], run)]

    def _rotate(self, names: Names) -> list[Statement]:
        """Temporaries of one shape that change places."""
        shape = self._random.choice(SHAPES)
        same = [name for name in names.temporaries if names.tensors[name] == shape]
        if len(same) < 2:
            return []
        places = self._random.sample(same, self._random.randint(2, min(3, len(same))))
        values = [*places[1:], places[0]]

        def run(scope: Scope) -> None:
            for name, value in zip(places, [scope[value] for value in values], strict=True):
                assign(scope, name, value)

        return [Statement([f"({', '.join(places)}) = ({', '.join(values)});"], run)]

    def _loop(self, names: Names) -> list[Statement]:
        if names.depth > 1:
            return []
        variable, inner = self._new("i"), names.inner()
        inner.constants.append(variable)
        body = self._body(inner, self._random.randint(1, 4))
        text, turns = self._random.choice(
            [
                ("0..3", lambda c: range(3)),
                ("1..=C", lambda c: range(1, c + 1)),
                ("(0..C + 1).rev()", lambda c: range(c, -1, -1)),
                ("(0..4).step_by(3)", lambda c: range(0, 4, 3)),
            ]
        )

        def run(scope: Scope) -> None:
            for turn in turns(scope["C"]):
                execute(body, scope.new_child({variable: turn}))

        return [Statement([f"for {variable} in {text} {{", *indented(body), "}"], run)]

    def _branch(self, names: Names) -> list[Statement]:
        if names.depth > 1:
            return []
        name = self._random.choice(names.constants)
        yes, no = (self._body(names.inner(), self._random.randint(1, 3)) for _ in range(2))

        def run(scope: Scope) -> None:
            execute(yes if scope[name] % 2 == 0 and scope["C"] < 2 else no, scope.new_child())

        head = f"if {name} % 2 == 0 && C < 2 {{"
        return [Statement([head, *indented(yes), "} else {", *indented(no), "}"], run)]

    def _block(self, names: Names) -> list[Statement]:
        body = self._body(names.inner(), 2) if names.depth < 2 else []
        return [Statement(["{", *indented(body), "}"], lambda s: execute(body, s.new_child()))]

    def _between(self, names: Names) -> list[Statement]:
        """A temporary that is soon done with, between two others: its memory is free again."""
        long = [name for name in names.temporaries if names.tensors[name] == ("N",)]
        if len(long) < 2:
            return []
        target, source = self._random.sample(long, 2)
        name = self._new("t")
        made = Statement(
            [f"let mut {name} = Tensor::<i32, N>::uninit();"],
            lambda scope: scope.update({name: scope["new"]([scope["N"]])}),
        )
        to, back = ([(target, False), (name, False)], [(name, False), (source, False)])
        body = [
            made,
            self._launched(KERNELS["both"], [*back, (source, False)], names),
            self._launched(KERNELS["more"], [*to, (name, False)], names),
        ]
        return [Statement(["{", *indented(body), "}"], lambda s: execute(body, s.new_child()))]

    def _let(self, names: Names) -> list[Statement]:
        name, number = self._new("c"), self._number(names)
        names.numbers.append(name)

        def run(scope: Scope) -> None:
            scope[name] = number.value(scope)

        return [Statement([f"let mut {name}: i32 = {number.text};"], run)]

    def _assign(self, names: Names) -> list[Statement]:
        if len(names.numbers) < 2:
            return []
        name, number = self._random.choice(names.numbers[1:]), self._number(names)
        text = f"{name} = {number.text};"
        return [Statement([text], lambda s: assign(s, name, number.value(s)))]


def wrapped(text: str, value: Callable[[Mapping[str, Any]], int]) -> Number:
    return Number(text, lambda scope: (value(scope) + 2**31) % 2**32 - 2**31)


def lent(name: str, is_permuted: bool, how: str) -> str:
    view = f"{name}.permute::<1, 0, 2>()" if is_permuted else name
    return f"&{'' if how == 'r' else 'mut '}{view}" if name[0] == "t" else view


def indented(body: Sequence[Statement]) -> list[str]:
    return [f"    {line}" for statement in body for line in statement.lines]


def assign(scope: Scope, name: str, value: Any) -> None:
    """Another value for a variable, wherever it was declared."""
    next(names for names in scope.maps if name in names)[name] = value


def poisoned(random: Random) -> Callable[[Sequence[int]], Array]:
    """Makes temporaries that hold anything."""
    noise = np.random.default_rng(random.randrange(2**32))
    return lambda extents: np.array(noise.integers(-(2**31), 2**31, extents), np.int32)
