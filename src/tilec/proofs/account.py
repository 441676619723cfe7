"""What was proved of a kernel, as manifests and reports say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mlir import ir

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Access, Touched
from tilec.artifact.signature import Coverage
from tilec.ir.dialect import declarations
from tilec.ir.walk import operations
from tilec.ops.abstract import AbstractView
from tilec.proofs.bounds import Bounds, Verdict, needed_facts
from tilec.proofs.knowledge import Fact
from tilec.proofs.proof import Proof
from tilec.proofs.touched import touched_extents
from tilec.proofs.unwritten import unwritten

# Of an access whose elements are chosen by indices that may be data: the code asks for each.
DATA_DEPENDENT = "data-dependent"
# Of an access that is left to the kernel because proofs came to the end of their budget.
NOT_DECIDED = "not decided within the budget (`--proof-budget`)"


def accesses_of(proof: Proof) -> tuple[Access, ...]:
    """Every access, in program order; atomic updates too, of which nothing is asked."""
    proved: dict[ir.Operation, list[Bounds]] = {}
    for bounds in proof.bounds:
        proved.setdefault(bounds.access.op.operation, []).append(bounds)
    found = []
    for op in operations(proof.function):
        found += [_access(proof, bounds) for bounds in proved.get(op.operation, ())]
        if is_update(op):
            found.append(_update(proof, op))
    return tuple(found)


def is_update(op: ir.OpView) -> bool:
    """Whether it updates elements atomically."""
    declared = declarations().get(op.operation.name)
    return declared is not None and bool(declared.updates)


def is_checked_update(op: ir.OpView) -> bool:
    """Whether it updates elements of which the kernel asks whether they are inside.

    A tensor without axes has nothing outside.
    """
    if not is_update(op) or "unchecked" in op.attributes:
        return False
    return bool(ir.MemRefType(op.operands[0].type).rank)


def coverage_of(proof: Proof, given: Mapping[str, int] | None = None) -> tuple[Coverage, ...]:
    """What is done with each tensor that the kernel may write; `given` are scalars of a launch."""
    told = proof.coverage_given(given or {})
    return tuple(Coverage(c.tensor, c.writes_all, c.reads_first) for c in told)


def touched_of(proof: Proof) -> tuple[Touched, ...]:
    """What all programs touch of tensors of which it is not the whole, as far as that is known."""
    found = []
    written = {one.tensor for one in proof.coverage if one.writes_all}
    for tensor, writes in dict.fromkeys(
        (a.view.tensor, a.writes) for a in proof.reasoning.accesses
    ):
        if writes and tensor in written:
            continue
        told = touched_extents(proof.touching(tensor, writes=writes))
        # At most so much is read, and that may be said; what is written in part must be exact.
        if told is not None and (told.is_exact if writes else told.is_part):
            found.append(Touched(tensor, "written" if writes else "read", told.counts))
    return tuple(found)


def shortfall_of(proof: Proof, tensor: str, given: Mapping[str, int] | None = None) -> str | None:
    """Why a kernel is not known to write a tensor in full; None where it is.

    Goes on after "writes x": an element that it does not write, if one is found, or what is not
    decided.
    """
    [told] = [one for one in proof.coverage_given(given or {}) if one.tensor == tensor]
    if told.writes_all:
        return None
    if not told.is_written:
        return "by atomic updates only" if _is_updated(proof, tensor) else "nowhere"
    left = unwritten(proof.reasoning, tensor, given)
    if left is not None:
        element = f"{tensor}[{', '.join(map(str, left.element))}]"
        return f"in part: not {element}{f' at {left.arguments}' if left.arguments else ''}"
    if not told.doubts:
        return "in full or not, which is not decided"
    doubt = told.doubts[0]
    place = f"the store at line {doubt.access.op.location.start_line}"
    return f"in full or not, which is not decided: of {place}, {doubt.why}; {doubt.way_out}"


def _is_updated(proof: Proof, tensor: str) -> bool:
    updates = (op for op in operations(proof.function) if is_update(op))
    return any(updated_tensor(proof, op) == tensor for op in updates)


def updated_tensor(proof: Proof, op: ir.OpView) -> str:
    """The parameter that an atomic update is of."""
    view = proof.reasoning.value_of(op.operands[0])
    assert isinstance(view, AbstractView), "what is updated is a view"
    return view.tensor


def _access(proof: Proof, bounds: Bounds) -> Access:
    facts: tuple[str, ...] = ()
    if bounds.verdict is Verdict.PROVED:
        facts = tuple(_texts(needed_facts(proof.reasoning, bounds.access)))
    elif bounds.verdict is Verdict.IN_KERNEL and bounds.access.starts is None:
        facts = (DATA_DEPENDENT,)
    elif bounds.is_given_up:
        facts = (NOT_DECIDED,)
    conditions = tuple(text_of(proof.expression_of(c)) for c in bounds.conditions)
    op = bounds.access.op
    what = op.operation.name.removeprefix("tile.")
    return _row(op, what, bounds.access.view.tensor, bounds.verdict, conditions, facts)


def _update(proof: Proof, op: ir.OpView) -> Access:
    what = f"atomic {ir.StringAttr(op.attributes['update']).value}"
    is_checked = is_checked_update(op)
    otherwise = Verdict.UNCHECKED if "unchecked" in op.attributes else Verdict.PROVED
    verdict = Verdict.IN_KERNEL if is_checked else otherwise
    facts = (DATA_DEPENDENT,) if is_checked else ()
    return _row(op, what, updated_tensor(proof, op), verdict, (), facts)


def _row(
    op: ir.OpView,
    what: str,
    tensor: str,
    verdict: Verdict,
    conditions: tuple[str, ...],
    facts: tuple[str, ...],
) -> Access:
    return Access(
        file=Path(op.location.filename).name,
        line=op.location.start_line,
        column=op.location.start_col,
        what=what,
        tensor=tensor,
        verdict=verdict.value,
        conditions=conditions,
        facts=tuple(dict.fromkeys(facts)),
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
