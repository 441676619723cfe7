"""What touches shared memory in a function of threads: accesses, barriers, and control flow.

The *skeleton* of a function has only these. A branch or loop that not all threads of the block take
alike is one unit of it: no barrier may stand inside.

Of roles, the math warps are the block: they have a barrier of their own. The loader writes to rings
only, and channels order that: a ring is read for as long as its barriers are waited for or arrived
at, or products are waited for, and has been written for the last time before that.

Of several teams each is the block in turn: they do the same, and touch no bytes of each other's.

Hardware copies from buffers that are *sent*: one thread of each warp begins a copy (`Send`), which
reads until that thread has waited for it (`Wait`), and sees only what its warp wrote before a fence
(`Fence`). Copies are waited for in the order in which they were begun.

Contract of lowering: writes to one buffer that no read of it separates go to different elements, or
come from one thread. So they need no barrier between them, but within one turn of a loop only.

A buffer may be a ring of slots (`dialects/stage`), which one loop turns: slots are counted from the
one that its current turn reads, those of the first turn before the loop. After the loop nobody
knows which is which. Copies may write to it that go on by themselves (`Touch.is_async`): nobody
sees what they write before their group was waited for (`Commit`, `Arrived`), and then a barrier has
told the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeGuard

from mlir import ir

from tilec.ops.build import number_of
from tilec.ops.lowering import (
    ELECTED,
    RING,
    RINGS,
    ROLE,
    SHARED_ALIGNMENT,
    SLOT_AHEAD,
    SLOTS,
    UNIFORM,
)

ALLOC = "warp.alloc"
# Its attribute where each team has a buffer of its own.
TEAM_BYTES = "team_bytes"
BLOCK_BARRIER = "nvvm.barrier0"
TEAM_BARRIER = "nvvm.barrier"
WARP_BARRIER = "nvvm.bar.warp.sync"
# All threads of the cluster wait for each other after it.
CLUSTER_BARRIER = "nvvm.cluster.arrive"
ASYNC_COPY = "nvvm.cp.async.shared.global"
COMMIT = "nvvm.cp.async.commit.group"
ARRIVED = "nvvm.cp.async.wait.group"
SEND = "nvvm.cp.async.bulk.tensor.global.shared.cta"
_COMMIT = "nvvm.cp.async.bulk.commit.group"
_WAIT = "nvvm.cp.async.bulk.wait_group"
_FENCE = "nvvm.fence.proxy"
_WGMMA_WAIT = "wgmma.wait_group"

# What accesses to shared memory are made of, and whether they write. Inline PTX may do either.
_ACCESSES = {
    "llvm.load": False,
    "llvm.store": True,
    "llvm.atomicrmw": True,
    "llvm.cmpxchg": True,
    "llvm.inline_asm": True,
    "nvvm.ldmatrix": False,
    "nvvm.mapa": False,  # another block has the same bytes, which are read there
    "nvvm.stmatrix": True,
    ASYNC_COPY: True,
}
_ADDRESSING = "llvm.getelementptr"
# Only rings have addresses that are computed.
_COMPUTED = "llvm.inttoptr"
# Dialects whose operations work on numbers, never on pointers: most of a function is theirs.
_NUMBERS = ("arith.", "math.", "vector.")
_CONTROL = ("scf.if", "scf.for", "scf.while")
_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class Buffer:
    """One `warp.alloc`.

    Units:    bytes
    """

    number: int  # in the order of the function; what tells buffers apart
    op: ir.OpView = field(compare=False)

    @cached_property
    def size(self) -> int:
        return int(ir.IntegerAttr(self.op.attributes["bytes"]).value)

    @cached_property
    def offset(self) -> int:
        """Where it lies; only once that is planned."""
        return int(ir.IntegerAttr(self.op.attributes["offset"]).value)

    @cached_property
    def is_ring(self) -> bool:
        """Whether others than these threads write to it, from the start, as channels order it."""
        return "alignment" in self.op.attributes and not self.is_sent

    @cached_property
    def is_sent(self) -> bool:
        """Whether hardware copies from it, and may go on doing so."""
        return "sent" in self.op.attributes

    @cached_property
    def is_in_loop(self) -> bool:
        """Whether it begins to be several times."""
        around = self.op.operation.parent
        while around is not None and around.name not in _LOOPS:
            around = around.parent
        return around is not None

    @cached_property
    def is_throughout(self) -> bool:
        """Whether it is in use to the end."""
        return "throughout" in self.op.attributes

    @cached_property
    def alignment(self) -> int:
        if "alignment" not in self.op.attributes:
            return SHARED_ALIGNMENT
        return int(ir.IntegerAttr(self.op.attributes["alignment"]).value)

    @cached_property
    def slots(self) -> int:
        """How many slots it has, as a ring that a loop turns; 0: it is none."""
        return number_of(self.op, SLOTS) if SLOTS in self.op.attributes else 0

    @cached_property
    def ring(self) -> int | None:
        """The number of the ring that it is, as loops name it."""
        return number_of(self.op, RING) if RING in self.op.attributes else None

    @cached_property
    def is_by_warp(self) -> bool:
        """Whether each warp only touches bytes that no other warp does."""
        return "by_warp" in self.op.attributes

    @property
    def team_bytes(self) -> int:
        """How much further on the next team has it; 0 where all have one. Once that is planned."""
        given = self.op.attributes
        return int(ir.IntegerAttr(given[TEAM_BYTES]).value) if TEAM_BYTES in given else 0

    def overlaps(self, other: Buffer) -> bool:
        """Whether they share bytes, as planned."""
        if self == other:
            return True
        return self.offset < other.offset + other.size and other.offset < self.offset + self.size


@dataclass(frozen=True)
class Touch:
    """A read or write of a buffer, before which a barrier can stand: at `op`.

    `slot` is the one that it touches, counted from that of the current turn; None: any.
    """

    op: ir.OpView
    buffer: Buffer
    writes: bool
    is_async: bool = False
    slot: int | None = None

    @property
    def what(self) -> tuple[Buffer, bool, bool, int | None]:
        """All but where it is."""
        return self.buffer, self.writes, self.is_async, self.slot


@dataclass(frozen=True)
class Barrier:
    """All threads of the block, or of each warp, have come here and see each other's memory."""

    op: ir.OpView
    is_of_block: bool


