"""W0701: registers of a kernel go to memory and back, for there are too few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlir import ir

from tilec.artifact.manifest import Kernel, Variant
from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.ir.places import span_of
from tilec.source import SourceFile

# ptxas gives up so many bytes a thread for a block more on a processor, or for 32 warps in one.
FEW_BYTES = 32


def spills_of(
    location: ir.Location, built: Mapping[str, Kernel], sources: dict[str, SourceFile]
) -> Iterator[Diagnostic]:
    """Yields W0701, once, of the variant of one instance that spills most; `built` by target."""
    spans = [(target, one) for target, kernel in built.items() for one in kernel.variants]
    target, variant = max(spans, key=lambda found: spilled_bytes(found[1]))
    if spilled_bytes(variant) <= FEW_BYTES:
        return
    span = span_of(location, sources)
    assert span is not None, "every kernel has its place in the source"
    symbol = built[target].symbol
    where = "" if variant.symbol == symbol else f", in its variant `{variant.symbol}`"
    stored, loaded = variant.spill_store_bytes, variant.spill_load_bytes
    yield Diagnostic(
        "W0701",
        f"`{symbol}` spills registers: each thread stores {stored} bytes and loads {loaded}",
        (Label(span, f"has {variant.registers} registers a thread for {target}{where}"),),
        help=_help(variant),
        severity=Severity.WARNING,
    )


def spilled_bytes(variant: Variant) -> int:
    """What each thread moves in all."""
    return variant.spill_store_bytes + variant.spill_load_bytes


def _help(variant: Variant) -> str:
    return (
        "give each thread less to hold: smaller tiles, or more warps by `#[hint(warps = …)]` "
        f"(a block has {variant.threads // 32})"
    )
