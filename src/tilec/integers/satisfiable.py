"""Whether formulas can hold together, by the quickest way that finds out.

Where unknowns are multiplied, inequalities are multiplied first (`refutation.py`); what that leaves
open, and all that is linear, is searched (`solver.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.integers import solver
from tilec.integers.answers import remembered
from tilec.integers.budget import SHARE, portion
from tilec.integers.formula import Formula
from tilec.integers.isl_sets import one_question
from tilec.integers.refutation import contradict, has_products

# The part of the steps that inequalities may be multiplied for; the rest is for the search, which
# mostly sees at once what it sees at all.
_PART_OF_PRODUCTS = 0.75


def can_hold(formulas: Sequence[Formula], *, part: float = SHARE) -> bool:
    """Whether all formulas can hold together.

    `part` is of the steps that are left.

    Raises:   Undecided, where it would take more
    """
    with one_question(part, is_eager=False):
        return remembered(_is_possible, formulas)


def _is_possible(formulas: Sequence[Formula]) -> bool:
    if has_products(formulas):
        with portion(_PART_OF_PRODUCTS):
            is_contradiction = contradict(formulas)
        if is_contradiction is not None:
            return not is_contradiction
    return solver.is_possible(formulas)
