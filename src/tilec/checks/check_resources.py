"""E0702 for each tile that the registers of the largest block of threads cannot hold.

Algorithm: a tile is spread over all threads of a block; each holds its share in 32-bit registers;
if the share in the largest block is more than a thread can have, no schedule makes it fit. Tiles
that fit one by one may still not fit together: those spill, and the manifest says how much.

Sound as a refusal: shared memory holds less than the registers do, so there is no other place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod

from mlir import ir

from tilec.diagnostics import Diagnostic, Label
from tilec.ir.places import span_of
from tilec.ir.walk import functions, operations
from tilec.source import SourceFile, Span
from tilec.target.description import Target

PASS = "tile-verify-resources"
INLINED = False

_REGISTER_BITS = 32


def check_resources(
    module: ir.Module, sources: Mapping[str, SourceFile], target: Target
) -> Iterator[Diagnostic]:
    """One finding for each place in the source, in program order."""
    seen: set[Span] = set()
    for function in functions(module):
        for op in operations(function):
            needed = max((_registers(result.type, target) for result in op.results), default=0)
            if needed <= target.registers_per_thread:
                continue
            span = span_of(op.location, dict(sources))
            assert span is not None, "every operation has its place in the source"
            if span not in seen:
                seen.add(span)
                yield _too_big(span, needed, target)


def _registers(kind: ir.Type, target: Target) -> int:
    """The registers that each thread of the largest block needs for a tile; 0 for what is none."""
    if not isinstance(kind, ir.RankedTensorType):
        return 0
    element = kind.element_type
    width: int = 64 if isinstance(element, ir.IndexType) else int(element.width)
    elements = ceil(int(prod(kind.shape)) / target.threads_per_block)
    return ceil(elements * max(width, 8) / _REGISTER_BITS)


def _too_big(span: Span, needed: int, target: Target) -> Diagnostic:
    return Diagnostic(
        "E0702",
        f"this tile needs {needed} registers in each of {target.threads_per_block} threads, "
        f"a thread has {target.registers_per_thread}",
        (Label(span),),
        help="work on smaller tiles, in a loop or with a larger grid",
    )
