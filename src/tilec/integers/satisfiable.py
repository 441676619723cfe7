"""Whether formulas can hold together, by the quickest way that finds out.

Where unknowns are multiplied, inequalities are multiplied first (`refutation.py`); what that leaves
open, and all that is linear, is searched (`solver.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.integers import solver
from tilec.integers.formula import Formula
from tilec.integers.refutation import contradict, has_products

_POINTS = 100


def can_hold(formulas: Sequence[Formula], *, effort: int = 1, points: int = _POINTS) -> bool:
    """Whether all formulas can hold together.

    Raises:   Undecided
    """
    if has_products(formulas):
        is_contradiction = contradict(formulas)
        if is_contradiction is not None:
            return not is_contradiction
    return solver.can_hold(formulas, effort=effort, points=points)
