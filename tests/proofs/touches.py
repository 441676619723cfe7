"""What the programs of a kernel really touch, on the CPU execution at small sizes.

This is the definition of a race and of "outside" taken literally, which expectations about programs
are held against: two programs touch one element and one of them writes it; no element of an access
is inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from mlir import ir

from tests.proofs.marks import RACES, Kernel
from tilec.interpret.contract import DTYPES, BrokenContract, Parameter, parameters_of
from tilec.interpret.machine import code_of
from tilec.interpret.run import run_kernel
from tilec.ir.places import span_of
from tilec.source import SourceFile

EXTENTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17)
SMALL = (0, 1, 2, 3, 4)
SCALARS = (0, 1, 2, 3, 4, 5, -1, -4)
# A kernel has run enough after so many launches or accesses; until a race that is marked was seen,
# it has more.
LAUNCHES, ACCESSES = 10, 250
MOST_LAUNCHES, MOST_ACCESSES = 60, 20_000
# Programs of a launch; more where its extents are asked for, or are constants.
PROGRAMS, LARGEST_GRID = 48, 320
MOST_ELEMENTS = 200_000


@dataclass
class Access:
    """All executions of the accesses that start in one line of the source."""

    executed: int = 0
    inside: int = 0
    outside: int = 0


@dataclass
class Seen:
    """What launches of one kernel did: accesses by line, races as (code, line)."""

    accesses: dict[int, Access] = field(default_factory=dict)
    races: set[tuple[str, int]] = field(default_factory=set)
    launches: int = 0


@dataclass
class _Element:
    """Who touched one element, each program with the lines by which it did."""

    writers: dict[int, set[int]] = field(default_factory=dict)
    readers: dict[int, set[int]] = field(default_factory=dict)


class _Enough(Exception):  # noqa: N818, no fault
    """A launch has more programs than are looked at."""


class Watch:
    """Hears of every access of the first programs of a launch."""

    def __init__(self, source: SourceFile, seen: Seen, most_programs: int) -> None:
        self._source = source
        self._seen = seen
        self._program = 0
        self._most_programs = most_programs
        self._elements: dict[tuple[str, int], _Element] = {}

    def starts(self, program: tuple[int, ...]) -> None:
        self._program += 1
        if self._program > self._most_programs:
            raise _Enough

    def touched(
        self, op: ir.OpView, tensor: str, elements: Any, *, written: bool, outside: int
    ) -> None:
        span = span_of(op.location, {self._source.name: self._source})
        assert span is not None, "every access has its place"
        line = self._source.position(span.start)[0] + 1
        access = self._seen.accesses.setdefault(line, Access())
        access.executed += 1
        access.inside += len(elements)
        access.outside += outside
        if "unsafe" in op.attributes:
            return
        for element in elements.tolist():
            self._note((tensor, element), line, written)

    def _note(self, place: tuple[str, int], line: int, written: bool) -> None:
        element = self._elements.setdefault(place, _Element())
        for other, lines in element.writers.items():
            if other == self._program:
                continue
            for first in lines:
                self._seen.races.add(("E0501", max(first, line)) if written else ("E0502", line))
        if written:
            readers = (
                r for p, lines in element.readers.items() if p != self._program for r in lines
            )
            self._seen.races.update(("E0502", reader) for reader in readers)
        (element.writers if written else element.readers).setdefault(self._program, set()).add(line)


def observe(functions: Iterable[ir.OpView], kernel: Kernel, source: SourceFile) -> Seen:
    """What the instances of a kernel touch in the first launches that the contract allows."""
    seen = Seen()
    for function in functions:
        _observe(function, kernel, source, seen)
    return seen


def _observe(function: ir.OpView, kernel: Kernel, source: SourceFile, seen: Seen) -> None:
    wanted = {(r.code, r.line) for r in kernel.refusals if r.code in RACES and not r.undecided}
    code = code_of(function)
    has_dims = bool(_dims(parameters_of(function)))
    launches = 0
    for number, arguments in enumerate(_arguments(function, kernel)):
        is_given = number < len(kernel.sizes) or not has_dims
        watch = Watch(source, seen, LARGEST_GRID if is_given else PROGRAMS)
        try:
            run_kernel(function, arguments, observer=watch, code=code)
        except BrokenContract:
            continue
        except _Enough:
            pass
        launches += 1
        seen.launches += 1
        accesses = sum(access.executed for access in seen.accesses.values())
        if launches >= LAUNCHES or accesses >= ACCESSES:
            has_all = wanted <= seen.races
            if has_all or launches >= MOST_LAUNCHES or accesses >= MOST_ACCESSES:
                return


def _arguments(function: ir.OpView, kernel: Kernel) -> Iterator[dict[str, Any]]:
    """Arguments of all sizes that are asked for, then of others, the same in every run."""
    parameters = parameters_of(function)
    for number, sizes in enumerate(_sizes(parameters, kernel)):
        rng = np.random.default_rng(number)
        shapes = [_shape(p, sizes) for p in parameters]
        if sum(map(prod, shapes)) <= MOST_ELEMENTS:
            yield {
                p.name: _value(p, shape, sizes, rng)
                for p, shape in zip(parameters, shapes, strict=True)
            }


def _sizes(parameters: tuple[Parameter, ...], kernel: Kernel) -> Iterator[dict[str, int]]:
    dims = _dims(parameters)
    scalars = [p.name for p in parameters if p.extents is None]
    choices = [SMALL if n in kernel.small or len(dims) > 3 else EXTENTS for n in dims]
    choices += [SCALARS] * len(scalars)
    names = (*dims, *scalars)
    rng = np.random.default_rng(0)
    for given in kernel.sizes:
        yield {n: given.get(n, choice[2]) for n, choice in zip(names, choices, strict=True)}
    if not names:
        yield {}
    elif prod(map(len, choices)) <= 20:
        yield from (dict(zip(names, c, strict=True)) for c in itertools.product(*choices))
    else:
        for _ in range(500):
            yield {n: int(rng.choice(choice)) for n, choice in zip(names, choices, strict=True)}


def _dims(parameters: tuple[Parameter, ...]) -> list[str]:
    extents = [e for p in parameters for e in p.extents or () if isinstance(e, str)]
    return list(dict.fromkeys(extents))


def _shape(parameter: Parameter, sizes: Mapping[str, int]) -> tuple[int, ...]:
    extents = parameter.extents or ()
    return tuple(e if isinstance(e, int) else sizes[e] for e in extents)


def _value(
    parameter: Parameter,
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> Any:
    """Few different numbers, so that what is computed from data meets often."""
    dtype = np.dtype(DTYPES[parameter.element])
    if parameter.extents is None:
        value = sizes[parameter.name]
        return value if dtype.kind == "i" else dtype.type(max(value, 0))
    return rng.integers(0 if dtype.kind in "ub" else -1, 3, shape).astype(dtype)
