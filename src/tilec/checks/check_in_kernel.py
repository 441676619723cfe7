"""E0603, where it is asked for: no access is left to a check in the kernel.

An access is in-kernel if it was not proved inside, and no condition on the arguments makes it so.

    refused                                   accepted
    x.load_at::<64>([64 * p - 1])             x.load_at::<64>([64 * p])
    x.load_at::<64>([(64 * p - 1).max(0)])    x.load_at::<64>([64 * p + 1]), requires!(N % 64 == 1)
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.checks.places import Sources, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.walk import functions, operations
from tilec.proofs.account import is_checked_update, updated_tensor
from tilec.proofs.bounds import Bounds, Verdict
from tilec.proofs.proof import Proof

PASS = "tile-verify-in-kernel"
INLINED = True


def check_in_kernel(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0603 for each access of which only the kernel itself knows, helpers inlined."""
    for function in functions(module):
        yield from in_kernel_checks_of(Proof(function), sources)


def in_kernel_checks_of(proof: Proof, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0603 for each access of a kernel of which only the kernel itself knows."""
    for bounds in proof.bounds:
        if bounds.verdict is Verdict.IN_KERNEL:
            access = bounds.access
            yield _finding(access.op, access.view.tensor, _open_sides(bounds), sources)
    for op in operations(proof.function):
        if is_checked_update(op):
            yield _finding(op, updated_tensor(proof, op), _KNOWN_LATE, sources)


_KNOWN_LATE = "where its elements are is known when it runs"


def _finding(op: ir.OpView, tensor: str, why: str, sources: Sources) -> Diagnostic:
    return Diagnostic(
        "E0603",
        f"the kernel checks whether this access is inside `{tensor}`",
        (Label(place_of(op, sources), why),),
        help="state what makes it so in `requires!`, or allow checks in kernels",
    )


def _open_sides(bounds: Bounds) -> str:
    """Which ends are open, in terms of the view's axes."""
    if bounds.access.starts is None:
        return _KNOWN_LATE
    words = []
    for axis, (low, high) in enumerate(bounds.sides):
        words += [] if low.is_inside_where else [f"below 0 along axis {axis}"]
        words += [] if high.is_inside_where else [f"past the end along axis {axis}"]
    return f"it may be {' and '.join(words)}"
