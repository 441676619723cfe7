"""E0603, where it is asked for: no access is left to a check in the kernel.

An access is in-kernel if it was not proved inside, and no condition on the arguments makes it so.

    refused                                   accepted
    x.load_at::<64>([64 * p - 1])             x.load_at::<64>([64 * p])
    x.load_at::<64>([(64 * p - 1).max(0)])    x.load_at::<64>([64 * p + 1]), requires!(N % 64 == 1)
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.checks.places import Sources, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.proofs.bounds import Bounds, Verdict
from tilec.proofs.proof import Proof


def in_kernel_checks_of(proof: Proof, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0603 for each access of a kernel that keeps its mask in every variant."""
    for bounds in proof.bounds:
        if bounds.verdict is Verdict.IN_KERNEL:
            yield _finding(bounds, sources)


def _finding(bounds: Bounds, sources: Sources) -> Diagnostic:
    access = bounds.access
    return Diagnostic(
        "E0603",
        f"the kernel checks whether this access is inside `{access.view.tensor}`",
        (Label(place_of(access.op, sources), _open_sides(bounds)),),
        help="state what makes it so in `requires!`, or allow checks in kernels",
    )


def _open_sides(bounds: Bounds) -> str:
    """Which ends are open, in terms of the view's axes."""
    if bounds.access.starts is None:
        return "where its elements are is known when it runs"
    words = []
    for axis, (low, high) in enumerate(bounds.sides):
        words += [] if low.is_inside_where else [f"below 0 along axis {axis}"]
        words += [] if high.is_inside_where else [f"past the end along axis {axis}"]
    return f"it may be {' and '.join(words)}"
