"""Which copies the blocks of a cluster could share, and whether they are to.

Programs that follow each other along an axis of the grid read the same tile wherever its indices do
not depend on that axis. Then each of as many blocks copies a part of it to all of them: it comes
from L2 once. Nothing else of the kernel matters, but for two conditions:

- the blocks must take the slots of what they share alike, so how often they do must be the same in
  all programs. (Not along that axis alone: the programs that no group is left for follow each other
  along others.)
- a block for which no program is left does another block's once more, and must not be seen to. So
  updates of memory may give nothing that goes on being used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.walk import operations
from tilec.layout.shares import Shares
from tilec.ops.lowering import Cluster
from tilec.ops.program_axes import ANY_AXIS, ProgramAxes, around
from tilec.schedule.bound import busy
from tilec.schedule.products import Copied, Product
from tilec.target.description import Target

# What is taken where nobody says: blocks of a cluster, and the least share of what is copied that
# they must save. Measured (docs/notes.md).
_BLOCKS = 2
_LEAST_SAVED = 1 / 4


@dataclass(frozen=True)
class Sharing:
    """A cluster, the copies that its blocks share, and why; or why there is none."""

    cluster: Cluster | None
    shared: tuple[Copied, ...]
    what: str
    why: str


def sharing(
    function: ir.OpView,
    copies: Sequence[Copied],
    products: Sequence[Product],
    hints: Mapping[str, Any],
    target: Target,
    *,
    is_persistent: bool,
) -> Sharing | None:
    """What is shared of these copies, which loops do for products; None where it is not worth a
    word."""
    asked = _asked(hints.get("cluster"))
    blocks, axis = asked or (_BLOCKS, None)
    if blocks == 1 or not (asked or _is_much(copies, products, target)):
        return None
    least = 0.0 if asked else _LEAST_SAVED
    found = _found(function, copies, blocks, axis, least, target, is_persistent=is_persistent)
    if isinstance(found, Sharing):
        return found
    return Sharing(None, (), "no cluster", found) if asked else None


def _is_much(copies: Sequence[Copied], products: Sequence[Product], target: Target) -> bool:
    """Whether products would wait for L2, if each block copied everything, and turns are long."""
    assert target.rates and target.roles, f"{target.name} has no asynchronous products"
    turning = [one for one in products if any(copied in copies for copied in one.copied)]
    cycles, limits = busy(turning, 0, target.rates).tensor, target.roles
    return cycles >= limits.cluster_cycles and _bytes(copies) > limits.l2_bytes * cycles


def _asked(hint: int | tuple[int, ...] | None) -> tuple[int, int | None] | None:
    """How many blocks, and along which axis if that is said; 0 blocks where that cannot be."""
    if hint is None or isinstance(hint, int):
        return None if hint is None else (hint, None)
    longer = [axis for axis, blocks in enumerate(hint) if blocks > 1]
    if not longer:
        return 1, None
    return (hint[longer[0]], longer[0]) if len(longer) == 1 else (0, None)


def _found(
    function: ir.OpView,
    copies: Sequence[Copied],
    blocks: int,
    axis: int | None,
    least: float,
    target: Target,
    *,
    is_persistent: bool,
) -> Sharing | str:
    """`least`: what must be saved of all bytes that are copied."""
    if blocks & (blocks - 1) or not 1 < blocks <= target.cluster_blocks:
        return f"it is of a power of two of blocks, {target.cluster_blocks} at most, along one axis"
    if not is_persistent:
        return "each block does one program only"
    if any(_gives_what_was(op) for op in operations(function)):
        return "an update gives what was there before, which a program may do once only"
    axes = ProgramAxes()
    steady = [one for one in copies if not axes.of_all(around(one.load))]
    if not steady:
        return "how often tiles are copied depends on the program"
    cut = [one for one in steady if Shares.of(one.tile, blocks) is not None]
    by_axis = {
        chosen: [one for one in cut if chosen not in axes.of_all(one.indices)]
        for chosen in _axes_of(axes, copies, axis)
    }
    if not any(by_axis.values()):
        return "no tile that is the same in neighbours has parts for all blocks"
    # Of equals the first: rows of programs.
    best = max(by_axis, key=lambda chosen: (_bytes(by_axis[chosen]), -chosen))
    shared = by_axis[best]
    saved = _bytes(shared) * (blocks - 1) // blocks
    if saved < least * _bytes(copies):
        return f"{saved} bytes of {_bytes(copies)} are no reason to wait for each other"
    names = ", ".join(dict.fromkeys(f"`{one.param}`" for one in shared))
    return Sharing(
        Cluster(blocks, best),
        tuple(shared),
        f"clusters of {blocks} blocks along axis {best}",
        f"tiles of {names} are the same there: a block copies {_bytes(copies) - saved} bytes a "
        f"turn, not {_bytes(copies)}",
    )


def _axes_of(axes: ProgramAxes, copies: Sequence[Copied], asked: int | None) -> Iterator[int]:
    """The axes along which programs could share: those that some copy depends on."""
    if asked is not None:
        yield asked
        return
    met = [axes.of_all(one.indices) for one in copies]
    yield from sorted(frozenset().union(*(found for found in met if found != ANY_AXIS)))


def _bytes(copies: Sequence[Copied]) -> int:
    return sum(one.tile.bytes for one in copies)


def _gives_what_was(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    is_used = any(len(list(result.uses)) for result in op.results)
    return declared is not None and bool(declared.updates) and is_used
