"""Writes on each access what was proved of it (`tilec.ops.bounds`), for code generation."""

from __future__ import annotations

from tilec.ops.bounds import Inside, Proved, give_proved, give_residual
from tilec.proofs.bounds import Bounds, Side, Verdict
from tilec.proofs.proof import Proof


def mark(proof: Proof) -> None:
    """Mark the accesses of a kernel. Needs a current context."""
    for bounds in proof.bounds:
        if bounds.access.starts is not None:
            pairs = zip(bounds.sides, bounds.begins, strict=True)
            give_proved(bounds.access.op, [_proved(bounds, *pair) for pair in pairs])


def mark_residual(proof: Proof) -> None:
    """Mark the accesses that the code checks whatever the arguments. Needs a current context."""
    for bounds in proof.bounds:
        if bounds.verdict is Verdict.IN_KERNEL:
            give_residual(bounds.access.op)


def _proved(bounds: Bounds, sides: tuple[Side, Side], begins: bool) -> Proved:
    # What was asked with the facts of the place may need them.
    found = Inside.HERE if bounds.access.path else Inside.ANYWHERE
    low, high = (found if side.is_inside else Inside.UNKNOWN for side in sides)
    return Proved(low, high, found if begins else Inside.UNKNOWN)
