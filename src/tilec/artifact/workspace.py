"""The workspace of a pipeline: how many bytes, and where in it each temporary lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilec.artifact.abi import COUNT_LIMIT, ELEMENT_BYTES, ELEMENT_LIMIT
from tilec.artifact.expression import Expression, TooLarge, Value, evaluate, too_large
from tilec.artifact.pipeline import Pipeline

# Each slot starts at a multiple of it, as what `cuMemAlloc` gives does: tensor maps, and accesses
# of 16 bytes, are open to every temporary.
SLOT_ALIGNMENT_BYTES = 256


class WorkspaceError(ValueError):
    """A temporary cannot have the extents that it would have, or all of them the bytes; the message
    says which."""


@dataclass(frozen=True)
class Workspace:
    """One block of memory that holds all temporaries of a pipeline.

    `extents` and `offsets` go by the temporaries' names. `apart` is how much they would take side
    by side.

    Units:    offsets, `bytes` and `apart` are bytes; the block starts at a multiple of
              SLOT_ALIGNMENT_BYTES
    """

    bytes: int
    apart: int
    offsets: Mapping[str, int]
    extents: Mapping[str, tuple[int, ...]]


def workspace_of(pipeline: Pipeline, values: Mapping[str, Value]) -> Workspace:
    """The workspace where `Dim`s and scalars have these values.

    Slots lie one after the other, each as large as the largest temporary in it.

    Raises:   WorkspaceError for an extent below 0 or above COUNT_LIMIT, or that takes numbers of
              more than 64 bits to compute, for more elements than ELEMENT_LIMIT, extents of 0
              counted as 1, and for more bytes than there are addresses
    """
    extents = {t.name: _extents(t.name, t.extents, values) for t in pipeline.temporaries}
    sizes = {
        t.name: _rounded_up(prod(extents[t.name]) * ELEMENT_BYTES[t.element])
        for t in pipeline.temporaries
    }
    slot_bytes: dict[int, int] = {}
    for t in pipeline.temporaries:
        slot_bytes[t.slot] = max(slot_bytes.get(t.slot, 0), sizes[t.name])
    starts: dict[int, int] = {}
    end = 0
    for slot in sorted(slot_bytes):
        starts[slot] = end
        end += slot_bytes[slot]
    if end >= 1 << 63:
        raise WorkspaceError(f"the workspace has {end} bytes, more than there are addresses")
    offsets = {t.name: starts[t.slot] for t in pipeline.temporaries}
    return Workspace(end, sum(sizes.values()), offsets, extents)


def _extents(
    name: str, extents: tuple[Expression, ...], values: Mapping[str, Value]
) -> tuple[int, ...]:
    found = tuple(_extent(name, extent, values) for extent in extents)
    if prod(max(1, extent) for extent in found) > ELEMENT_LIMIT:
        raise WorkspaceError(f"the temporary `{name}` has more than 2^60 elements")
    return found


def _extent(name: str, expression: Expression, values: Mapping[str, Value]) -> int:
    try:
        extent = int(evaluate(expression, values))
    except TooLarge:
        raise WorkspaceError(too_large(expression, values)) from None
    if not 0 <= extent <= COUNT_LIMIT:
        raise WorkspaceError(f"the temporary `{name}` has the extent {extent}")
    return extent


def _rounded_up(size: int) -> int:
    return -(-size // SLOT_ALIGNMENT_BYTES) * SLOT_ALIGNMENT_BYTES
