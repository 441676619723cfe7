"""E0103 for each operation that has a meaning but no code on a GPU yet.

Before:   helpers inlined
Asked by `build` only: `check` and the CPU execution take every operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlir import ir

from tilec.diagnostics import Diagnostic, Label
from tilec.ir.places import span_of
from tilec.ir.walk import operations
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules
from tilec.source import SourceFile, Span

PASS = "tile-verify-gpu-code"
INLINED = True


def check_gpu_code(module: ir.Module, sources: Mapping[str, SourceFile]) -> Iterator[Diagnostic]:
    """One finding for each place in the source, in program order."""
    seen: set[Span] = set()
    for kernel in module.body.operations:
        for op in operations(kernel):
            rule = rules()[op.operation.name]
            if rule.terminator or type(rule).lower is not OpRules.lower:
                continue
            span = span_of(op.location, dict(sources))
            assert span is not None, "every operation has its place in the source"
            if span not in seen:
                seen.add(span)
                yield no_gpu_code(span)


def no_gpu_code(span: Span) -> Diagnostic:
    """The finding for an operation at this place."""
    return Diagnostic(
        "E0103",
        "this operation has no code for the GPU in this version of tilec",
        (Label(span),),
        notes=("`tilec check` and the CPU execution take it",),
    )
