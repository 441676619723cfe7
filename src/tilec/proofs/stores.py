"""What a store touches, exactly: formulas of sums, with what may have any value kept apart.

What is the same for the whole launch (`uniform`) is a number of its own, whatever it is: extents,
scalars, quotients and products of these. So a grid that multiplies extents is as exact as any. A
product of what differs between programs or turns is not, unless it is one that goes away
(`strides.py`, `digits.py`): of such a store nothing is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.integers.formula import All, Any, Formula, NotNegative, mapped
from tilec.integers.isl_sets import Dimensions
from tilec.integers.polynomial import Monomial, Polynomial, Unknown, polynomial, variable
from tilec.ops.registry import rules
from tilec.proofs.access import Access
from tilec.proofs.digits import taken_apart
from tilec.proofs.knowledge import Fact
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.strides import taken_by_turns


@dataclass(frozen=True, eq=False)
class Store:
    """What one store touches, exactly.

    `formulas` are linear. `programs` are the numbers that stand for the program in them; `chosen`
    those for which some value does: programs and turns; `data` those that may have any value.
    """

    access: Access
    formulas: tuple[Formula, ...]
    programs: frozenset[Unknown]
    chosen: tuple[Unknown, ...]
    data: tuple[Unknown, ...]


@dataclass(frozen=True, eq=False)
class Doubt:
    """Why a store is not known to touch anything for certain, and what would tell."""

    access: Access
    why: str
    way_out: str


_BY_DATA = "its place depends on data", "store to places made of program numbers and extents"
_BY_GRID = "the extents of the grid may wrap", "bound what they are made of by `requires!`"
_BY_PRODUCT = (
    "its place multiplies numbers of programs or turns by sizes",
    "take one program number apart by `/` and `%`, or give each factor an axis of the grid",
)
_BY_WHILE = "it is in a `while` that may end before it is done", "count by `for`"


@dataclass
class Launch:
    """What is the same in the whole launch, and what stands for the programs of it."""

    reasoning: Reasoning
    products: dict[Monomial, Unknown] = field(default_factory=dict)
    numbers: dict[object, Unknown] = field(default_factory=dict)

    def linear(self, formulas: Iterable[Formula]) -> list[Formula]:
        """The formulas with unknowns in the place of products of what the launch shares."""
        return [mapped(formula, self._linear) for formula in formulas]

    def _linear(self, value: Polynomial) -> Polynomial:
        terms = []
        for monomial, coefficient in value.terms:
            shared = tuple(u for u in monomial if u.uniform)
            rest = tuple(u for u in monomial if not u.uniform)
            if len(shared) > 1:
                shared = (self._product(shared),)
            terms.append((tuple(sorted((*shared, *rest))), coefficient))
        return polynomial(terms)

    def _product(self, factors: Monomial) -> Unknown:
        if factors not in self.products:
            ends = Polynomial(((factors, 1),)).interval
            name = "*".join(map(str, factors))
            self.products[factors] = self.reasoning.knowledge.unknown(name, ends, uniform=True)
        return self.products[factors]

    def of_quotients(self, unknowns: Iterable[Unknown]) -> list[Formula]:
        """What quotients of the launch are, and those in them.

        A choice between cases is left out: it may be between those that a branch has left.
        """
        quotients = {u for q in self.reasoning.quotients.values() for u in q.unknowns if u.uniform}
        found: dict[Unknown, Formula] = {}
        waiting = list(unknowns)
        while waiting:
            unknown = waiting.pop()
            if unknown in quotients and unknown not in found:
                found[unknown] = self.reasoning.knowledge.definitions[unknown]
                waiting += sorted(found[unknown].unknowns)
        return [*found.values()]


@dataclass(frozen=True, eq=False)
class Touching:
    """What accesses of one tensor touch, each over the same element and the same launch."""

    launch: Launch
    element: tuple[Unknown, ...]
    found: tuple[Store | Doubt, ...]

    @staticmethod
    def of(reasoning: Reasoning, accesses: Sequence[Access]) -> Touching:
        """Assumes:  there is an access"""
        launch, element = Launch(reasoning), element_of(reasoning, accesses[0])
        found = tuple(store_of(launch, access, element) for access in accesses)
        return Touching(launch, tuple(element), found)

    @property
    def accesses(self) -> list[Access]:
        return [one.access for one in self.found]

    @property
    def stores(self) -> list[Store]:
        return [one for one in self.found if isinstance(one, Store)]

    @property
    def doubts(self) -> list[Doubt]:
        return [one for one in self.found if isinstance(one, Doubt)]


def element_of(reasoning: Reasoning, access: Access) -> list[Unknown]:
    """Unknowns for the coordinates of an element of a tensor."""
    return [
        reasoning.knowledge.unknown(f"element {axis}", (0, 2**40), uniform=True)
        for axis in range(access.rank)
    ]


def store_of(launch: Launch, access: Access, element: Sequence[Unknown]) -> Store | Doubt:
    """What a store of any program touches."""
    if access.starts is None:
        return Doubt(access, *_BY_DATA)
    reasoning = launch.reasoning
    if not reasoning.is_grid_followed:
        return Doubt(access, *_BY_GRID)
    formulas, strides = taken_by_turns(reasoning, _stated(launch, access, element), launch.numbers)
    instead = {stride.whole: stride.number for stride in strides}
    formulas = taken_apart(reasoning, formulas, instead, launch.numbers)
    return _store(launch, access, formulas)


def store_of_program(launch: Launch, access: Access, element: Sequence[Unknown]) -> Store | Doubt:
    """What a store touches, by its program as it is."""
    if access.starts is None:
        return Doubt(access, *_BY_DATA)
    return _store(launch, access, _stated(launch, access, element))


def _store(launch: Launch, access: Access, stated: Sequence[Formula]) -> Store | Doubt:
    reasoning = launch.reasoning
    formulas = launch.linear(stated)
    if Dimensions(formulas, ()).products:
        return Doubt(access, *_BY_PRODUCT)
    unknowns = sorted({u for f in formulas for u in f.unknowns})
    turns = [u for u in unknowns if u in reasoning.turns]
    if not all(_is_come_to(reasoning, turn, access) for turn in turns):
        return Doubt(access, *_BY_WHILE)
    numbers = [u for u in unknowns if u in launch.numbers.values()]
    programs = [*numbers, *(u for u in unknowns if u in reasoning.ids.values())]
    data = [u for u in unknowns if u.opaque and not u.uniform and u not in turns]
    return Store(access, tuple(formulas), frozenset(programs), (*programs, *turns), tuple(data))


def _stated(launch: Launch, access: Access, element: Sequence[Unknown]) -> list[Formula]:
    """That a program of the launch touches the element.

    Without what holds of the launch anyway, and what data are: they may be anything.
    """
    knowledge = launch.reasoning.knowledge
    found = access.touches([variable(e) for e in element])
    found += [fact.formula for fact in _of_place(access)]
    found += [f.formula for f in knowledge.facts if not all(u.uniform for u in f.formula.unknowns)]
    known: set[Unknown] = set()
    place = 0
    while place < len(found):
        fresh = found[place].unknowns - known
        known |= fresh
        for unknown in sorted(fresh):
            meant = knowledge.definitions.get(unknown)
            if meant is not None and not unknown.opaque and not launch.of_quotients([unknown]):
                found.append(meant)
        place += 1
    return found


def _of_place(access: Access) -> list[Fact]:
    """What holds where an access is.

    That the number of a loop is in its range says all that there is to say of its turn, and is
    simpler than how many turns there are.
    """
    told = {f.op.operation.parent for f in access.path if f.op is not None and _is_in_loop(f)}
    return [f for f in access.path if f.op is None or f.op.operation not in told]


def _is_in_loop(fact: Fact) -> bool:
    return fact.why == "loop" and fact.op is not None and not _is_loop(fact.op.operation)


def _is_loop(op: ir.Operation) -> bool:
    return rules()[op.name].loop


def _is_come_to(reasoning: Reasoning, turn: Unknown, access: Access) -> bool:
    """Whether a turn is one of its loop where what the loop asks for holds in it.

    Of a `while` that is so where what it asks for holds of every turn before then.
    """
    if not turn.opaque:
        return True
    assert isinstance(turn.about, ir.OpView), "a turn is one of a loop"
    loop = turn.about.operation
    asked = [f.formula for f in access.path if f.op is not None and f.op.operation == loop]
    known = {*reasoning.ids.values(), *reasoning.turns}
    return all(
        all(u.uniform or u in known for u in formula.unknowns) and _is_falling(formula, turn)
        for formula in asked
    )


def _is_falling(formula: Formula, turn: Unknown) -> bool:
    """Whether a formula that holds of a turn holds of those before it."""
    if turn not in formula.unknowns:
        return True
    if isinstance(formula, (All, Any)):
        return all(_is_falling(part, turn) for part in formula.parts)
    if not isinstance(formula, NotNegative):
        return False
    with_turn = [(m, c) for m, c in formula.polynomial.terms if turn in m]
    if not all(u.low >= 0 for m, _ in with_turn for u in m):
        return False
    first = polynomial(t for t in formula.polynomial.terms if turn not in t[0])
    rises = all(c >= 0 for _, c in with_turn) and first.interval[0] >= 0
    return rises or all(c <= 0 for _, c in with_turn)
