"""What a launch does wrong: races, unchecked accesses outside, reads of what nobody wrote.

An observer of the CPU execution that sees every element of every access, inside `unsafe` too. It
says what one launch did, at its sizes, and so refutes what proofs claim of all launches.

Algorithm: programs are numbered as they start. For each operation and tensor it keeps, for each
element, the first program that touched it and the first other one: two arrays, whatever the number
of programs. Two operations that both touched an element did so in two different programs unless
their first programs are the same and neither has another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np
from mlir import ir

from tilec.interpret.memory import Array

Program = tuple[int, ...]

_NOBODY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Race:
    """Two programs touch an element, and one of them writes it non-atomically.

    Guarantees: `programs` and `ops` go together; where one reads, it is the second. Where both
                write, the first is the earlier in the source
    """

    is_read: bool
    tensor: str
    element: tuple[int, ...]
    programs: tuple[Program, Program]
    ops: tuple[ir.OpView, ir.OpView]


@dataclass(frozen=True)
class OutsideAccess:
    """An access that the program vouched for (`unchecked`), and that touched what is outside."""

    tensor: str
    program: Program
    op: ir.OpView


@dataclass(frozen=True)
class UninitialisedRead:
    """A program read an element that neither the caller nor the launch had given a value."""

    tensor: str
    element: tuple[int, ...]
    program: Program
    op: ir.OpView


Finding = Race | OutsideAccess | UninitialisedRead


@dataclass(frozen=True)
class Touch:
    """How many elements of an access were inside and outside of its view, in all executions."""

    inside: int = 0
    outside: int = 0


@dataclass
class _Touched:
    """What one operation did to one tensor: the programs that touched each element."""

    op: ir.OpView
    tensor: str
    written: bool
    atomic: bool
    first: Array
    other: Array

    @property
    def is_plain_write(self) -> bool:
        return self.written and not self.atomic

    def add(self, elements: Array, program: int) -> None:
        """Assumes: programs come in the order of their numbers."""
        first = np.minimum(self.first[elements], program)
        self.first[elements] = first
        again = elements[first != program]
        self.other[again] = np.minimum(self.other[again], program)


@dataclass
class Sanitizer:
    """The observer; `extents` are those of the tensors, `unset` those that the caller left open."""

    extents: Mapping[str, tuple[int, ...]]
    unset: frozenset[str] = frozenset()
    seen: dict[ir.OpView, Touch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._programs: list[Program] = []
        self._touched: dict[tuple[ir.OpView, str], _Touched] = {}
        self._others: dict[ir.OpView, Finding] = {}
        self._unset = {name: np.ones(self._size(name), np.bool_) for name in self.unset}

    def starts(self, program: Program) -> None:
        self._programs.append(program)

    def touched(
        self,
        op: ir.OpView,
        tensor: str,
        elements: Array,
        *,
        written: bool,
        outside: int,
        atomic: bool = False,
    ) -> None:
        before = self.seen.get(op, Touch())
        self.seen[op] = Touch(before.inside + elements.size, before.outside + outside)
        if outside and "unchecked" in op.attributes:
            self._others.setdefault(op, OutsideAccess(tensor, self._programs[-1], op))
        if not elements.size:
            return
        if tensor in self._unset:
            self._initialise(op, tensor, elements, written=written)
        key = op, tensor
        if key not in self._touched:
            nobody = np.full(self._size(tensor), _NOBODY)
            self._touched[key] = _Touched(op, tensor, written, atomic, nobody, nobody.copy())
        self._touched[key].add(elements, len(self._programs) - 1)

    def findings(self) -> Iterator[Finding]:
        """What was found: of each pair of operations and each tensor the first element only."""
        yield from self.races()
        yield from self._others.values()

    def races(self) -> Iterator[Race]:
        """The races, those of earlier operations first."""
        touched = sorted(self._touched.values(), key=lambda t: _place(t.op))
        for first, second in combinations_with_replacement(touched, 2):
            if first.tensor == second.tensor and (first.is_plain_write or second.is_plain_write):
                pair = (first, second) if first.written else (second, first)
                yield from self._race(*pair)

    def _race(self, writer: _Touched, other: _Touched) -> Iterator[Race]:
        both = (writer.first != _NOBODY) & (other.first != _NOBODY)
        differ = writer.first != other.first
        meet = both & (differ | (writer.other != _NOBODY) | (other.other != _NOBODY))
        if not meet.any():
            return
        number = int(meet.argmax())
        yield Race(
            is_read=not other.written,
            tensor=writer.tensor,
            element=self._index(writer.tensor, number),
            programs=self._pair(writer, other, number),
            ops=(writer.op, other.op),
        )

    def _pair(self, a: _Touched, b: _Touched, number: int) -> tuple[Program, Program]:
        """Two different programs that meet at an element, the least there are."""
        of_a, of_b = ((int(t.first[number]), int(t.other[number])) for t in (a, b))
        pairs = ((p, q) for p in of_a for q in of_b if p != q)
        p, q = min(pairs, key=lambda pair: sorted(pair, reverse=True))
        return self._programs[p], self._programs[q]

    def _initialise(self, op: ir.OpView, tensor: str, elements: Array, *, written: bool) -> None:
        unset = self._unset[tensor]
        if written:
            unset[elements] = False
            return
        open_ones = elements[unset[elements]]
        if open_ones.size:
            element = self._index(tensor, int(open_ones[0]))
            found = UninitialisedRead(tensor, element, self._programs[-1], op)
            self._others.setdefault(op, found)

    def _size(self, tensor: str) -> int:
        return int(np.prod(self.extents[tensor], dtype=np.int64))

    def _index(self, tensor: str, number: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(number, self.extents[tensor]))


def _place(op: ir.OpView) -> tuple[str, int, int]:
    """Where an operation stands, so that operations can be ordered as the source has them."""
    location = op.location
    if not location.is_a_file():
        return ("", 0, 0)
    return (location.filename, location.start_line, location.start_col)
