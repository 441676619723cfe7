"""Roles, executed on the CPU as badly as the hardware may: what goes wrong, and when.

All roles run as far as they can, one after the other; channels make what comes out the same in
whatever order that is, where each waits for the phase after the last one that it waited for. Teams
do not, and so have another order, too. A product is done as late as can be: only once a wait or
drain says so. So a wrong use that is possible happens, in the turns that are executed.

Tiles have no content. Sums are `Sums`, of one product, until they are waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ir.types import is_tile
from tilec.ops.lowering import teams_of

_PROGRAMS = 3  # of a block that does several


class WrongError(Exception):
    """What no right program does."""


@dataclass(eq=False)
class Slot:
    """One turn of one slot."""

    channel: ir.Value
    number: int
    is_held: bool = True
    filled: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Content:
    """What was written to a place of a buffer. What others do is known of from meetings only."""

    is_shown: bool = False
    is_seen: bool = False
    is_there: bool = True


@dataclass(eq=False)
class Sums:
    """Sums that a product is being added to."""

    read: tuple[Slot | Content, ...]
    by: ir.OpView
    lent: ir.Value | None = None  # a tile in registers that the product reads
    is_used: bool = False  # up: by another product, or by a wait


@dataclass
class _Channel:
    depth: int
    tiles: int
    acquired: int = 0
    published: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)

    def is_full(self, number: int) -> bool:
        """Whether a slot is full, as far as the parity of its phase tells."""
        use, place = divmod(number, self.depth)
        phase = sum(one % self.depth == place for one in self.published)
        if phase % 2 == use % 2:
            return False
        if phase != use + 1:
            raise WrongError("an earlier phase is taken for the one that is waited for")
        return True


@dataclass(eq=False)
class _Strand:
    """A role, or a team of one: what it knows, and how far it is."""

    values: dict[ir.Value, object]
    team: int
    ahead: int  # programs, until the next one that is its own
    got: Counter[ir.Value] = field(default_factory=Counter)
    under_way: list[Sums] = field(default_factory=list)
    # Products that are over, though not those of other warps, as far as anybody knows.
    lately_over: list[Sums] = field(default_factory=list)
    buffers: dict[ir.Value, list[Content | None]] = field(default_factory=dict)
    turns: int = 0  # that it waited for
    program: object = None


def execute(function: ir.OpView, numbers: Mapping[str, int]) -> None:
    """Run a function's roles, where extents and scalars have these values (by name), else 1.

    Raises:   WrongError
    """
    for loader_last in (False, True) if teams_of(function) > 1 else (False,):
        _Machine(function, numbers, loader_last).run()


class _Machine:
    def __init__(self, function: ir.OpView, numbers: Mapping[str, int], loader_last: bool) -> None:
        [self.block] = function.regions[0].blocks
        self.loader_last = loader_last
        self.teams = teams_of(function)
        self.passed = [0] * self.teams  # how often each team was given the turn
        self.done: list[object] = []  # programs
        self.on_turn = _Strand({}, 0, 0)
        self.channels: dict[ir.Value, _Channel] = {}
        self.depths: dict[ir.Value, int] = {}
        attributes = ir.ArrayAttr(function.attributes["arg_attrs"])
        for argument, told in zip(self.block.arguments, attributes, strict=True):
            slot = ir.DictAttr(ir.DictAttr(told)["tile.slot"])
            name, kind = (ir.StringAttr(slot[key]).value for key in ("name", "kind"))
            self.values[argument] = numbers.get(name, 1) if kind != "pointer" else None

    @property
    def values(self) -> dict[ir.Value, object]:
        return self.on_turn.values

    def run(self) -> None:
        for op in self.block.operations:
            match op.operation.name:
                case "warp.channel":
                    tiles = len(ir.ArrayAttr(op.attributes["tiles"]))
                    self.channels[op.results[0]] = _Channel(_number(op, "depth"), tiles)
                case "warp.buffer":
                    self.depths[op.results[0]] = _number(op, "depth")
                case "warp.roles":
                    self.run_roles(op)
                case "func.return" | "warp.meet":
                    pass
                case _:
                    self.plain(op)

    def run_roles(self, op: ir.OpView) -> None:
        loader, math = (region.blocks[0] for region in op.regions)
        teams = [_Strand(dict(self.values), n, n) for n in range(self.teams)]
        self.running = [_Strand(dict(self.values), 0, 0), *teams]
        roles = [(one, self.follow(math if n else loader)) for n, one in enumerate(self.running)]
        if self.loader_last:
            roles.append(roles.pop(0))
        while roles:
            before = self.progress(), len(roles)
            for strand, role in list(roles):
                self.on_turn = strand
                if next(role, "end") == "end":
                    roles.remove((strand, role))
            if (self.progress(), len(roles)) == before:
                raise WrongError("all roles wait")
        for value, channel in self.channels.items():
            for strand in teams:
                if not channel.acquired == strand.got[value] == len(channel.published):
                    raise WrongError("slots are left over")
            if len(channel.released) != channel.acquired:
                raise WrongError("a slot is never released")
        if any(strand.under_way for strand in teams):
            raise WrongError("a product is never waited for")
        if self.teams > 1 and sorted(map(str, self.done)) != list(map(str, range(_PROGRAMS))):
            raise WrongError("not every program is done once")

    def progress(self) -> list[object]:
        every = self.channels.values()
        got = [(dict(one.got), one.turns) for one in self.running]
        return [*self.passed, *got, *((one.acquired, len(one.released)) for one in every)]

    # ---- control flow: what a generator yields is that it waits ------------------------------

    def follow(self, block: ir.Block) -> Iterator[str]:
        for op in block.operations:
            match op.operation.name:
                case "scf.for":
                    yield from self.loop(op)
                case "scf.if":
                    asked = op.operands[0].owner
                    if not isinstance(asked, ir.Block) and asked.name == "warp.mine":
                        self.done += [self.on_turn.program] if self.values[op.operands[0]] else []
                    region = op.regions[0 if self.values[op.operands[0]] else 1]
                    if len(region.blocks):
                        yield from self.follow(region.blocks[0])
                        self.hand_over(region.blocks[0], op.results)
                case "warp.acquire":
                    channel = self.channels[op.operands[0]]
                    number = channel.acquired
                    while (
                        number >= channel.depth and number - channel.depth not in channel.released
                    ):
                        yield "waits"
                    channel.acquired += 1
                    self.values[op.results[0]] = Slot(op.operands[0], number)
                case "warp.get":
                    strand, number = self.on_turn, self.on_turn.got[op.operands[0]]
                    while not self.channels[op.operands[0]].is_full(number):
                        yield "waits"
                    strand.values[op.results[0]] = Slot(op.operands[0], number)
                    strand.got[op.operands[0]] += 1
                case "warp.await_turn":
                    strand = self.on_turn
                    # The first team has its first turn without waiting.
                    wanted = strand.turns + (strand.team > 0)
                    while self.passed[strand.team] % 2 != wanted % 2:
                        yield "waits"
                    if self.passed[strand.team] != wanted:
                        raise WrongError("an earlier turn is taken for this one")
                    strand.turns += 1
                case "warp.program":
                    self.on_turn.program = self.values[op.operands[0]]
                case "warp.close":
                    channel = self.channels[op.operands[0]]
                    while len(channel.released) < channel.acquired:
                        yield "waits"
                case "warp.is_program":
                    self.values[op.results[0]] = 1
                case name if name.startswith("warp."):
                    getattr(self, name.partition(".")[2])(op)
                case "scf.yield" | "gpu.yield":
                    pass
                case _:
                    self.plain(op)

    def loop(self, op: ir.OpView) -> Iterator[str]:
        [body] = op.regions[0].blocks
        lower, upper, step, *carried = (self.values[value] for value in op.operands)
        for turn in range(lower, upper, step):  # type: ignore[call-overload]
            for argument, value in zip(body.arguments, (turn, *carried), strict=True):
                self.put(argument, value)
            yield from self.follow(body)
            carried = self.handed(body)
        for result, value in zip(op.results, carried, strict=True):
            self.values[result] = value

    def handed(self, block: ir.Block) -> list[object]:
        end = block.operations[len(block.operations) - 1]
        return [self.values[value] for value in end.operands]

    def hand_over(self, block: ir.Block, results: list[ir.Value]) -> None:
        for result, value in zip(results, self.handed(block), strict=True):
            self.values[result] = value

    # ---- slots -------------------------------------------------------------------------------

    def slot(self, op: ir.OpView) -> Slot:
        slot = self.values[op.operands[1]]
        if not isinstance(slot, Slot) or not slot.is_held:
            raise WrongError("there is no slot")
        if slot.channel != op.operands[0]:
            raise WrongError("the slot is of another channel")
        return slot

    def fill(self, op: ir.OpView) -> None:
        self.slot(op).filled.append(_number(op, "tile"))

    def publish(self, op: ir.OpView) -> None:
        slot = self.slot(op)
        slot.is_held = False
        channel = self.channels[slot.channel]
        if sorted(slot.filled) != list(range(channel.tiles)):
            raise WrongError("a tile is not filled, or twice")
        channel.published.add(slot.number)

    def no_slot(self, op: ir.OpView) -> None:
        self.values[op.results[0]] = None

    def tile(self, op: ir.OpView) -> None:
        self.values[op.results[0]] = self.slot(op)

    def read(self, op: ir.OpView) -> None:
        slot = self.values[op.operands[0]]
        if not isinstance(slot, Slot) or not slot.is_held:
            raise WrongError("what is read is gone")
        self.put(op.results[0], None)

    def release(self, op: ir.OpView) -> None:
        if self.values[op.operands[1]] is None:
            return
        slot = self.slot(op)
        if any(slot in sums.read for sums in self.on_turn.under_way):
            raise WrongError("a product reads the slot")
        slot.is_held = False
        self.channels[slot.channel].released.add(slot.number)

    def skip(self, op: ir.OpView) -> None:
        self.on_turn.got[op.operands[0]] += 1

    # ---- what threads write for products -----------------------------------------------------

    def write(self, op: ir.OpView) -> None:
        buffer, value = op.operands
        if isinstance(self.values[value], Slot | Sums):
            raise WrongError("a slot, or sums under way, are used")
        places = self.on_turn.buffers.setdefault(buffer, [None] * self.depths[buffer])
        before = places.pop(0)
        for sums in (*self.on_turn.under_way, *self.on_turn.lately_over):
            if before is not None and before in sums.read:
                raise WrongError("a product reads what is overwritten")
        if before is not None:
            before.is_there = False
        places.append(Content())
        self.values[op.results[0]] = places[-1]

    def contents(self) -> list[Content]:
        every = self.on_turn.buffers.values()
        return [one for places in every for one in places if one is not None]

    def show(self, op: ir.OpView) -> None:
        for one in self.contents():
            one.is_shown = True

    def join_warps(self, op: ir.OpView) -> None:
        self.on_turn.lately_over = []
        for one in self.contents():
            one.is_seen = one.is_shown

    def over(self, count: int) -> None:
        """So many products, the first ones, are over."""
        self.on_turn.lately_over += self.on_turn.under_way[:count]
        del self.on_turn.under_way[:count]

    # ---- turns -------------------------------------------------------------------------------

    def mine(self, op: ir.OpView) -> None:
        strand = self.on_turn
        is_mine = strand.ahead == 0
        strand.ahead = self.teams - 1 if is_mine else strand.ahead - 1
        self.values[op.results[0]] = int(is_mine)

    def pass_turn(self, op: ir.OpView) -> None:
        number, end, step = [self.values[value] for value in list(op.operands)[1:]] or (0, 0, 0)
        if number + step >= end:  # type: ignore[operator]
            self.passed[(self.on_turn.team + 1) % self.teams] += 1

    # ---- products ----------------------------------------------------------------------------

    def dot(self, op: ir.OpView) -> None:
        *factors, sums = (self.values[value] for value in op.operands)
        self.use_up(sums)
        slots = (slot for slot in factors if isinstance(slot, Slot) and slot.is_held)
        written = (one for one in factors if isinstance(one, Content) and one.is_there)
        read = (*slots, *(one for one in written if one.is_seen))
        lent = op.operands[0] if is_tile(op.operands[0]) else None
        if len(read) != (1 if lent is not None else 2):
            raise WrongError("a factor is gone")
        if lent is not None and any(sums.by == op for sums in self.on_turn.under_way):
            raise WrongError("a product reads the registers that the next one takes")
        begun = Sums(read, op, lent)
        self.on_turn.under_way.append(begun)
        self.values[op.results[0]] = begun

    def use_up(self, sums: object) -> None:
        if isinstance(sums, Sums):
            if sums.is_used:
                raise WrongError("sums are used twice")
            sums.is_used = True

    def drain(self, op: ir.OpView) -> None:
        pending = _number(op, "pending")
        self.over(max(0, len(self.on_turn.under_way) - pending))

    def wait(self, op: ir.OpView) -> None:
        begun = self.values[op.operands[0]]
        self.use_up(begun)
        self.over(max(0, len(self.on_turn.under_way) - _number(op, "pending")))
        if any(one is begun for one in self.on_turn.under_way):
            raise WrongError("an accumulator is used whose product is in flight")
        self.values[op.results[0]] = None

    # ---- anything else -----------------------------------------------------------------------

    def plain(self, op: ir.OpView) -> None:
        values = [self.values[value] for value in op.operands]
        if any(isinstance(value, Slot | Sums | Content) for value in values):
            raise WrongError("a slot, or sums under way, are used")
        for result in op.results:
            self.put(result, _computed(op, values) if _is_number(result) else None)

    def put(self, result: ir.Value, value: object) -> None:
        """Registers get another value."""
        if any(sums.lent is not None and sums.lent == result for sums in self.on_turn.under_way):
            raise WrongError("a product reads the registers")
        self.values[result] = value


def _is_number(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IndexType | ir.IntegerType)


def _computed(op: ir.OpView, values: list) -> int:  # type: ignore[type-arg]
    predicates = arith.CmpIPredicate
    match op.operation.name:
        case "arith.constant":
            return int(ir.IntegerAttr(op.attributes["value"]).value)
        case "arith.ceildivsi":
            return -(-values[0] // values[1])
        case "arith.addi":
            return values[0] + values[1]
        case "arith.cmpi":
            match _number(op, "predicate"):
                case predicates.slt:
                    return values[0] < values[1]
                case predicates.sgt:
                    return values[0] > values[1]
                case predicates.ne:
                    return values[0] != values[1]
            raise AssertionError(f"nothing is known of {op}")
        case "tile.part_id" | "warp.first_program":
            return 0
        case "warp.program_step":
            return 1
        case "warp.program_count":
            return _PROGRAMS
        case name:
            raise AssertionError(f"nothing is known of {name}")


def _number(op: ir.OpView, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)
