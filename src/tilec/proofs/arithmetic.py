"""Numbers of a kernel that is executed abstractly: what fits, what wraps, quotients, choices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from mlir import ir

from tilec.integers.division import is_ceiling, is_floor, is_truncated
from tilec.integers.formula import (
    FALSE,
    TRUE,
    Formula,
    at_least,
    both,
    either,
    equal,
    less,
    negated,
    within,
)
from tilec.integers.number import Case, Number, always, by_cases, chosen, together
from tilec.integers.polynomial import ONE, ZERO, Polynomial, Unknown, number, variable
from tilec.proofs.knowledge import Fact, Knowledge

INDEX = (-(2**63), 2**63 - 1)
# What of wrapping is followed exactly: types of few numbers, and numbers that go around few times.
_FOLLOWED_SIZE = 2**16
_FOLLOWED_TIMES = 4
# A number of more cases has a name.
_CASES = 4
# Longer names of what is computed are left out.
_LONGEST_NAME = 80
_RELATIONS = {"floor": is_floor, "ceiling": is_ceiling, "truncated": is_truncated}

# What an unknown is called that is not followed because a question took too many steps.
UNDECIDED = "was not decided within the budget"


@dataclass
class Arithmetic(ABC):
    """Numbers where some facts hold: those of the place that is executed."""

    knowledge: Knowledge = field(default_factory=Knowledge)
    _path: tuple[Fact, ...] = ()
    _decided: dict[tuple[Formula, tuple[Fact, ...]], bool | None] = field(default_factory=dict)
    _quotients: dict[tuple[str, Polynomial, Polynomial], Polynomial] = field(default_factory=dict)
    _positive: dict[tuple[Polynomial, tuple[Formula, ...], tuple[Fact, ...]], bool] = field(
        default_factory=dict
    )
    _sums: dict[Polynomial, Polynomial] = field(default_factory=dict)
    _rests: dict[Polynomial, Polynomial] = field(default_factory=dict)
    _singles: dict[Number, Polynomial] = field(default_factory=dict)
    # What depends on an `usize` that may wrap, and what it is where nothing does.
    _of_wrapped: dict[Unknown, Callable[[], Polynomial]] = field(default_factory=dict)
    # What was computed, of each `usize` that may have wrapped.
    _computed: dict[Unknown, Polynomial] = field(default_factory=dict)

    @abstractmethod
    def _opaque(
        self, interval: tuple[int, int] | None, op: ir.OpView, name: str | None = None
    ) -> Unknown:
        """An unknown for what is not followed."""

    @property
    def quotients(self) -> Mapping[tuple[str, Polynomial, Polynomial], Polynomial]:
        """What stands for each rounding, dividend and divisor, in the order of their making."""
        return self._quotients

    def decide(self, formula: Formula) -> bool | None:
        if formula in (TRUE, FALSE):
            return formula == TRUE
        key = formula, self._path
        if key not in self._decided:
            self._decided[key] = self._find_out(formula)
        return self._decided[key]

    def _find_out(self, formula: Formula) -> bool | None:
        if not self.knowledge.possible([formula], self._path):
            return False
        if not self.knowledge.possible([negated(formula)], self._path):
            return True
        return None

    def choose(self, condition: Formula, yes: Number, no: Number) -> Number:
        if yes == no:
            return yes
        known = self.decide(condition)
        if known is not None:
            return yes if known else no
        return self.few(chosen(condition, yes, no))

    def wrapped(self, value: Number, kind: ir.Type, op: ir.OpView) -> Number:
        interval = interval_of(kind)
        if interval is None:
            return value
        cases = [self._kept(case, interval, op) for case in value.cases]
        return self.few(Number(tuple(cases)))

    def _kept(self, case: Case, interval: tuple[int, int], op: ir.OpView) -> Case:
        """A case whose value is what it is, where it fits; else that of the same bits, or any."""
        low, high = interval
        at_least_low, at_most_high = case.value.interval
        if low <= at_least_low and at_most_high <= high:
            return case
        fits = within(case.value, low, high)
        if self.knowledge.fits(fits, case.when, self._path):
            return case
        uniform = all(u.uniform for u in case.value.unknowns)
        size = high - low + 1
        around = (at_least_low - low) // size, (at_most_high - low) // size
        # isl takes remainders of small numbers, and few cases; not those of large ones.
        is_followed = size <= _FOLLOWED_SIZE or around[1] - around[0] < _FOLLOWED_TIMES
        name = "may wrap" if not self.knowledge.is_given_up else UNDECIDED
        unknown = self.knowledge.unknown(
            name, interval, uniform=uniform, opaque=not is_followed, about=op
        )
        if is_followed:
            times = self.knowledge.unknown("times around", around, uniform=uniform)
            same = equal(variable(unknown) + variable(times).scaled(size), case.value)
            self.knowledge.define(unknown, same)
        else:
            same = equal(variable(unknown), case.value)
            self.knowledge.define(unknown, either(negated(fits), same))
        if interval == INDEX:
            self._computed[unknown] = case.value
            self._of_wrapped[unknown] = lambda: self.exact(case.value)
        return Case(case.when, variable(unknown))

    def unsigned(self, value: Number, kind: ir.Type) -> Number:
        size = _size_of(kind)
        return by_cases(lambda x: self.choose(at_least(x, 0), always(x), always(x + size)), value)

    def signed(self, value: Number, kind: ir.Type) -> Number:
        size = _size_of(kind)
        return by_cases(
            lambda x: self.choose(less(x, size // 2), always(x), always(x - size)), value
        )

    def quotient(self, a: Number, b: Number, rounding: str, op: ir.OpView) -> Number:
        def divided(x: Polynomial, y: Polynomial, when: Sequence[Formula]) -> Polynomial:
            return self._divided(x, y, when, rounding, op)

        return self._of_division(a, b, divided)

    def remainder(self, a: Number, b: Number, op: ir.OpView) -> Number:
        def rest(x: Polynomial, y: Polynomial, when: Sequence[Formula]) -> Polynomial:
            return self._rest(x, self._divided(x, y, when, "truncated", op), y)

        return self._of_division(a, b, rest)

    def _of_division(
        self,
        a: Number,
        b: Number,
        function: Callable[[Polynomial, Polynomial, Sequence[Formula]], Polynomial],
    ) -> Number:
        """A function of dividend, divisor and what holds there, in each case that can be."""
        if _is_choice(b):
            b = always(self.single(b))
        found = []
        for left, right in product(a.cases, b.cases):
            when = together(left.when, right.when)
            if when is not None:
                value = function(left.value, self._short(right.value), when)
                found.append(Case(when, value))
        return self.few(Number(tuple(found)))

    def _short(self, divisor: Polynomial) -> Polynomial:
        """The divisor as one unknown, where it is a sum: its multiples are one product then."""
        if len(divisor.monomials) <= 1:
            return divisor
        if divisor not in self._sums:
            uniform = all(u.uniform for u in divisor.unknowns)
            unknown = self.knowledge.unknown(_sum_text(divisor), divisor.interval, uniform=uniform)
            self._sums[divisor] = self.knowledge.define(unknown, equal(variable(unknown), divisor))
        return self._sums[divisor]

    def _rest(self, a: Polynomial, quotient: Polynomial, b: Polynomial) -> Polynomial:
        """What a division leaves; an unknown of its own, where that takes products."""
        rest = a - quotient * b
        is_linear = all(len(m) <= 1 for m in rest.monomials)
        if is_linear or any(u.opaque for u in quotient.unknowns):
            return rest
        if rest not in self._rests:
            is_signed = self._quotients.get(("signed truncated", a, b)) == quotient
            most = max(map(abs, b.interval)) if is_signed else max(b.interval[1] - 1, 0)
            low, high = (-most if a.interval[0] < 0 else 0), min(most, max(a.interval[1], 0))
            uniform = all(u.uniform for u in rest.unknowns)
            unknown = self.knowledge.unknown(_text("%", a, b), (low, high), uniform=uniform)
            found = variable(unknown)
            meant = both(equal(found, rest), at_least(found, 0) if low == 0 else TRUE)
            if is_signed:
                # By 0 it is anything: divisors are guarded.
                definition = either(equal(b, 0), meant)
            else:
                definition = self._where_positive(b, both(meant, less(found, b), less(-found, b)))
            self._rests[rest] = self.knowledge.define(unknown, definition)
            if self._may_wrap(rest):
                self._of_wrapped[unknown] = lambda: self.exact(rest)
        return self._rests[rest]

    def _divided(
        self,
        a: Polynomial,
        b: Polynomial,
        when: Sequence[Formula],
        rounding: str,
        op: ir.OpView,
    ) -> Polynomial:
        if b.is_constant and b.constant < 0:
            a, b = -a, -b
        if b.is_constant and b.constant == 0:
            return ZERO  # the emitter sees to it that this is not asked
        if not self._is_positive(b) and not self._is_positive(b, when, self._path):
            is_given_up = self.knowledge.is_given_up
            if all(self._is_of_launch(u) for u in a.unknowns | b.unknowns):
                return self._signed_quotient(a, b, rounding)
            name = UNDECIDED if is_given_up else None
            return variable(self._opaque(interval_of(op.results[0].type), op, name))
        exact = _exact_quotient(a, b)
        return exact if exact is not None else self._new_quotient(a, b, rounding)

    def _is_of_launch(self, unknown: Unknown) -> bool:
        """Whether it is a number of the launch, and what it is where nothing wraps is known."""
        return unknown.uniform and (not unknown.opaque or unknown in self._of_wrapped)

    def _is_positive(
        self, b: Polynomial, when: Sequence[Formula] = (), path: tuple[Fact, ...] = ()
    ) -> bool:
        """Whether a number is above 0: wherever programs run, or where more is known."""
        positive = at_least(b, 1)
        if positive == TRUE or positive in when:
            return True
        key = b, tuple(when), path
        if key not in self._positive:
            self._positive[key] = not self.knowledge.possible([*when, negated(positive)], path)
        return self._positive[key]

    def _new_quotient(self, a: Polynomial, b: Polynomial, rounding: str) -> Polynomial:
        if rounding == "truncated" and a.interval[0] >= 0:
            rounding = "floor"
        key = rounding, a, b
        if key in self._quotients:
            return self._quotients[key]
        # Where nothing is executed, what is not above 0 was proved to be.
        divisors = max(b.interval[0], 1), max(b.interval[1], 1)
        interval = _quotients_between(a.interval, divisors)
        uniform = all(u.uniform for u in a.unknowns | b.unknowns)
        unknown = self.knowledge.unknown(_text("/", a, b), interval, uniform=uniform)
        meant = _RELATIONS[rounding](variable(unknown), a, b)
        found = self.knowledge.define(unknown, self._where_positive(b, meant))
        self._quotients[key] = found
        return found

    def _signed_quotient(self, a: Polynomial, b: Polynomial, rounding: str) -> Polynomial:
        """A quotient by what may have either sign; by 0, which guards exclude, it is anything."""
        key = f"signed {rounding}", a, b
        if key in self._quotients:
            return self._quotients[key]
        size = max(map(abs, a.interval))
        unknown = self.knowledge.unknown(_text("/", a, b), (-size, size), uniform=True)
        found = variable(unknown)
        relation = _RELATIONS[rounding]
        meant = either(
            both(at_least(b, 1), relation(found, a, b)),
            both(at_least(-b, 1), relation(found, -a, -b)),
            equal(b, 0),
        )
        self._quotients[key] = self.knowledge.define(unknown, meant)
        if self._may_wrap(a) or self._may_wrap(b):
            self._of_wrapped[unknown] = lambda: self._signed_quotient(
                self.exact(a), self.exact(b), rounding
            )
        return found

    def _where_positive(self, b: Polynomial, meant: Formula) -> Formula:
        """What a division means; of a divisor that is only known here to be above 0, with a case
        for where it is not."""
        if self._is_positive(b):
            return both(at_least(b, 1), meant)
        return either(negated(at_least(b, 1)), meant)

    def single(self, value: Number) -> Polynomial:
        if value.only is not None:
            return value.only
        if value not in self._singles:
            uniform = all(u.uniform for u in value.unknowns)
            unknown = self.knowledge.unknown("one of", value.interval, uniform=uniform)
            is_case = (
                both(*case.when, equal(variable(unknown), case.value)) for case in value.cases
            )
            self._singles[value] = self.knowledge.define(unknown, either(*is_case))
        return self._singles[value]

    def few(self, number: Number) -> Number:
        return number if len(number.cases) <= _CASES else always(self.single(number))

    def exact(self, value: Polynomial) -> Polynomial:
        """What a number is where nothing wraps."""
        if not self._may_wrap(value):
            return value
        found = ZERO
        for monomial, coefficient in value.terms:
            factors = [
                self._of_wrapped[u]() if u in self._of_wrapped else variable(u) for u in monomial
            ]
            found = found + prod(factors, start=number(coefficient))
        return found

    def _may_wrap(self, value: Polynomial) -> bool:
        return not self._of_wrapped.keys().isdisjoint(value.unknowns)


def _text(operator: str, a: Polynomial, b: Polynomial) -> str:
    """A name for messages: short, for names of quotients of quotients double with each."""
    left, right = str(a), str(b)
    if len(left) + len(right) > _LONGEST_NAME:
        return f"(…){operator}(…)"
    return f"({left}){operator}({right})"


def _sum_text(value: Polynomial) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_NAME else "a sum"


def _is_choice(divisor: Number) -> bool:
    """Whether it is one of several, not all constants: `min(rest, 8)`, and no guard against 0."""
    values = [case.value for case in divisor.cases]
    return len(values) > 1 and ONE not in values and not all(v.is_constant for v in values)


def interval_of(kind: ir.Type) -> tuple[int, int] | None:
    """What an integer of a type can be, read with a sign; None for anything else."""
    if isinstance(kind, ir.IndexType):
        return INDEX
    if not isinstance(kind, ir.IntegerType) or kind.width == 1:
        return None
    return -(2 ** (kind.width - 1)), 2 ** (kind.width - 1) - 1


def _size_of(kind: ir.Type) -> int:
    """How many numbers a type has."""
    interval = interval_of(kind)
    assert interval is not None, "an integer has a range"
    return interval[1] - interval[0] + 1


def _exact_quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """`a / b` where every term of `a` has the one term of `b` as a factor (`b` is not 0)."""
    if len(b.terms) != 1:
        return None
    [(divisor, factor)] = b.terms
    found: Polynomial = ZERO
    for monomial, coefficient in a.terms:
        rest = list(monomial)
        for unknown in divisor:
            if unknown not in rest:
                return None
            rest.remove(unknown)
        if coefficient % factor:
            return None
        found = found + Polynomial(((tuple(rest), coefficient // factor),))
    return found


def _quotients_between(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """What a quotient can be, however it is rounded, for divisors of at least 1."""
    floors = [x // y for x in a for y in b]
    ceilings = [-(-x // y) for x in a for y in b]
    return min(floors), max(ceilings)
