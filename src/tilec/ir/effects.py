"""What operations do beside giving results: the one place that says so.

MLIR's Python bindings do not tell effects. Those of our operations stand in their dialects' files;
those of others are told by their names here, and what no name tells is taken to do anything.
"""

from __future__ import annotations

from enum import Enum, auto

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.types import is_tile

# Dialects of which no operation does more than to compute. Those of `linalg` are on tiles.
_COMPUTING = ("arith.", "math.", "tensor.", "linalg.")
_CONTROL = ("scf.",)
# The end of a role, which hands on nothing.
_END_OF_ROLE = "gpu.yield"
# What computes views, or extents of one.
_VIEWS = frozenset(
    f"memref.{name}"
    for name in (
        "cast",
        "collapse_shape",
        "dim",
        "expand_shape",
        "extract_aligned_pointer_as_index",
        "extract_strided_metadata",
        "memory_space_cast",
        "reinterpret_cast",
        "subview",
        "transpose",
    )
)


class Effect(Enum):
    """What an operation does."""

    NONE = auto()  # it gives results, which depend on its operands alone
    REGIONS = auto()  # what its regions do
    READS = auto()
    WRITES = auto()  # it may read, too, and be atomic
    OTHER = auto()  # it orders, waits or ends, or that is not known


def effect_of(op: ir.OpView) -> Effect:
    """What an operation does, that of its regions left out.

    The combiner of a reduction or scan computes and does nothing else.
    """
    name: str = op.operation.name
    declared = declarations().get(name)
    if declared is None:
        return _of_others(name)
    if declared.writes or declared.updates:
        return Effect.WRITES
    if declared.reads:
        return Effect.READS
    return Effect.NONE if declared.pure else Effect.OTHER


def _of_others(name: str) -> Effect:
    if name.startswith(_COMPUTING) or name in _VIEWS or name == _END_OF_ROLE:
        return Effect.NONE
    if name.startswith(_CONTROL):
        return Effect.REGIONS
    return {"memref.load": Effect.READS, "memref.store": Effect.WRITES}.get(name, Effect.OTHER)


def only_computes(op: ir.OpView) -> bool:
    """Whether its results are all that there is of it, and depend on its operands alone."""
    return effect_of(op) is Effect.NONE


def computes_numbers(op: ir.OpView) -> bool:
    """Whether it only computes numbers or views, without tiles: any thread may do it for itself."""
    return only_computes(op) and not has_tile(op)


def is_of_numbers(op: ir.OpView) -> bool:
    """As `computes_numbers`, or control flow that no tile goes through."""
    return effect_of(op) in (Effect.NONE, Effect.REGIONS) and not has_tile(op)


def has_tile(op: ir.OpView) -> bool:
    """Whether a tile is among its operands or results."""
    return any(is_tile(value) for value in (*op.operands, *op.results))
