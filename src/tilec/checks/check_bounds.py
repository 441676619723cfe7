"""E0601: an access that can execute has elements inside its tensor, for some arguments at least.

Loads and stores past the end are defined, so only what can never be meant is an error. What is
proved inside, and what is not, `tilec.proofs.bounds` says.

    refused                                          accepted
    y.store::<256>([p + 4], t), y: Tensor<f32, 1024>   y.store::<256>([p], t)
    x.load::<64>([N.div_ceil(64)])                   x.load::<64>([N / 64])
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.checks.places import Sources, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.walk import functions
from tilec.proofs.access import Access
from tilec.proofs.bounds import is_never_inside
from tilec.proofs.reasoning import Reasoning


def check_bounds(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0601 for each access that is always outside, helpers inlined."""
    for function in functions(module):
        yield from outside_of(Reasoning.of(function), sources)


def outside_of(reasoning: Reasoning, sources: Sources) -> Iterator[Diagnostic]:
    """The findings for one kernel, in program order."""
    for access in reasoning.accesses:
        if access.starts is None or access.is_unsafe:
            continue
        if is_never_inside(reasoning, access):
            yield _finding(access, sources)


def _finding(access: Access, sources: Sources) -> Diagnostic:
    name = access.view.tensor
    verb, then = ("stores to", "stores nothing") if access.writes else ("loads from", "is all fill")
    extents = ", ".join(map(str, access.view.extents))
    return Diagnostic(
        "E0601",
        f"no element of this access is ever inside `{name}`",
        (Label(place_of(access.op, sources), f"{verb} `{name}`, whose extents are [{extents}]"),),
        notes=(f"whatever the arguments are, it {then}",),
        help="a tile index counts tiles, from 0: the last one is `extent.div_ceil(tile) - 1`",
    )
