"""What a schedule says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlir import ir

from tilec.ops.notes import place_of


@dataclass(frozen=True)
class Reason:
    """Something that was decided, and why."""

    what: str
    why: str


def at(op: ir.OpView) -> str:
    """Where an operation is in the source, to go on after what it is; empty if nobody knows."""
    place = place_of(op.location)
    return f" at {Path(place.file).name}:{place.line}:{place.column}" if place.file else ""
