"""E0604: some launch fulfils all preconditions of a kernel.

Each `requires!` may be right by itself and the kernel still never run: together they leave no
arguments, or only such that the grid has no programs. What was proved of such a kernel would be
worth nothing. Only what can be decided is refused: preconditions that the proofs cannot follow are
accepted.

    refused                                    accepted
    requires!(N >= 10); requires!(N < 5);      requires!(N >= 10); requires!(N < 50);
    requires!(N % 2 == 3);                     requires!(N % 2 == 1);
    grid = [N / 128], requires!(N <= 64);      grid = [N.div_ceil(128)], requires!(N <= 64);
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from tilec.checks.places import Sources, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.integers.budget import Phase
from tilec.integers.formula import FALSE
from tilec.integers.satisfiable import can_hold
from tilec.integers.solver import Undecided
from tilec.ir.walk import functions
from tilec.proofs.knowledge import Fact, Knowledge
from tilec.proofs.reasoning import Reasoning

PASS = "tile-verify-launchable"
INLINED = True


def check_launchable(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0604 for each kernel that no launch executes, helpers inlined."""
    for function in functions(module):
        yield from contradictions_of(Reasoning.of(function), sources)


def contradictions_of(reasoning: Reasoning, sources: Sources) -> Iterator[Diagnostic]:
    """The preconditions of a kernel that contradict each other: one finding at most."""
    with reasoning.budget.phase(Phase.LAUNCHES):
        needed = _contradiction(reasoning.knowledge)
    # Of what the source states: a grid without programs is no contradiction by itself.
    if any(f.why == "requires" for f in needed):
        yield _finding(needed, sources)


def _contradiction(knowledge: Knowledge) -> list[Fact]:
    """Preconditions and facts of the grid that contradict each other; none if nothing does."""
    facts = knowledge.facts
    if not any(f.why == "requires" for f in facts) or not _contradict(knowledge, facts):
        return []
    return _needed(knowledge, facts)


def _contradict(knowledge: Knowledge, facts: Sequence[Fact]) -> bool:
    formulas = [f.formula for f in facts]
    if FALSE in formulas:
        return True
    meant = knowledge.context(formulas, (), wide=False, only=True)
    try:
        return not can_hold([*meant, *knowledge.limits_of(meant)])
    except Undecided:
        return False


def _needed(knowledge: Knowledge, facts: Sequence[Fact]) -> list[Fact]:
    """Facts that contradict each other, none of which can be left out; the grid's go first."""
    kept = sorted(facts, key=lambda fact: fact.why != "grid")
    for fact in list(kept):
        fewer = [other for other in kept if other is not fact]
        if _contradict(knowledge, fewer):
            kept = fewer
    return kept


def _finding(facts: Sequence[Fact], sources: Sources) -> Diagnostic:
    stated = [fact.op for fact in facts if fact.why == "requires" and fact.op is not None]
    with_grid = len(stated) < len(facts)
    *others, last = stated
    then = "the grid has no programs" if with_grid else "this never holds"
    if others:
        then = "and this: the grid has no programs" if with_grid else "and this: never at once"
    return Diagnostic(
        "E0604",
        "no launch fulfils what the kernel requires",
        (
            Label(place_of(last, sources), then),
            *(Label(place_of(op, sources), "this") for op in others),
        ),
        help="state what is meant, or leave out what is not needed",
    )
