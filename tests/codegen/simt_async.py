"""What goes on while threads do: copies of tiles, products of warpgroups, and roles.

What is found, whatever happens first: a tile that is read before a barrier has told that it is
there, or overwritten before a barrier has told that it was read; sums that are used before they are
there; barriers that too many or too few come to; threads that wait for ever.

Source:   PTX ISA, "mbarrier", "cp.async.bulk.tensor", "Asynchronous warpgroup level matrix
          instructions", "setmaxnreg"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import simt_sending
import simt_wgmma
from mlir import ir
from simt_barriers import MBarrier, Meeting
from simt_cluster import BLOCK_APART, RULES, Cluster
from simt_copies import PIECE, MappedTensor
from simt_memory import LANES, SHARED_BASE, Memory, Segment, SimtError
from simt_strands import LATE, Clock, Timing, join

from tilec.ops.lowering import ROLE

Array = Any
Execute = Callable[[Any, ir.OpView, "list[Array]", Array], "list[Array]"]

REGISTERS = 1 << 16  # of a block
# Where variables of threads are, as addresses; apart from all memory.
_VARIABLES = 1 << 60
# What a word of sums holds while a product adds to it: a number for each, NaN as f32.
_FIRST_TOKEN, _LAST_TOKEN = 0x7FA00000, 0x7FBFFFFF


class Machine:
    """What one block has beside threads and memory.

    Units:    arrays have one entry for each piece of shared memory
    """

    def __init__(
        self,
        threads: int,
        memory: Memory,
        shared: Segment,
        tensor_maps: Mapping[int, MappedTensor],
        timing: Timing = LATE,
        cluster: Cluster | None = None,
    ) -> None:
        self.memory, self.shared, self.tensor_maps = memory, shared, tensor_maps
        self.cluster = cluster or Cluster(timing)
        self.rank = self.cluster.join(self)
        self.chance, self.strands = self.cluster.chance, self.cluster.strands
        self.base = SHARED_BASE + self.rank * BLOCK_APART
        self.threads = threads
        self.strand = self.strands.current.number  # of all threads
        self.barriers: dict[int, MBarrier] = {}
        self.seen: dict[int, set[int]] = {}  # barriers that strands have seen made, by identity
        self.meetings: dict[int, Meeting] = {}
        self.sending = simt_sending.Sending(memory, shared, self.chance)
        self.copies: list[_Copy] = []  # that are under way
        self.begun: list[int] = []  # copies
        self.free_registers = 0
        self.registers = np.full(threads // 128, REGISTERS // max(threads, 1) // 8 * 8)
        self._is_used = False

    def use(self) -> None:
        """Shared memory is accessed by more than threads from now on."""
        if self._is_used:
            return
        self._is_used = True
        count = -(-self.shared.bytes.size // PIECE)
        self.is_barrier = np.zeros(count, bool)
        self.is_stored = np.zeros(count, bool)  # by threads, unfenced
        self.copy_of = np.zeros(count, np.int64)  # the last that writes here, below 0
        self.readers = np.zeros(count, np.int32)  # products that are under way
        self.read_by = {}  # number of a strand -> its time when products had read
        self.read_time = np.full(count, -1)  # of the block
        # By threads: of each piece the strand that stored there last, and its time then.
        self.stored_by = np.full(count, -1)
        self.stored_at = np.full(count, -1)
        self.stored_time = np.full(count, -1)  # of the block
        self.other_readers = {}  # number of a strand of another block -> its times

    # ---- accesses of threads -----------------------------------------------------------------

    def touch(self, addresses: Array, size: int, *, writes: bool) -> None:
        """Threads load or store these bytes of shared memory."""
        if not self._is_used or not len(addresses):
            return
        first, last = addresses - self.base, addresses - self.base + size - 1
        pieces = np.unique(np.concatenate([first // PIECE, last // PIECE]))
        pieces = pieces[(pieces >= 0) & (pieces < len(self.is_barrier))]
        if self.is_barrier[pieces].any():
            raise SimtError("an access to a barrier as if it were data")
        self._expect_seen(pieces)
        if writes:
            self.sending.expect_unread(pieces)
            is_read = (self.readers[pieces] > 0).any()
            if is_read or (self.read_time[pieces] == self.memory.clock.block).any():
                raise SimtError("a store to what a product reads, without a barrier after it")
            self.is_stored[pieces] = True
            strand = self.strands.current
            self.stored_by[pieces] = strand.number
            self.stored_at[pieces] = strand.clock.get(strand.number, 0)
            self.stored_time[pieces] = self.memory.clock.block
            for number, times in self.read_by.items():
                if not strand.has_seen(number, int(times[pieces].max())):
                    raise SimtError("a store to what others read, but nobody said so")
            for number, times in self.other_readers.items():
                if not strand.has_seen(number, int(times[pieces].max())):
                    raise SimtError("a store to what another block reads")
        else:
            self._note_read(pieces)

    def seen_by_others(self, addresses: Array, size: int) -> Array:
        """What threads of another block load from here: (n, size) bytes."""
        self.use()
        strand = self.strands.current
        places = addresses[:, None] - self.base + np.arange(size)
        if places.min() < 0 or places.max() >= self.shared.bytes.size:
            raise SimtError("an access beyond the shared memory of another block")
        pieces = np.unique(places // PIECE)
        if self.is_barrier[pieces].any() or not self.shared.written[places].all():
            raise SimtError("a block reads what another one did not write")
        self._expect_seen(pieces)
        writers = zip(self.stored_by[pieces], self.stored_at[pieces], strict=True)
        pairs = {(int(number), int(time)) for number, time in writers}
        if any(number < 0 or not strand.has_seen(number, time) for number, time in pairs):
            raise SimtError("a block reads what another one wrote, but nobody said so")
        if strand.number not in self.other_readers:
            self.other_readers[strand.number] = np.full(len(self.is_barrier), -1)
        self.other_readers[strand.number][pieces] = strand.clock.get(strand.number, 0)
        return self.shared.bytes[places]

    def expect_fenced(self, pieces: Array) -> None:
        """That copies of these pieces see what threads stored."""
        self.use()
        if self.is_stored[pieces].any():
            raise SimtError("a copy of what threads stored, without a fence between")

    def _expect_seen(self, pieces: Array) -> None:
        """That copies which write here are over, as barriers told these threads."""
        for copy in np.unique(self.copy_of[pieces]):
            if copy and not self.strands.current.has_seen(int(copy), 0):
                name = self.strands.current.name
                raise SimtError(f"{name} use what a copy brings, but have not waited for it")

    # ---- copies ------------------------------------------------------------------------------

    def begin(self, tensor: MappedTensor, first: Sequence[int], place: int, bar: MBarrier) -> None:
        self.use()
        pieces = tensor.pieces(place)
        if pieces.min() < 0 or (pieces.max() + 1) * PIECE > self.shared.bytes.size:
            raise SimtError(f"a copy to byte {place}, beyond shared memory")
        if self.is_barrier[pieces].any():
            raise SimtError("a copy onto a barrier")
        if self.is_stored[pieces].any():
            raise SimtError("a copy onto what threads stored, without a fence between")
        strand = self.strands.current
        if (self.readers[pieces] > 0).any():
            raise SimtError("a copy onto what a product that is under way reads")
        for number, times in self.read_by.items():
            if not strand.has_seen(number, int(times[pieces].max())):
                raise SimtError("a copy onto what has been read, but nobody said so")
        self._expect_seen(pieces)
        self.sending.expect_unread(pieces)
        copy = _Copy(
            self.cluster.next_copy(), tensor.content(first), pieces, bar, strand.released()
        )
        self.begun.append(copy.number)
        self.copy_of[pieces] = copy.number
        self._put(copy, np.uint8(255), is_there=False)
        self.copies.append(copy)
        if self.chance.says(self.chance.timing.early_copies):
            self._finish(len(self.copies) - 1)

    def finish_one(self) -> bool:
        if self.copies:
            self._finish(self.chance.one_of(len(self.copies), len(self.copies) - 1))
            return True
        return False

    def _finish(self, index: int) -> None:
        copy = self.copies.pop(index)
        self._put(copy, copy.content, is_there=True)
        copy.barrier.complete(copy.content.size, {**copy.clock, copy.number: 0})

    def _put(self, copy: _Copy, content: Array, *, is_there: bool) -> None:
        whole = self.shared.bytes.size // PIECE * PIECE
        self.shared.bytes[:whole].reshape(-1, PIECE)[copy.pieces] = content
        self.shared.written[:whole].reshape(-1, PIECE)[copy.pieces] = is_there

    # ---- products ----------------------------------------------------------------------------

    def begin_reading(self, pieces: Array) -> None:
        self.use()
        whole = self.shared.bytes.size // PIECE * PIECE
        if not self.shared.written[:whole].reshape(-1, PIECE)[pieces].all():
            raise SimtError("a product reads what nobody wrote")
        self._expect_seen(pieces)
        self._expect_shown(pieces)
        self.readers[pieces] += 1

    def _expect_shown(self, pieces: Array) -> None:
        """That what threads stored here was fenced, and all who did have met with these since."""
        if self.is_stored[pieces].any():
            raise SimtError("a product of what threads stored, without a fence between")
        if (self.stored_time[pieces] == self.memory.clock.block).any():
            raise SimtError("a product of what threads stored, without a barrier between")
        writers = zip(self.stored_by[pieces], self.stored_at[pieces], strict=True)
        strand = self.strands.current
        if any(
            n >= 0 and not strand.has_seen(n, t) for n, t in {(int(a), int(b)) for a, b in writers}
        ):
            raise SimtError("a product of what other threads stored, but nobody said so")

    def end_reading(self, pieces: Array) -> None:
        self.readers[pieces] -= 1
        self._note_read(pieces)
        self.read_time[pieces] = self.memory.clock.block

    def _note_read(self, pieces: Array) -> None:
        """From now on copies may come here where these threads said so."""
        strand = self.strands.current
        if strand.number not in self.read_by:
            self.read_by[strand.number] = np.full(len(self.readers), -1)
        self.read_by[strand.number][pieces] = strand.clock.get(strand.number, 0)

    def fence(self) -> None:
        """What these threads stored is visible to copies and products."""
        if self._is_used:
            self.is_stored[self.stored_by == self.strands.current.number] = False

    # ---- barriers ----------------------------------------------------------------------------

    def make_barrier(self, address: int, count: int) -> None:
        self.use()
        place = address - self.base
        if place % 8 or not 0 <= place <= self.shared.bytes.size - 8:
            raise SimtError(f"a barrier at byte {place}")
        if address in self.barriers:
            raise SimtError(f"{self.barriers[address]} is made twice")
        self.barriers[address] = MBarrier(place, count, self._number())
        self.is_barrier[place // PIECE] = True

    def barrier(self, address: int, *, for_copies: bool = False, by: int | None = None) -> MBarrier:
        if address not in self.barriers:
            raise SimtError(f"there is no barrier at byte {address - self.base}")
        found = self.barriers[address]
        if by not in (None, self.rank):
            self.cluster.expect_here(self, found, by)
        elif not self.sees(found) and not self.cluster.may_see(self, found):
            raise SimtError(f"{found} is used by threads that may not have seen it made")
        if for_copies and not found.is_fenced:
            raise SimtError(f"{found} is used by copies, which may not have seen it made")
        return found

    def sees(self, barrier: MBarrier) -> bool:
        """Whether these threads, or all of the block, came to a meeting after it was made."""
        return any(id(barrier) in self.seen.get(n, ()) for n in (self._number(), self.strand))

    def _number(self) -> int:
        return self.strands.current.number

    def wait(self, barrier: MBarrier, parity: int) -> bool:
        """Whether the phase of this parity is over: True at last."""
        if not barrier.is_over(parity) and self.chance.timing.seed is not None:
            self.strands.pause()
            if not barrier.is_over(parity):
                self.cluster.progress()
        self.strands.wait(
            lambda: barrier.is_over(parity),
            lambda: f"the end of a phase {parity} of {barrier} ({barrier.state()})",
        )
        join(self.strands.current.clock, barrier.ended)
        return True

    def come(self, number: int, threads: int, coming: int) -> tuple[Meeting, int]:
        """These threads have come to a meeting, and to which turn of it."""
        meeting = self.meetings.setdefault(number, Meeting(number, threads))
        if meeting.threads != threads:
            raise SimtError(f"{meeting} is one of {threads}")
        turn = meeting.turn
        own = (id(one) for one in self.barriers.values() if one.maker == self._number())
        meeting.made |= {*own, *self.seen.get(self._number(), ())}
        if meeting.arrive(coming, self.strands.current.released()):
            self.memory.clock.block += 1
            self.memory.clock.warp += 1
        return meeting, turn

    def meet(self, number: int, threads: int, coming: int) -> None:
        """These threads go on when as many as are to come are there."""
        meeting, turn = self.come(number, threads, coming)
        self.strands.wait(lambda: meeting.turn != turn, lambda: str(meeting))
        join(self.strands.current.clock, meeting.ended)
        self.seen.setdefault(self._number(), set()).update(meeting.made)

    # ---- registers ---------------------------------------------------------------------------

    def set_registers(self, threads: Array, count: int, *, more: bool) -> None:
        if not 24 <= count <= 256 or count % 8:
            raise SimtError(f"a thread cannot have {count} registers")
        for group in np.unique(threads // 128):
            gained = count - int(self.registers[group])
            if gained and (gained > 0) != more:
                raise SimtError(f"{self.registers[group]} registers become {count}")
            taken = 128 * gained
            self.strands.wait(lambda n=taken: self.free_registers >= n, lambda: "registers")
            self.free_registers -= taken
            self.registers[group] = count

    # ---- the end -----------------------------------------------------------------------------

    def expect_over(self) -> None:
        """Nothing may be under way when the last thread has gone."""
        self.sending.expect_over()
        if self.copies:
            raise SimtError(f"{len(self.copies)} copies are under way at the end")
        for number in self.begun:
            if not self.strands.current.has_seen(number, 0):
                raise SimtError("a copy may be under way at the end: nobody waited for it")


@dataclass(frozen=True, repr=False)
class _Copy:
    number: int
    content: Array
    pieces: Array
    barrier: MBarrier
    clock: Clock


# ---- products ------------------------------------------------------------------------------------


@dataclass(repr=False)
class _Product:
    """An instruction that all warpgroups of a strand started.

    Shapes:   `sums` and `words` are (threads, words); `sources` says which words of it are those of
              products that came before
    """

    instruction: simt_wgmma.Instruction
    sums: Array
    sources: dict[int, tuple[_Product, int]]
    a: Array
    b: Array
    pieces: Array
    words: Array = None
    is_over: bool = False


class Products:
    """Those of one strand: what has been started, in groups, and what sums stand for."""

    def __init__(self) -> None:
        self.loose: list[_Product] = []
        self.groups: list[list[_Product]] = []
        self.tokens: dict[int, tuple[_Product, int]] = {}
        self.next_token = _FIRST_TOKEN
        self.is_fenced = False

    def start(
        self, machine: Machine, kind: simt_wgmma.Instruction, sums: Array, a: Array, b: Array
    ) -> Array:
        """What stands for the sums, from (threads, words)."""
        if not self.is_fenced:
            raise SimtError("a product begins without a fence")
        sources = self._taken(sums) if kind.adds else {}
        pieces = _pieces_read(kind, a, b)
        machine.begin_reading(pieces)
        product = _Product(kind, sums, sources, a, b, pieces)
        self.loose.append(product)
        if machine.chance.says(machine.chance.timing.early_products):
            _multiply(machine, product)
        words = np.arange(sums.shape[1])
        tokens = (self.next_token + words).astype(np.int32)
        self.tokens.update((int(t), (product, int(w))) for t, w in zip(tokens, words, strict=True))
        self.next_token += len(words)
        assert self.next_token <= _LAST_TOKEN
        return np.broadcast_to(tokens, sums.shape).copy().view(sums.dtype)

    def _taken(self, sums: Array) -> dict[int, tuple[_Product, int]]:
        found = {}
        for word, token in self._tokens_in(sums).items():
            if token not in self.tokens:
                raise SimtError("a product adds to sums that another one went on with")
            # They are in the same registers: nothing else may use them from now on.
            found[word] = self.tokens.pop(token)
        return found

    def _tokens_in(self, words: Array) -> dict[int, int]:
        """Which columns of (threads, words) stand for sums that were begun."""
        bits = np.ascontiguousarray(words).view(np.int32)
        is_token = (bits >= _FIRST_TOKEN) & (bits < self.next_token)
        for column in np.flatnonzero(is_token.any(axis=0) & (bits != bits[:1]).any(axis=0)):
            raise SimtError(f"word {column} of sums under way differs between threads")
        return {int(column): int(bits[0, column]) for column in np.flatnonzero(is_token[0])}

    def commit(self) -> None:
        self.groups.append(self.loose)
        self.loose, self.is_fenced = [], False

    def wait(self, machine: Machine, pending: int) -> None:
        while len(self.groups) > pending:
            for product in self.groups.pop(0):
                if product.words is None:
                    _multiply(machine, product)
                product.is_over = True
                machine.end_reading(product.pieces)

    def done(self, words: list[Array]) -> list[Array]:
        """Words as they are where products that add to them are over."""
        found = list(words)
        if not found or not self.tokens:
            return found
        for column, token in self._tokens_in(np.stack(words, axis=1)).items():
            if token not in self.tokens:
                raise SimtError("sums are read that another product went on with")
            product, word = self.tokens[token]
            if not product.is_over:
                raise SimtError("sums are read before their product is over")
            found[column] = product.words[:, word].copy()
        return found

    def expect_over(self) -> None:
        if self.loose or self.groups:
            raise SimtError("products are under way at the end")


def _multiply(machine: Machine, product: _Product) -> None:
    sums = np.array(product.sums)
    for column, (source, word) in product.sources.items():
        if source.words is None:
            _multiply(machine, source)
        sums[:, column] = source.words[:, word]
    found = []
    for first in range(0, len(sums), simt_wgmma.THREADS):
        own = slice(first, first + simt_wgmma.THREADS)
        a = product.a[own] if product.a.ndim == 2 else int(product.a[first])
        b = int(product.b[first])
        found.append(
            simt_wgmma.multiply(product.instruction, machine.shared.bytes, sums[own], a, b)
        )
    product.words = np.concatenate(found)
    product.sources = {}


def _pieces_read(kind: simt_wgmma.Instruction, a: Array, b: Array) -> Array:
    found = []
    for first in range(0, len(b), simt_wgmma.THREADS):
        found.append(_pieces_of(int(b[first]), kind.b_along, kind.n, kind.b))
        if a.ndim == 1:
            found.append(_pieces_of(int(a[first]), kind.a_along, 64, kind.a))
    return np.unique(np.concatenate(found))


@lru_cache(maxsize=4096)
def _pieces_of(descriptor: int, along: bool, across: int, element: str) -> Array:
    size = np.dtype(simt_wgmma.FACTORS[element]).itemsize
    return np.unique(simt_wgmma.addresses(descriptor, along, across, size) // PIECE)


def _wgmma(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    sums, a, b = operands
    return [_started(self, simt_wgmma.from_attributes(op), sums, a, b, active)]


def _started(
    self: Any,
    kind: simt_wgmma.Instruction,
    sums: Sequence[Array],
    a: Array,
    b: Array,
    active: Array,
) -> tuple[Array, ...]:
    self.all_here(active, "a wgmma")
    for value in (b, *([a] if a.ndim == 1 else [])):
        groups = value.reshape(-1, simt_wgmma.THREADS)
        if (groups != groups[:, :1]).any():
            raise SimtError("a descriptor differs between threads")
    after = self.products.start(self.machine, kind, np.stack(sums, axis=1), a, b)
    return tuple(after[:, i] for i in range(after.shape[1]))


def wgmma_text(self: Any, text: str, operands: list[Array], active: Array) -> list[Array]:
    """A product whose first factor is in registers; or a fence or wait that words go through."""
    instruction = simt_wgmma.from_text(text)
    if instruction is not None:
        *sums, w0, w1, w2, w3, b = operands
        words = np.stack([w0, w1, w2, w3], axis=1)
        return [_started(self, instruction, sums, words, b, active)]
    self.all_here(active, text)
    if not text and not operands:
        return []
    if "fence" in text:
        self.products.is_fenced = True
        return [tuple(operands)]
    if text:
        [pending] = re.findall(r"wait_group\.sync\.aligned (\d+);", text)
        self.products.wait(self.machine, int(pending))
    return [tuple(self.products.done(operands))]


def _wgmma_fence(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, op.operation.name)
    self.products.is_fenced = True
    return []


def _wgmma_commit(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, op.operation.name)
    self.products.commit()
    return []


def _wgmma_wait(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, op.operation.name)
    self.products.wait(self.machine, ir.IntegerAttr(op.attributes["group"]).value)
    return []


# ---- copies and their barriers -------------------------------------------------------------------


def _only(self: Any, value: Array, active: Array, what: str) -> int:
    return int(self.uniform(value, active, what))


def _init(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    for address, count in zip(*(value[active] for value in operands), strict=True):
        self.machine.make_barrier(int(address), int(count))
    return []


def _fence_init(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    for barrier in self.machine.barriers.values():
        barrier.is_fenced = True
    return []


def _fence_proxy(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.machine.fence()
    return []


def _expect(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    for address, count in zip(*(value[active] for value in operands), strict=True):
        barrier = self.machine.barrier(int(address))
        barrier.expect(int(count))
        barrier.arrive(self.machine.strands.current.released())
    self.machine.strands.pause()
    return []


_ARRIVE = re.compile(r"mbarrier\.arrive\.shared::(cta|cluster)\.b64 _, \[\{\$r0\}\];")


def _inline_ptx(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    text = ir.StringAttr(op.attributes["ptxCode"]).value
    [space] = _ARRIVE.findall(text)
    address, predicate = operands
    for one in address[active & predicate]:
        if space == "cluster":
            self.machine.cluster.arrive(self.machine, int(one))
        else:
            self.machine.barrier(int(one)).arrive(self.machine.strands.current.released())
    self.machine.strands.pause()
    return []


def _try_wait(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    address, parity = operands
    barrier = self.machine.barrier(_only(self, address, active, "a barrier"))
    over = self.machine.wait(barrier, _only(self, parity, active, "a parity"))
    return [np.full(len(active), over)]


def _copy(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    counts = list(op.attributes["operandSegmentSizes"])
    is_known = counts[:2] == [1, 1] and not any([counts[4], *counts[6:]])
    assert sum(counts) == len(operands) and is_known, op
    axes = counts[2]
    target, source = operands[:2]
    places, barriers = (operands[2 : 2 + axes], operands[2 + axes])
    for thread in np.flatnonzero(active):
        self.memory.expect_waited(self.threads[thread])
        tensor = self.machine.tensor_maps[int(source[thread])]
        first = [int(place[thread]) for place in places][::-1]
        mask = int(operands[3 + axes][thread]) if counts[5] else 1 << self.machine.rank
        place = int(target[thread]) - self.machine.base
        own = int(barriers[thread]) - self.machine.base
        for machine in self.machine.cluster.chosen(mask):
            by = self.machine.rank
            barrier = machine.barrier(machine.base + own, for_copies=True, by=by)
            machine.begin(tensor, first, place, barrier)
    self.machine.strands.pause()
    return []


# ---- roles ---------------------------------------------------------------------------------------


def _roles(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    """Both ways of a branch at a time."""
    self.all_here(active, "roles")
    [is_math] = operands
    _, _, teams = ir.DenseI32ArrayAttr(op.attributes[ROLE])
    parts, runs = [], []
    for region, takes, name in zip(
        op.regions, (is_math, ~is_math), ("math", "loader"), strict=True
    ):
        rows = np.flatnonzero(takes)
        if (takes.reshape(-1, 128).any(axis=1) != takes.reshape(-1, 128).all(axis=1)).any():
            raise SimtError("a warpgroup has two roles")
        # Several teams go their own ways.
        goes_apart = self.machine.chance.timing.split or (name == "math" and teams > 1)
        size = 128 if goes_apart else max(1, len(rows))
        for first in range(0, len(rows), size):
            own = rows[first : first + size]
            part = self.part(own)
            label = f"the {name} threads {own[0]} to {own[-1]}"
            runs.append(part)
            parts.append((label, _body_of(part, region.blocks[0], op.context)))
    self.machine.strands.run(parts)
    self.steps -= sum(self.steps - part.steps for part in runs)
    return []


def _body_of(part: Any, block: ir.Block, context: ir.Context) -> Callable[[], None]:
    def body() -> None:
        with context, np.errstate(all="ignore"):
            part.run(block, np.ones(len(part.threads), bool))
        part.products.expect_over()

    return body


def barrier0(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "a barrier")
    self.machine.meet(0, self.machine.threads, len(active))
    return []


def _named_barrier(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    number, threads = _named(self, operands, active)
    self.machine.meet(number, threads, int(active.sum()))
    return []


def _arrive_named(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    number, threads = _named(self, operands, active)
    self.machine.come(number, threads, int(active.sum()))
    return []


def _named(self: Any, operands: list[Array], active: Array) -> tuple[int, int]:
    """The number of a barrier, and of its threads, to which whole warps come."""
    warps = active.reshape(-1, LANES)
    if (warps.any(axis=1) != warps.all(axis=1)).any():
        raise SimtError("not all threads of a warp come to a barrier")
    number, threads = (_only(self, value, active, "a barrier") for value in operands)
    if not 0 <= number < 16 or threads % LANES or threads <= 0:
        raise SimtError(f"there is no barrier {number} of {threads} threads")
    return number, threads


def _prefetch(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    for address in operands[0][active]:
        if int(address) not in self.machine.tensor_maps:
            raise SimtError("no description of a tensor is there")
    return []


def _set_registers(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "a change of registers")
    count = ir.IntegerAttr(op.attributes["regCount"]).value
    more = "increase" in str(op.attributes["action"])
    self.machine.set_registers(self.threads, count, more=more)
    return []


# ---- variables -----------------------------------------------------------------------------------


def _alloca(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    pointer = _VARIABLES + len(self.variables)
    self.variables[pointer] = np.full(len(active), 0xA5A5A5A5 - (1 << 32), np.int32)
    return [np.full(len(active), pointer)]


def _load(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    return [self.variables[_only(self, operands[0], active, "a variable")].copy()]


def _store(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    value, pointers = operands
    variable = self.variables[_only(self, pointers, active, "a variable")]
    variable[active] = value[active]
    return []


def _pointer(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    return [operands[0].astype(np.uint32).astype(np.int64)]


def rule_of(op: ir.OpView) -> Execute | None:
    """What an operation does; None, if it is not of these."""
    name = op.operation.name
    if name == "scf.if" and ROLE in op.attributes:
        return _roles
    if name in ("llvm.load", "llvm.store") and str(op.operands[-1].type) == "!llvm.ptr":
        return _load if name == "llvm.load" else _store
    return _RULES.get(name)


_RULES: dict[str, Execute] = {
    **RULES,
    **simt_sending.RULES,
    "llvm.alloca": _alloca,
    "llvm.inttoptr": _pointer,
    "nvvm.barrier0": barrier0,
    "nvvm.barrier": _named_barrier,
    "nvvm.barrier.arrive": _arrive_named,
    "nvvm.prefetch": _prefetch,
    "nvvm.setmaxregister": _set_registers,
    "nvvm.inline_ptx": _inline_ptx,
    "nvvm.mbarrier.init": _init,
    "nvvm.mbarrier.arrive.expect_tx": _expect,
    "nvvm.mbarrier.try_wait": _try_wait,
    "nvvm.fence.mbarrier.init": _fence_init,
    "nvvm.fence.proxy": _fence_proxy,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": _copy,
    "nvvm.wgmma.mma_async": _wgmma,
    "nvvm.wgmma.fence.aligned": _wgmma_fence,
    "nvvm.wgmma.commit.group.sync.aligned": _wgmma_commit,
    "nvvm.wgmma.wait.group.sync.aligned": _wgmma_wait,
}