@dataclass(frozen=True)
class Send:
    """Of each warp, one thread has hardware copy what the warp has in a buffer. It is a read that
    goes on; nobody can wait for one that is not `is_committed`."""

    op: ir.OpView
    buffer: Buffer
    is_committed: bool

    @property
    def read(self) -> Touch:
        return Touch(self.op, self.buffer, writes=False)


@dataclass(frozen=True)
class Fence:
    """What threads wrote is there for copies that begin after a barrier."""

    op: ir.OpView


@dataclass(frozen=True)
class Wait:
    """Whoever began copies waits until no more than `pending` of the last of them read."""

    op: ir.OpView
    pending: int


@dataclass(frozen=True)
class Commit:
    """What a thread copied since the last one is a group."""

    op: ir.OpView


@dataclass(frozen=True)
class Arrived:
    """A thread goes on when no more than `pending` of its latest groups are under way."""

    op: ir.OpView
    pending: int


@dataclass(frozen=True)
class Alloc:
    """Where a buffer begins to be."""

    buffer: Buffer


@dataclass(frozen=True)
class Unit:
    """Control flow that threads may take each for itself, and what it touches."""

    op: ir.OpView
    touches: tuple[Touch, ...]


@dataclass(frozen=True)
class Branch:
    """One of these, as a whole; the last is empty where there is no `else`. There is one where all
    come that count: of roles."""

    op: ir.OpView
    ways: tuple[Skeleton, ...]


@dataclass(frozen=True)
class Loop:
    """These after each other, any number of times; it may end after each of them.

    Each turn reads the slot after that of the turn before, of the rings of these numbers.
    """

    op: ir.OpView
    parts: tuple[Skeleton, ...]
    rings: frozenset[int] = frozenset()


Node = Touch | Barrier | Commit | Arrived | Send | Fence | Wait | Alloc | Unit | Branch | Loop
Skeleton = tuple[Node, ...]


def skeleton_of(function: ir.OpView) -> Skeleton:
    """What of a function concerns shared memory, in order."""
    pointer = ir.Type.parse("!llvm.ptr<3>")
    [block] = function.regions[0].blocks
    return _Reader(pointer).block(block)


