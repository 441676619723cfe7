"""Writes on each access what was proved of it (`tilec.ops.bounds`), for code generation."""

from __future__ import annotations

from tilec.ops.bounds import Inside, Proved, give_proved, give_residual
from tilec.proofs.bounds import Bounds, Side, Verdict
from tilec.proofs.proof import Proof


def mark(proof: Proof) -> None:
    """Mark the accesses of a kernel. Needs a current context."""
    for bounds in proof.bounds:
        if bounds.access.starts is not None:
            give_proved(bounds.access.op, [_proved(proof, bounds, pair) for pair in bounds.sides])


def mark_residual(proof: Proof) -> None:
    """Mark the accesses that every variant checks. Needs a current context."""
    for bounds in proof.bounds:
        if bounds.verdict is Verdict.IN_KERNEL:
            give_residual(bounds.access.op)


def _proved(proof: Proof, bounds: Bounds, pair: tuple[Side, Side]) -> Proved:
    # What was asked with the facts of the place may need them.
    found = Inside.HERE if bounds.access.path else Inside.ANYWHERE
    low, high = (found if side.is_inside else Inside.UNKNOWN for side in pair)
    low_where, high_where = (
        found if side.is_inside or _is_granted(proof, side) else Inside.UNKNOWN for side in pair
    )
    return Proved((low, high), (low_where, high_where))


def _is_granted(proof: Proof, side: Side) -> bool:
    return side.condition is not None and proof.is_granted(side.condition)
