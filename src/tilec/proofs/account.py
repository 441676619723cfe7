"""What was proved of a kernel, as manifests and reports say it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mlir import ir

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Access, Condition, Coverage
from tilec.proofs.bounds import Bounds, Verdict, needed_facts
from tilec.proofs.knowledge import Fact
from tilec.proofs.proof import Proof


def conditions_of(proof: Proof) -> tuple[Condition, ...]:
    """The conditions of the variant without masks."""
    expressions = map(proof.expression_of, proof.conditions)
    return tuple(Condition(text_of(e), e) for e in expressions)


def accesses_of(proof: Proof) -> tuple[Access, ...]:
    """Every access, in program order."""
    return tuple(_access(proof, bounds) for bounds in proof.bounds)


def coverage_of(proof: Proof) -> tuple[Coverage, ...]:
    """What is done with each tensor that the kernel may write."""
    return tuple(Coverage(c.tensor, c.writes_all, c.reads_first) for c in proof.coverage)


def _access(proof: Proof, bounds: Bounds) -> Access:
    op = bounds.access.op
    facts: tuple[Fact, ...] = ()
    if bounds.verdict is Verdict.PROVED:
        facts = needed_facts(proof.reasoning, bounds.access)
    return Access(
        file=Path(op.location.filename).name,
        line=op.location.start_line,
        column=op.location.start_col,
        what=op.operation.name.removeprefix("tile."),
        tensor=bounds.access.view.tensor,
        verdict=bounds.verdict.value,
        conditions=tuple(text_of(proof.expression_of(c)) for c in bounds.conditions),
        facts=tuple(dict.fromkeys(_texts(facts))),
    )


def _texts(facts: tuple[Fact, ...]) -> Iterator[str]:
    for fact in facts:
        if fact.op is None:
            yield "the grid"
        elif fact.why == "requires":
            yield f"requires!({ir.StringAttr(fact.op.attributes['text']).value})"
        else:
            what = "loop" if fact.why == "loop" else "condition"
            yield f"the {what} at line {fact.op.location.start_line}"