class _Reader:
    def __init__(self, pointer: ir.Type) -> None:
        self.pointer = pointer
        self.buffers: dict[ir.Value, Buffer] = {}
        self.slots: dict[ir.Value, int] = {}
        self.rings: list[Buffer] = []
        self.computed: set[ir.Value] = set()
        self.numbers = count()
        # Classes of the bindings that stand for operations on numbers, as they are met: a function
        # has thousands of operations, and is read several times.
        self.skipped: set[type] = set()

    def block(self, block: ir.Block) -> Skeleton:
        nodes: list[Node] = []
        for op in block.operations:
            if type(op) in self.skipped:
                continue
            node = self._node(op)
            if nodes and _of_rings(nodes[-1]) and _of_rings(node):
                # Nothing stands between: what holds for the first and the last holds for all.
                nodes[-1] = Unit(nodes[-1].op, node.touches)
            elif nodes and _goes_on(nodes[-1], node):
                continue
            elif node is not None:
                nodes.append(node)
        return tuple(nodes)

    def _node(self, op: ir.OpView) -> Node | None:
        name = op.operation.name
        if name.startswith(_NUMBERS):
            if type(op) is not ir.OpView:  # which stands for all that have no class of their own
                self.skipped.add(type(op))
            return None
        if name in _CONTROL:
            return self._control(op, name)
        if name == ALLOC:
            buffer = Buffer(next(self.numbers), op)
            if buffer.is_ring:
                self.rings.append(buffer)
                self.computed.add(op.results[0])
            else:
                self.buffers[op.results[0]] = buffer
            return Alloc(buffer)
        if name in (BLOCK_BARRIER, TEAM_BARRIER, WARP_BARRIER, CLUSTER_BARRIER):
            return Barrier(op, is_of_block=name != WARP_BARRIER)
        if name == COMMIT:
            return Commit(op)
        if name == ARRIVED:
            return Arrived(op, number_of(op, "n"))
        if name == _FENCE:
            return Fence(op)
        if name == _WAIT:
            return Wait(op, number_of(op, "group"))
        if name == _COMPUTED:
            self.computed.update(op.results)
            return None
        if _ends_products(op, name):
            return Unit(op, tuple(Touch(op, ring, writes=False) for ring in self.rings))
        touched = [v for v in op.operands if v.type == self.pointer]
        if not touched:
            return None
        if self.computed.issuperset(touched):
            return Unit(op, tuple(Touch(op, ring, writes=False) for ring in self.rings))
        [pointer] = touched
        if name == _ADDRESSING:
            self.buffers[op.results[0]] = self.buffers[pointer]
            if SLOT_AHEAD in op.attributes:
                self.slots[op.results[0]] = number_of(op, SLOT_AHEAD)
            elif pointer in self.slots:
                self.slots[op.results[0]] = self.slots[pointer]
            return None
        assert name in _ACCESSES, f"{name} does what is unknown to shared memory"
        buffer, slot = self.buffers[pointer], self.slots.get(pointer)
        return Touch(op, buffer, _ACCESSES[name], name == ASYNC_COPY, slot)

    def _control(self, op: ir.OpView, name: str) -> Node | None:
        if ROLE in op.attributes:
            return Branch(op, (self.block(op.regions[0].blocks[0]),))
        if ELECTED in op.attributes:
            return self._sent(op)
        bodies = tuple(self.block(r.blocks[0]) for r in op.regions if len(r.blocks))
        if not any(bodies):
            return None
        if UNIFORM not in op.attributes:
            return Unit(op, tuple(_touches(bodies)))
        if name in _LOOPS:
            rings = ir.ArrayAttr(op.attributes[RINGS]) if RINGS in op.attributes else ()
            return Loop(op, bodies, frozenset(ir.IntegerAttr(one).value for one in rings))
        return Branch(op, bodies if len(bodies) == 2 else (*bodies, ()))

    def _sent(self, op: ir.OpView) -> Node | None:
        found: Send | None = None
        for inner in op.regions[0].blocks[0].operations:
            name = inner.operation.name
            if name == SEND:
                assert found is None, "one copy at a time is begun"
                found = Send(op, self.buffers[inner.operands[1]], is_committed=False)
            elif name == _COMMIT and found is not None:
                found = replace(found, is_committed=True)
            else:
                node = None if name == _COMMIT else self._node(inner)
                assert node is None, f"one thread of a warp does {inner}"
        return found


def _ends_products(op: ir.OpView, name: str) -> bool:
    """Whether it waits for products, which have read rings until then."""
    if name == "llvm.inline_asm":
        return bool(ir.StringAttr(op.attributes["asm_string"]).value.startswith(_WGMMA_WAIT))
    return name == "nvvm.wgmma.wait.group.sync.aligned"


def _of_rings(node: Node | None) -> TypeGuard[Unit]:
    """Whether it waits for or arrives at channels, and does nothing else."""
    if not isinstance(node, Unit) or not node.touches:
        return False
    return all(one.buffer.is_ring and not one.writes for one in node.touches)


def _goes_on(node: Node, after: Node | None) -> bool:
    """Whether it is the same access as the one before it, to other elements: one stands for all."""
    if not isinstance(node, Touch) or not isinstance(after, Touch):
        return False
    return node.what == after.what


def _touches(bodies: tuple[Skeleton, ...]) -> list[Touch]:
    found: list[Touch] = []
    for body in bodies:
        for node in body:
            match node:
                case Touch():
                    found.append(node)
                case Unit(_, touches):
                    found += touches
                case Alloc():
                    pass
                case _:
                    raise AssertionError(f"{node} stands where not all threads may come")
    return found
