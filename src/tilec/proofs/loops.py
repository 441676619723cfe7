"""Loops, executed abstractly: by how much each variable grows in an iteration.

The body is executed once with unknowns in the place of the variables, to see by how much they
grow; then with each variable as `start + step * number of the iteration`, and it is checked that an
iteration does move by these steps. A variable that does not is an opaque unknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mlir import ir

from tilec.integers.formula import TRUE, within
from tilec.integers.number import Number, always
from tilec.integers.polynomial import Polynomial, Unknown, variable
from tilec.ops.abstract import Abstract
from tilec.proofs.access import Access
from tilec.proofs.arithmetic import interval_of
from tilec.proofs.knowledge import Fact
from tilec.proofs.powers import Powers

# A loop has fewer iterations than this, and no variable of one is taken to leave this range while
# it is only being looked at.
_FAR = 2**61
# How often the body of a loop is executed to see by how much its variables grow. A loop inside of
# others is met often, each time with more known of the variables around it.
_LOOKS = 4

Steps = Sequence[Polynomial | None]  # None of a variable that grows otherwise


@dataclass(frozen=True)
class _Loop:
    """A loop where it is met: its variables' first values and types, and its body.

    `body` executes an iteration of a number with these values of the variables; `count` is the
    unknown number of an iteration.
    """

    starts: Sequence[Abstract]
    kinds: Sequence[ir.Type]
    body: Callable[[Polynomial, Sequence[Abstract]], Sequence[Abstract]]
    count: Unknown
    op: ir.OpView


@dataclass(frozen=True)
class _Seen:
    """By how much each variable of a loop grows in an iteration, and how often that was sought."""

    steps: tuple[Polynomial | None, ...]
    looks: int


@dataclass
class Loops(Powers, ABC):
    """Arithmetic that follows variables of loops."""

    accesses: list[Access] = field(default_factory=list)
    turns: set[Unknown] = field(default_factory=set)  # the number of an iteration of each loop
    _only_looking: bool = False
    _seen: dict[ir.OpView, _Seen] = field(default_factory=dict)

    @abstractmethod
    def _opaque_value(self, kind: ir.Type, op: ir.OpView) -> Abstract:
        """A value of a type that is not followed."""

    def repeated(
        self,
        starts: Sequence[Abstract],
        kinds: Sequence[ir.Type],
        turn: Callable[[Polynomial, Sequence[Abstract]], Sequence[Abstract]],
        turns: Polynomial | None,
        op: ir.OpView,
    ) -> list[Abstract]:
        last = _FAR if turns is None else max(turns.interval[1] - 1, 0)
        # The trip count of a `while` is not known, and that it iterates follows from no iteration.
        count = self.knowledge.unknown(
            "turns as often as it likes", (0, last), uniform=False, opaque=turns is None, about=op
        )
        self.turns.add(count)
        loop = _Loop(starts, kinds, turn, count, op)
        steps = self._steps_seen(loop)
        first = [self.single(s) if isinstance(s, Number) else None for s in starts]
        while True:
            before = [
                self._opaque_value(kind, op)
                if start is None or step is None
                else always(start + step * variable(count))
                for start, step, kind in zip(first, steps, kinds, strict=True)
            ]
            kept = len(self.accesses)
            with self._inside(before, loop):
                after = turn(variable(count), before)
            wrong = [
                i
                for i, step in enumerate(steps)
                if step is not None and not _moved_by(before[i], after[i], step)
            ]
            if not wrong:
                break
            del self.accesses[kept:]
            steps = self._other_steps(loop, steps, wrong)
        self._seen[op] = replace(self._seen[op], steps=tuple(steps))
        return [
            always(start + step * turns)
            if start is not None and step is not None and turns is not None
            else self._opaque_value(kind, op)
            for start, step, kind in zip(first, steps, kinds, strict=True)
        ]

    def _steps_seen(self, loop: _Loop) -> Steps:
        """By how much each variable grows in an iteration: as it was seen before, if that is known.

        A loop inside of another one is executed each time that the body of the outer one is. That
        must not double with each level of nesting, so that what was seen the last time is tried
        first: it is right if an iteration moves by it, and that is asked in any case.
        """
        seen = self._seen.get(loop.op)
        is_known = seen is not None and all(
            step is not None
            for start, step in zip(loop.starts, seen.steps, strict=True)
            if isinstance(start, Number)
        )
        if seen is not None and (is_known or seen.looks >= _LOOKS):
            return seen.steps
        return self._looked_for(loop, 1 if seen is None else seen.looks + 1)

    def _other_steps(self, loop: _Loop, steps: Steps, wrong: Sequence[int]) -> Steps:
        """Steps to try after some were wrong: looked for again, if they were from before."""
        seen = self._seen[loop.op]
        found = self._looked_for(loop, seen.looks + 1) if seen.looks < _LOOKS else steps
        return [
            None if i in wrong and step == old else step
            for i, (step, old) in enumerate(zip(found, steps, strict=True))
        ]

    def _looked_for(self, loop: _Loop, looks: int) -> Steps:
        """By how much each variable grows in an iteration, as far as that is always the same."""
        steps = tuple(self._steps(loop))
        self._seen[loop.op] = _Seen(steps, looks)
        return steps

    def _steps(self, loop: _Loop) -> Iterator[Polynomial | None]:
        if not any(isinstance(start, Number) for start in loop.starts):
            yield from [None] * len(loop.starts)
            return
        known = self.knowledge.count
        before: list[Abstract] = [
            always(variable(self.knowledge.unknown("variable", (-_FAR, _FAR), uniform=False)))
            if isinstance(start, Number)
            else self._opaque_value(kind, loop.op)
            for start, kind in zip(loop.starts, loop.kinds, strict=True)
        ]
        with self._looking():
            after = loop.body(variable(loop.count), before)
        for old, new in zip(before, after, strict=True):
            if not isinstance(old, Number) or not isinstance(new, Number):
                yield None
                continue
            assert old.only is not None
            step = None if new.only is None else new.only - old.only
            yield step if step is not None and _is_same(step, known, loop.count) else None

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """While nothing is noted."""
        before, self._only_looking = self._only_looking, True
        yield
        self._only_looking = before

    @contextmanager
    def _inside(self, variables: Sequence[Abstract], loop: _Loop) -> Iterator[None]:
        """While the variables of a loop fit their types: the iteration before saw to that."""
        around = self._path
        for value, kind in zip(variables, loop.kinds, strict=True):
            interval = interval_of(kind)
            if isinstance(value, Number) and value.only is not None and interval is not None:
                fits = within(value.only, *interval)
                facts = [Fact(fits, "loop", loop.op)] if fits != TRUE else []
                self._path = (*self._path, *facts)
        yield
        self._path = around


def _is_same(step: Polynomial, known: int, count: Unknown) -> bool:
    """Whether a step is the same in every iteration: of unknowns from before the loop."""
    return all(u.number <= known and u is not count for u in step.unknowns)


def _moved_by(before: Abstract, after: Abstract, step: Polynomial) -> bool:
    if not isinstance(before, Number) or not isinstance(after, Number):
        return False
    old, new = before.only, after.only
    return old is not None and new is not None and new - old == step
