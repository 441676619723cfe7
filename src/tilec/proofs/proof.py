"""Everything that is proved of one kernel, each part found when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from mlir import ir

from tilec.integers.conditions import Condition, Floor
from tilec.integers.division import is_floor
from tilec.integers.formula import Formula, negated
from tilec.integers.polynomial import Polynomial, Unknown, number, variable
from tilec.ops.rules import HostExpression
from tilec.proofs.bounds import Bounds, find_bounds
from tilec.proofs.coverage import Coverage, find_coverage
from tilec.proofs.launch_conditions import expression_of, formula_of
from tilec.proofs.races import Race, find_races
from tilec.proofs.reasoning import Reasoning


@dataclass
class Proof:
    """One kernel of a module, helpers inlined and not changed since."""

    function: ir.OpView
    _granted: dict[Condition, bool] = field(default_factory=dict)

    @cached_property
    def reasoning(self) -> Reasoning:
        return Reasoning.of(self.function)

    @cached_property
    def races(self) -> list[Race]:
        return list(find_races(self.reasoning))

    @cached_property
    def bounds(self) -> list[Bounds]:
        return find_bounds(self.reasoning)

    @cached_property
    def coverage(self) -> list[Coverage]:
        return find_coverage(self.reasoning, self.function)

    @cached_property
    def names(self) -> dict[Unknown, str]:
        """The names of what launchers know."""
        known = {**self.reasoning.dims, **self.reasoning.scalars}
        return {unknown: name for name, unknown in known.items()}

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of launch-checked accesses that can all hold in one launch, none twice."""
        return tuple(self._chosen)

    def is_granted(self, condition: Condition) -> bool:
        """Whether a condition holds where all of `conditions` do."""
        chosen = self._chosen.values()
        if condition not in self._granted:
            formulas = [*chosen, negated(formula_of(condition, self._floor))]
            self._granted[condition] = not self.reasoning.knowledge.possible(formulas, [])
        return self._granted[condition]

    @cached_property
    def _chosen(self) -> dict[Condition, Formula]:
        possible = self.reasoning.knowledge.possible
        chosen: dict[Condition, Formula] = {}
        for condition in dict.fromkeys(c for bounds in self.bounds for c in bounds.conditions):
            formula = formula_of(condition, self._floor)
            if possible([*chosen.values(), formula], []):
                chosen[condition] = formula
        for condition, formula in list(chosen.items()):
            rest = [other for other in chosen.values() if other is not formula]
            if rest and not possible([*rest, negated(formula)], []):
                del chosen[condition]  # the rest says so
        self._granted = dict.fromkeys(chosen, True)
        return chosen

    def expression_of(self, condition: Condition) -> HostExpression:
        return expression_of(condition, self.names)

    def _floor(self, floor: Floor) -> Polynomial:
        dividend: Polynomial = number(floor.dividend.constant)
        for coefficient, term in floor.dividend.terms:
            value = self._floor(term) if isinstance(term, Floor) else variable(term)
            dividend = dividend + value.scaled(coefficient)
        knowledge = self.reasoning.knowledge
        unknown = knowledge.unknown("quotient", (floor.low, floor.high), uniform=True)
        meant = is_floor(variable(unknown), dividend, number(floor.divisor))
        return knowledge.define(unknown, meant)
