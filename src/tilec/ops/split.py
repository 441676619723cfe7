"""Programs that the blocks of a cluster do together: shares of turns, and sums that are added up.

Each thread keeps its registers in its block's shared memory, 16 bytes of all threads side by side.
The same thread of the leading block reads them there, through distributed shared memory, block
after block: whatever the layout is, it holds the same elements.

Source:   PTX ISA, "barrier.cluster", "mapa", "ld"; CUDA C++ Programming Guide, "Distributed Shared
          Memory"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.layout import LANES, Layout
from tilec.ops.cluster import rank
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import byte_offset, i32, index, llvm_ptr, pack, unpack, zero
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import OpRules, is_tile

_JOIN = "warp.join"
# Words of the widest access, and its bytes.
_WORDS, _BYTES = 4, 16


@dataclass(frozen=True)
class Offered:
    """Where tiles of these layouts are, of this thread (ptr<3>): pieces of 16 bytes, `apart`."""

    pointer: ir.Value
    apart: int
    layouts: tuple[Layout, ...]


def joins_of(block: ir.Block) -> int:
    """How often the threads of a role join those of other blocks, each at most once."""
    return sum(op.operation.name == _JOIN for op in block.operations)


def join(*, is_aligned: bool = False) -> None:
    """All threads of the cluster have come here, and see what was written before.

    `is_aligned`: those of a warp come together.
    """
    aligned = ir.UnitAttr.get() if is_aligned else None
    nvvm.cluster_arrive(aligned=aligned)
    nvvm.cluster_wait(aligned=aligned)


class _Share(OpRules):
    """Turns `rank * turns / blocks` and on: together all of them, each once."""

    name = "warp.share"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        first, end, step = (one for one in operands if isinstance(one, ir.Value))
        block = arith.index_cast(ir.IndexType.get(), rank())
        return share_of(first, end, step, block, lowering.split)


def share_of(
    first: ir.Value, end: ir.Value, step: ir.Value, block: ir.Value, blocks: int
) -> tuple[ir.Value, ir.Value]:
    """Where the turns of a block begin and end, by its number; all values are index.

    Assumes:  `blocks` is a power of two, and times the turns below 2^64
    """
    turns = arith.ceildivui(arith.subi(end, first), step)
    is_any = arith.cmpi(arith.CmpIPredicate.slt, first, end)
    turns = arith.select(is_any, turns, index(0))

    def before(number: ir.Value) -> ir.Value:
        count = arith.shrui(arith.muli(turns, number), index(blocks.bit_length() - 1))
        return arith.addi(first, arith.muli(count, step))

    return before(block), before(arith.addi(block, index(1)))


class _Leads(OpRules):
    name = "warp.leads"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [_leads()]


def _leads() -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, rank(), i32(0))


class _Start(OpRules):
    name = "warp.start"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [start] = operands
        assert isinstance(start, ir.Value)
        is_leading = _leads()
        return [pack([arith.select(is_leading, x, zero(x.type)) for x in unpack(start)])]


class _Offer(OpRules):
    name = "warp.offer"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        pieces = _pieces(operands)
        threads = LANES * lowering.warps
        size = len(pieces) * threads * _BYTES
        buffer = lowering.shared_bytes(size, by_warp=True, throughout=True)
        place = byte_offset(buffer, arith.muli(lowering.thread, i32(_BYTES)))
        for number, words in enumerate(pieces):
            target = byte_offset(place, i32(number * threads * _BYTES))
            llvm.store(pack([_word(one) for one in words]), target, alignment=_BYTES)
        layouts = tuple(layout_of(one.type) for one in op.operands)
        return [Offered(place, threads * _BYTES, layouts)]


class _Join(OpRules):
    name = _JOIN

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        join(is_aligned=True)
        return []


class _Total(OpRules):
    name = "warp.total"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        offered, *_ = operands
        own = [one for one in operands[1:] if isinstance(one, ir.Value)]
        assert isinstance(offered, Offered)
        held = tuple(layout_of(one.type) for one in op.operands if is_tile(one))
        assert held == offered.layouts, "threads of all blocks hold the same elements"
        pieces = _pieces(own)
        others = [
            nvvm.mapa(llvm_ptr(7), offered.pointer, i32(block))
            for block in range(1, lowering.split)
        ]
        branch = scf.IfOp(_leads(), [one.type for one in own], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            for other in others:
                pieces = _added(pieces, other, offered.apart)
            scf.yield_(_tiles(pieces, own))
        with ir.InsertionPoint(branch.else_block):
            scf.yield_(list(own))
        return list(branch.results)


def _added(
    pieces: Sequence[Sequence[ir.Value]], other: ir.Value, apart: int
) -> list[list[ir.Value]]:
    """The registers with those of another block, where it offers them (ptr<7>)."""
    kind = ir.VectorType.get([_WORDS], ir.IntegerType.get_signless(32))
    found = []
    for number, words in enumerate(pieces):
        source = byte_offset(other, i32(number * apart))
        read = unpack(llvm.load(kind, source, alignment=_BYTES))
        found.append([_sum(one, word) for one, word in zip(words, read, strict=True)])
    return found


def _sum(one: ir.Value, word: ir.Value) -> ir.Value:
    if isinstance(one.type, ir.IntegerType):
        return arith.addi(one, word)
    return arith.addf(one, arith.bitcast(one.type, word))


def _word(one: ir.Value) -> ir.Value:
    word = ir.IntegerType.get_signless(32)
    return one if one.type == word else arith.bitcast(word, one)


def _pieces(tiles: Sequence[Lowered]) -> list[list[ir.Value]]:
    """The registers of tiles, as many together as one access has; the last are filled up."""
    words: list[ir.Value] = []
    for tile in tiles:
        assert isinstance(tile, ir.Value)
        words += unpack(tile)
    words += [i32(0)] * (-len(words) % _WORDS)
    return [words[first : first + _WORDS] for first in range(0, len(words), _WORDS)]


def _tiles(pieces: Sequence[Sequence[ir.Value]], like: Sequence[Lowered]) -> list[ir.Value]:
    """Of registers in pieces, tiles as they were."""
    words = [one for piece in pieces for one in piece]
    found, first = [], 0
    for tile in like:
        assert isinstance(tile, ir.Value)
        count = ir.VectorType(tile.type).shape[0]
        found.append(pack(words[first : first + count]))
        first += count
    return found


RULES: tuple[OpRules, ...] = (_Share(), _Leads(), _Start(), _Offer(), _Join(), _Total())
