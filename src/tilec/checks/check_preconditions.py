"""E0203: what launchers have to compute before a launch, they can compute.

That is every `requires!` and the extents of the grid. The type checker has seen that they are over
extents and scalars; whether each operation in them is one that launchers know, the operation says
(`OpRules.host`).

    refused                        accepted
    requires!(s * 2.0 < 1.0)       requires!(s < 0.5)
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.artifact.expression import is_too_deep
from tilec.checks.places import Sources
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.places import span_of
from tilec.ir.walk import functions, operations
from tilec.ops.facts import KnownFacts
from tilec.ops.host_expression import NoHostExpressionError, host_expression
from tilec.ops.registry import rules

PASS = "tile-verify-preconditions"
INLINED = False


def check_preconditions(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0203 for each condition or extent that a launcher cannot compute."""
    for function in functions(module):
        for op in operations(function):
            for value in _computed_by_launchers(op):
                try:
                    is_deep = is_too_deep(host_expression(value))
                except NoHostExpressionError as error:
                    yield _refused(error.location, "a launcher does not compute this", sources)
                    continue
                except RecursionError:
                    is_deep = True
                if is_deep:
                    yield _refused(op.location, "this takes too many operations", sources)


def _computed_by_launchers(op: ir.OpView) -> Iterator[ir.Value]:
    rule = rules()[op.operation.name]
    stated = rule.precondition(op)
    if stated is not None:
        yield stated.condition
    for extent, _ in rule.host_grid(op, KnownFacts()) or ():
        if not isinstance(extent, int):
            yield extent


def _refused(location: ir.Location, what: str, sources: Sources) -> Diagnostic:
    span = span_of(location, dict(sources))
    assert span is not None, "every operation has its place in the source"
    return Diagnostic(
        "E0203",
        "preconditions and grids are arithmetic that a launcher does: integers, and comparisons",
        (Label(span, what),),
    )
