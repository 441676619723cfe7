"""Everything that is proved of one kernel, each part found when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mlir import ir

from tilec.compilation import DEFAULT_PROOF_BUDGET
from tilec.integers.budget import Budget, Phase
from tilec.integers.conditions import Condition
from tilec.integers.polynomial import Unknown
from tilec.ops.rules import HostExpression
from tilec.proofs.bounds import Bounds, find_bounds
from tilec.proofs.coverage import Coverage, find_coverage
from tilec.proofs.launch_conditions import expression_of
from tilec.proofs.races import Race, find_races
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.stores import Touching


@dataclass
class Proof:
    """One kernel of a module, helpers inlined and not changed since, proved in so many steps."""

    function: ir.OpView
    steps: int = DEFAULT_PROOF_BUDGET
    _touching: dict[tuple[str, bool], Touching] = field(default_factory=dict, init=False)

    @cached_property
    def reasoning(self) -> Reasoning:
        return Reasoning.of(self.function, Budget(self.steps))

    @cached_property
    def races(self) -> list[Race]:
        return list(find_races(self.reasoning))

    @cached_property
    def bounds(self) -> list[Bounds]:
        return find_bounds(self.reasoning)

    @cached_property
    def coverage(self) -> list[Coverage]:
        with self.reasoning.budget.phase(Phase.COVERAGE):
            return find_coverage(self.reasoning, self.function, self._stores_of)

    def coverage_given(self, scalars: Mapping[str, int]) -> list[Coverage]:
        """The same where a launch gives some scalars."""
        known = scalars.keys() & self.reasoning.scalars.keys()
        if not known or all(one.writes_all for one in self.coverage):
            return self.coverage
        with self.reasoning.budget.phase(Phase.COVERAGE):
            return find_coverage(self.reasoning, self.function, self._stores_of, scalars)

    def touching(self, tensor: str, *, writes: bool) -> Touching:
        """What the loads, or the stores, of a tensor touch, found once.

        Assumes:  there are some
        """
        if (tensor, writes) not in self._touching:
            accesses = [
                a for a in self.reasoning.accesses if a.view.tensor == tensor and a.writes == writes
            ]
            self._touching[tensor, writes] = Touching.of(self.reasoning, accesses)
        return self._touching[tensor, writes]

    def _stores_of(self, tensor: str) -> Touching:
        return self.touching(tensor, writes=True)

    @cached_property
    def names(self) -> dict[Unknown, str]:
        """The names of what launchers know."""
        known = {**self.reasoning.dims, **self.reasoning.scalars}
        return {unknown: name for name, unknown in known.items()}

    def expression_of(self, condition: Condition) -> HostExpression:
        return expression_of(condition, self.names)
