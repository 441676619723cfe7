"""Which loads share a buffer of a ring, and which places of a program fill the same ring.

    a = load x; for k { b = load x; c = load y; … b c …; … b … }

Loads share a buffer if products read them together and in the same blocks, and if they stand in one
block without control flow in between: they arrive together, and are released together. Loads of the
same tiles of the same tensors use one ring, whether they stand before, in or after a loop, if each
buffer is read only in the block that fills it. Then buffers are released in the order in which they
are filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.layout.swizzled import Slot
from tilec.ops.registry import rules
from tilec.schedule.products import Copied, Product

# The blocks in which products read a load.
_Readers = dict[Copied, frozenset[ir.Block]]


@dataclass(frozen=True)
class Ring:
    """The places that fill one ring, those in loops first; each has its loads in program order."""

    fills: tuple[tuple[Copied, ...], ...]

    @property
    def in_loop(self) -> bool:
        return is_in_loop(self.fills[0][0].block)

    @property
    def slot_bytes(self) -> int:
        return Slot(tuple(one.tile for one in self.fills[0])).bytes


def rings_of(products: Sequence[Product], *, are_joined: bool = True) -> list[Ring]:
    """The rings of all loads that products read; unless `are_joined`, each has one fill."""
    readers, fills = _readers(products), fills_of(products)
    if not are_joined:
        return [Ring((fill,)) for fill in fills]
    found: list[list[tuple[Copied, ...]]] = []
    for fill in fills:
        mine = next((ring for ring in found if _may_join(ring, fill, readers)), None)
        if mine is None:
            found.append([fill])
        elif is_in_loop(mine[0][0].block):
            mine.append(fill)
        else:
            mine.insert(0, fill)
    return [Ring(tuple(ring)) for ring in found]


def fills_of(products: Sequence[Product]) -> list[tuple[Copied, ...]]:
    """The loads that share a buffer, in program order."""
    readers = _readers(products)
    found: list[list[Copied]] = []
    for product in products:
        mine = list(product.copied)
        met = [fill for fill in found if any(one in fill for one in mine)]
        for one in mine:
            if any(one in fill for fill in found):
                continue
            near = [fill for fill in met if _is_near(fill[0], one, readers)]
            if near:
                near[0].append(one)
                continue
            fill = [one]
            found.append(fill)
            met.append(fill)
    return [part for fill in found for part in _in_program_order(fill)]


def is_in_loop(block: ir.Block) -> bool:
    """Whether a block may run several times."""
    around = block.owner
    while around is not None and around.name not in ("scf.for", "scf.while"):
        around = around.parent
    return around is not None


def _readers(products: Sequence[Product]) -> _Readers:
    found: dict[Copied, set[ir.Block]] = {}
    for product in products:
        for one in product.copied:
            found.setdefault(one, set()).add(product.op.operation.block)
    return {one: frozenset(blocks) for one, blocks in found.items()}


def _may_join(
    ring: Sequence[tuple[Copied, ...]], fill: tuple[Copied, ...], readers: _Readers
) -> bool:
    """Whether a ring may have one more fill. Two outside of loops keep a buffer each."""
    blocks = [other[0].block for other in ring]
    if fill[0].block in blocks or not any(map(is_in_loop, (*blocks, fill[0].block))):
        return False
    if not all(readers[one] == {one.block} for one in (*fill, *ring[0])):
        return False
    return len(fill) == len(ring[0]) and all(map(_is_alike, fill, ring[0]))


def _is_alike(one: Copied, other: Copied) -> bool:
    mine, its = ((x.param, x.tile, x.element, x.order) for x in (one, other))
    return mine == its


def _is_near(one: Copied, other: Copied, readers: _Readers) -> bool:
    return one.block == other.block and readers[one] == readers[other]


def _in_program_order(fill: Sequence[Copied]) -> Iterator[tuple[Copied, ...]]:
    """Loads of one block, apart where control flow stands between them.

    Were they copied together, those who compute would wait there for all of them, and the loader,
    in what is between, for them.
    """
    found: list[list[Copied]] = [[]]
    for op in fill[0].block.operations:
        if rules()[op.operation.name].control and found[-1]:
            found.append([])
        found[-1] += [copied for copied in fill if copied.load == op]
    return (tuple(part) for part in found if part)
