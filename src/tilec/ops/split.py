"""Programs that the blocks of a cluster do together: shares of turns, and sums that are added up.

Each thread keeps its registers in its block's shared memory, 16 bytes of all threads side by side.
The same thread of the leading block reads them there, through distributed shared memory: whatever
the layout is, it holds the same elements. Two blocks add them up so; of more each first adds up a
part, or the leading one would read everything of everyone.

Source:   PTX ISA, "barrier.cluster", "mapa", "ld"; CUDA C++ Programming Guide, "Distributed Shared
          Memory"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.ir.types import is_tile
from tilec.layout import LANES, Layout
from tilec.layout.banks import BANKS
from tilec.layout.traffic import Traffic
from tilec.ops.cluster import rank
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import byte_offset, i32, index, llvm_ptr, pack, unpack, zero
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.notes import Moved
from tilec.ops.rules import OpRules

_JOIN = "warp.join"
# Words of the widest access, and its bytes.
_WORDS, _BYTES = 4, 16


@dataclass(frozen=True)
class Offered:
    """Where tiles of these layouts are (ptr<3>): `pieces` of 16 bytes of each of `threads`, the
    first ones of all threads first. All elements are of one type, where that is known."""

    pointer: ir.Value
    pieces: int
    threads: int
    layouts: tuple[Layout, ...]
    element: ir.Type

    def blocks(self, count: int, first: int = 0) -> list[ir.Value]:
        """Where the blocks of a cluster have theirs (ptr<7>)."""
        return [nvvm.mapa(llvm_ptr(7), self.pointer, i32(block)) for block in range(first, count)]


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
        buffer = lowering.shared_bytes(len(pieces) * threads * _BYTES, throughout=True)
        layouts = tuple(layout_of(one.type) for one in op.operands)
        offered = Offered(buffer, len(pieces), threads, layouts, pieces[0][0].type)
        _note(offered, len(pieces), lowering)
        for number, words in enumerate(pieces):
            target = _place(buffer, lowering.thread, number * threads)
            llvm.store(pack([_word(one) for one in words]), target, alignment=_BYTES)
        return [offered]


def _note(offered: Offered, stores: int, lowering: Lowering) -> None:
    """What a thread writes for others: lanes side by side, 16 bytes each."""
    wavefronts = stores * LANES * _BYTES // BANKS.bytes_at_once
    took = Traffic(stores=stores, wavefronts=wavefronts, least_wavefronts=wavefronts)
    [layout, *_] = offered.layouts
    lowering.note(Moved("sums", (str(offered.element),), layout, layout, took))


class _Add(OpRules):
    """Pieces in a row are those of a block, as many for each; a thread has one, and one further on.

    A thread reads what it then writes, and nobody else does: of its block's part.
    """

    name = "warp.add"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [offered] = operands
        assert isinstance(offered, Offered)
        part = offered.pieces * offered.threads // lowering.split
        first = arith.addi(arith.muli(rank(), i32(part)), lowering.thread)
        blocks = offered.blocks(lowering.split)
        _note(offered, -(-part // offered.threads), lowering)
        for done in range(0, part, offered.threads):
            if part - done >= offered.threads:
                _add_piece(offered, blocks, first, done)
                continue
            is_left = arith.cmpi(arith.CmpIPredicate.ult, lowering.thread, i32(part - done))
            branch = scf.IfOp(is_left)
            with ir.InsertionPoint(branch.then_block):
                _add_piece(offered, blocks, first, done)
                scf.yield_([])
        return []


def _add_piece(offered: Offered, blocks: Sequence[ir.Value], first: ir.Value, further: int) -> None:
    kind = _piece_type()
    read = [
        unpack(llvm.load(kind, _place(block, first, further), alignment=_BYTES)) for block in blocks
    ]
    sums = [_as(word, offered.element) for word in read[0]]
    for words in read[1:]:
        sums = [_sum(one, word) for one, word in zip(sums, words, strict=True)]
    target = _place(offered.pointer, first, further)
    llvm.store(pack([_word(one) for one in sums]), target, alignment=_BYTES)


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
        if "of_parts" in op.attributes:
            return _collected(offered, own, lowering)
        pieces = _pieces(own)
        others = offered.blocks(lowering.split, first=1)
        branch = scf.IfOp(_leads(), [one.type for one in own], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            for other in others:
                read = _read(offered, [other] * offered.pieces, lowering)
                pieces = [
                    [_sum(one, word) for one, word in zip(piece, words, strict=True)]
                    for piece, words in zip(pieces, read, strict=True)
                ]
            scf.yield_(_tiles(pieces, own))
        with ir.InsertionPoint(branch.else_block):
            scf.yield_(list(own))
        return list(branch.results)


def _collected(offered: Offered, own: Sequence[ir.Value], lowering: Lowering) -> Sequence[ir.Value]:
    """Each piece from the block that has added it up."""
    part = offered.pieces * offered.threads // lowering.split
    sources = [
        nvvm.mapa(llvm_ptr(7), offered.pointer, _owner(number, part, offered.threads, lowering))
        for number in range(offered.pieces)
    ]
    branch = scf.IfOp(_leads(), [one.type for one in own], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        read = _read(offered, sources, lowering)
        words = [_as(word, offered.element) for piece in read for word in piece]
        scf.yield_(_tiles([words], own))
    with ir.InsertionPoint(branch.else_block):
        scf.yield_(list(own))
    return list(branch.results)


def _owner(number: int, part: int, threads: int, lowering: Lowering) -> ir.Value:
    """The block (i32) that adds up this thread's piece of a number."""
    if part % threads == 0:
        return i32(number * threads // part)
    return arith.divui(arith.addi(lowering.thread, i32(number * threads)), i32(part))


def _read(
    offered: Offered, sources: Sequence[ir.Value], lowering: Lowering
) -> list[list[ir.Value]]:
    """The words of this thread's pieces, each where a block has them (ptr<7>)."""
    places = [
        _place(source, lowering.thread, number * offered.threads)
        for number, source in enumerate(sources)
    ]
    return [unpack(llvm.load(_piece_type(), place, alignment=_BYTES)) for place in places]


def _piece_type() -> ir.Type:
    return ir.VectorType.get([_WORDS], ir.IntegerType.get_signless(32))


def _place(base: ir.Value, piece: ir.Value, further: int) -> ir.Value:
    """The address of a piece by its number (i32), and of one so many further on."""
    address = byte_offset(base, arith.muli(piece, i32(_BYTES)))
    return byte_offset(address, i32(further * _BYTES)) if further else address


def _sum(one: ir.Value, word: ir.Value) -> ir.Value:
    if isinstance(one.type, ir.IntegerType):
        return arith.addi(one, word)
    return arith.addf(one, _as(word, one.type))


def _as(word: ir.Value, element: ir.Type) -> ir.Value:
    return word if word.type == element else arith.bitcast(element, word)


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


RULES: tuple[OpRules, ...] = (_Share(), _Leads(), _Start(), _Offer(), _Add(), _Join(), _Total())
