"""Which copies the blocks of a cluster could share, and whether they are to.

Programs that follow each other along an axis of the grid read the same tile wherever its indices do
not depend on that axis. Then each of as many blocks copies a part of it to all of them: it comes
from L2 once. A cluster may have two sides: of 2 by 2 blocks, those of a row share what depends on
the row, and those of a column what depends on the column. Nothing else of the kernel matters, but
for two conditions:

- the blocks must take the slots of what they share alike, so how often they do must be the same in
  all programs. (Not along that axis alone: the programs that no group is left for follow each other
  along others.)
- a block for which no program is left does another block's once more, and must not be seen to. So
  updates of memory may give nothing that goes on being used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from mlir import ir

from tilec.hints import Hints
from tilec.ir.dialect import declarations
from tilec.ir.walk import operations
from tilec.layout.neighbours import Cluster, Sharers, Side
from tilec.layout.shares import Shares
from tilec.ops.facts import KnownFacts
from tilec.ops.program_axes import ANY_AXIS, ProgramAxes, around
from tilec.ops.registry import rules
from tilec.schedule.bound import busy
from tilec.schedule.products import Copied, Product
from tilec.target.description import Target

# What is taken where nobody says: blocks of a cluster, and the least share of what is copied that
# they must save. Measured (docs/notes.md).
_BLOCKS = 2
_LEAST_SAVED = 1 / 4

_MOST_SIDES = 2


@dataclass(frozen=True)
class Sharing:
    """A cluster, the copies that its blocks share, and why; or why there is none."""

    cluster: Cluster | None
    shared: tuple[tuple[Copied, Sharers], ...]
    what: str
    why: str


def sharing(
    function: ir.OpView,
    copies: Sequence[Copied],
    products: Sequence[Product],
    hints: Hints,
    target: Target,
    *,
    is_persistent: bool,
) -> Sharing | None:
    """What is shared of these copies, which loops do for products; None where it is not worth a
    word."""
    hint = hints.cluster
    asked: tuple[int, ...] | None = (hint,) if isinstance(hint, int) else hint
    sides: tuple[int, ...]
    if asked is None:
        if not _is_much(copies, products, target):
            return None
        sides, least = (_BLOCKS,), _LEAST_SAVED
    else:
        sides, least = asked, 0.0
        if prod(sides) == 1:
            return None
    where = isinstance(hint, tuple)
    found = _found(function, copies, sides, least, target, where=where, several=is_persistent)
    if isinstance(found, Sharing):
        return found
    return None if asked is None else Sharing(None, (), "no cluster", found)


def saved_bytes(shared: Iterable[tuple[Copied, Sharers]]) -> int:
    """What blocks need not copy, for others do."""
    return sum(one.tile.bytes - one.tile.bytes // sharers.blocks for one, sharers in shared)


def _is_much(copies: Sequence[Copied], products: Sequence[Product], target: Target) -> bool:
    """Whether products would wait for L2, if each block copied everything, and turns are long."""
    assert target.rates and target.roles, f"{target.name} has no asynchronous products"
    turning = [one for one in products if any(copied in copies for copied in one.copied)]
    cycles, limits = busy(turning, 0, target.rates).tensor, target.roles
    return cycles >= limits.cluster_cycles and _bytes(copies) > limits.l2_bytes * cycles


def _found(
    function: ir.OpView,
    copies: Sequence[Copied],
    counts: tuple[int, ...],
    least: float,
    target: Target,
    *,
    where: bool,
    several: bool,
) -> Sharing | str:
    """`counts` are blocks along the axes of the grid if they say `where`, else one number of them
    along whichever axes; `least`: what must be saved of all bytes that are copied; `several`: a
    block does several programs."""
    most = target.cluster_blocks
    if any(count & (count - 1) or count < 1 for count in counts) or prod(counts) > most:
        return f"it is of a power of two of blocks, {most} at most"
    if not several:
        return "each block does one program only"
    if where and any(count > 1 for count in counts[_axes_of_grid(function) :]):
        return "the grid has fewer axes"
    if any(_gives_what_was(op) for op in operations(function)):
        return "an update gives what was there before, which a program may do once only"
    axes = ProgramAxes()
    steady = [one for one in copies if not axes.of_all(around(one.load))]
    if not steady:
        return "how often tiles are copied depends on the program"
    candidates = [_given(counts)] if where else _clusters(counts[0], _axes_of(axes, copies))
    by_cluster = {one: _shared(steady, one, axes) for one in candidates}
    if not any(by_cluster.values()):
        return "no tile that is the same in neighbours has parts for all blocks"
    # Of equals the first: few sides, rows of programs.
    best = max(by_cluster, key=lambda one: saved_bytes(by_cluster[one]))
    shared = by_cluster[best]
    saved = saved_bytes(shared)
    if saved < least * _bytes(copies):
        return f"{saved} bytes of {_bytes(copies)} are no reason to wait for each other"
    names = ", ".join(dict.fromkeys(f"`{one.param}`" for one, _ in shared))
    along = " and ".join(map(str, best.axes))
    return Sharing(
        best,
        shared,
        f"clusters of {best} blocks along ax{'is' if len(best.axes) == 1 else 'es'} {along}",
        f"tiles of {names} are the same there: a block copies {_bytes(copies) - saved} bytes a "
        f"turn, not {_bytes(copies)}",
    )


def _given(counts: Sequence[int]) -> Cluster:
    return Cluster(tuple(Side(count, axis) for axis, count in enumerate(counts) if count > 1))


def _clusters(blocks: int, axes: Sequence[int]) -> Iterator[Cluster]:
    """All clusters of so many blocks, a power of two, along some of these axes."""
    for axis in axes:
        yield Cluster.along(axis, blocks)
    for first, second in combinations(axes, _MOST_SIDES):
        along = 2
        while along < blocks:
            yield Cluster((Side(along, first), Side(blocks // along, second)))
            along *= 2


def _shared(
    copies: Sequence[Copied], cluster: Cluster, axes: ProgramAxes
) -> tuple[tuple[Copied, Sharers], ...]:
    """What blocks share of these copies, and which of them."""
    found = []
    for one in copies:
        met = axes.of_all(one.indices)
        along = tuple(n for n, side in enumerate(cluster.sides) if side.axis not in met)
        sharers = Sharers(cluster, along)
        if along and Shares.of(one.tile, sharers.blocks) is not None:
            found.append((one, sharers))
    return tuple(found)


def _axes_of_grid(function: ir.OpView) -> int:
    facts = KnownFacts()
    ops = [op for block in function.regions[0].blocks for op in block.operations]
    found = (rules()[op.operation.name].host_grid(op, facts) for op in ops)
    return max((len(extents) for extents in found if extents is not None), default=1)


def _axes_of(axes: ProgramAxes, copies: Sequence[Copied]) -> list[int]:
    """The axes along which programs could share: those that some copy depends on."""
    met = [axes.of_all(one.indices) for one in copies]
    return sorted(frozenset().union(*(found for found in met if found != ANY_AXIS)))


def _bytes(copies: Sequence[Copied]) -> int:
    return sum(one.tile.bytes for one in copies)


def _gives_what_was(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    is_used = any(len(list(result.uses)) for result in op.results)
    return declared is not None and bool(declared.updates) and is_used
