"""Whether both roles take the slots of channels alike, so that neither waits for ever.

What a role takes is a sequence of *stretches*, in which it takes one slot after the other, and of
loops and branches, whose blocks are such sequences. Both roles must have the same: loops with equal
bounds, branches with equal conditions, and in each stretch as many slots of each channel; and where
one says which program it does from here on, the other one says the same. A branch around a loop
that asks whether the loop turns is no branch. Where several teams do programs by turns, both ways
of that branch are compared: what a team gets of its own program, what it skips of another one's.

Then, where the math warps wait for a slot, both roles have been through the same stretches before
this one. The loader gets as far as to publish that slot, if each slot that it acquires before is
free by then: of each channel, the slots that the math warps have not got yet (`ahead`), and the
oldest one that they hold with those since, are no more than its depth. That is asked at each place
where a slot is got, with the oldest that is held there on any path (`flow.Oldest`).

Teams get slots in the order of programs, and hold none from one program to the next. So the first
program that is not over has all that it waits for from itself, and what was said holds of it.

    loader: A B A B    math: B A B A    while they wait for the first B, the loader is ahead by an A
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mlir import ir

from tilec.warp.flow import Oldest
from tilec.warp.problem import Problem
from tilec.warp.reading import PROGRAM, SKIP, Pairs, depth_of, is_of_teams, is_same, turns_if

_TAKES = ("warp.acquire", "warp.get", SKIP)
_PUBLISH = "warp.publish"


@dataclass(frozen=True)
class Stretch:
    """Slots that are taken and published after each other: operations of one block, in order."""

    ops: tuple[ir.OpView, ...]

    @property
    def counts(self) -> Counter[ir.Value]:
        """How many slots of each channel are taken."""
        return Counter(op.operands[0] for op in self.ops if op.operation.name in _TAKES)


@dataclass(frozen=True)
class Control:
    """A loop or branch in which slots are taken; `ways` are those of its blocks."""

    op: ir.OpView
    ways: tuple[tuple[Item, ...], ...]


@dataclass(frozen=True)
class Saying:
    """Which program is done from here on."""

    op: ir.OpView


Item = Stretch | Control | Saying


def disagreements(loader: ir.Block, math: ir.Block, oldest: Oldest) -> Iterator[Problem]:
    """All that keeps the roles from taking slots alike, or else all that could stop them."""
    comparison = _Comparison(oldest)
    comparison.compare(_items(loader), _items(math), loader.owner.opview, math.owner.opview)
    yield from comparison.differences or comparison.cycles


# ---- what a role takes ---------------------------------------------------------------------------


def _items(block: ir.Block) -> list[Item]:
    items: list[Item] = []
    stretch: list[ir.OpView] = []
    for op in block.operations:
        if op.operation.name in (*_TAKES, _PUBLISH):
            stretch.append(op)
        elif op.operation.name == PROGRAM:
            items += [Stretch(tuple(stretch)), Saying(op)]
            stretch = []
        elif len(op.regions):
            ways = tuple(tuple(_items(r.blocks[0])) for r in op.regions if len(r.blocks))
            if any(ways):
                items += [Stretch(tuple(stretch)), _without_guard(Control(op, ways))]
                stretch = []
    return _non_empty([*items, Stretch(tuple(stretch))])


def _non_empty(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if not isinstance(item, Stretch) or item.ops]


def _without_guard(control: Control) -> Control:
    """The loop, where there is nothing but one in a branch that asks whether it turns."""
    if control.op.operation.name != "scf.if":
        return control
    then, *otherwise = control.ways
    match then:
        case (Control() as loop,) if not any(otherwise) and _is_for(loop):
            return loop if turns_if(loop.op, control.op.operands[0]) else control
        case _:
            return control


def _is_for(control: Control) -> bool:
    return bool(control.op.operation.name == "scf.for")


# ---- whether it is the same ----------------------------------------------------------------------


class _Comparison:
    def __init__(self, oldest: Oldest) -> None:
        self.differences: list[Problem] = []
        self.cycles: list[Problem] = []
        self._oldest = oldest
        self._pairs: Pairs = {}  # numbers of the loader's turns, by those of the math warps

    def compare(
        self,
        loader: Sequence[Item],
        math: Sequence[Item],
        loader_op: ir.OpView,
        math_op: ir.OpView,
    ) -> None:
        for number, item in enumerate(math):
            if isinstance(item, Control) and is_of_teams(item.op):
                self.compare(loader[:number], math[:number], loader_op, math_op)
                for after in math[number + 1 :]:
                    self._differ(_op_of(after), item.op)
                for way in item.ways:
                    self.compare(loader[number:], way, loader_op, item.op)
                return
        for mine, its in zip(math, loader, strict=False):
            match mine, its:
                case Stretch(), Stretch():
                    self._stretch(its, mine)
                case Control(), Control():
                    self._control(its, mine)
                case Saying(), Saying():
                    if not is_same(mine.op.operands[0], its.op.operands[0], self._pairs):
                        what = "the roles do different programs"
                        self.differences.append(Problem(what, mine.op, its.op))
                case _:
                    self._differ(_op_of(mine), _op_of(its))
        longer = (math if len(math) > len(loader) else loader)[min(len(math), len(loader)) :]
        for item in longer:
            self._differ(_op_of(item), loader_op if len(math) > len(loader) else math_op)

    def _differ(self, op: ir.OpView, cause: ir.OpView) -> None:
        self.differences.append(Problem("the roles do not take the same slots", op, cause))

    def _control(self, loader: Control, math: Control) -> None:
        one, other = math.op, loader.op
        name = one.operation.name
        numbers = {"scf.for": 3, "scf.if": 1}.get(name)
        if name != other.operation.name:
            self._differ(one, other)
            return
        if numbers is None:
            what = "nobody knows how often slots are taken"
            self.differences.append(Problem(what, one, other))
            return
        asked = zip(list(one.operands)[:numbers], list(other.operands)[:numbers], strict=True)
        if not all(is_same(mine, its, self._pairs) for mine, its in asked):
            what = "bounds" if name == "scf.for" else "conditions"
            self.differences.append(Problem(f"the {what} of the roles differ", one, other))
        if name == "scf.for":
            mine, its = (op.regions[0].blocks[0].arguments[0] for op in (one, other))
            self._pairs[mine] = its
        # There may be no `else` on one side.
        for items in zip_longest(loader.ways, math.ways, fillvalue=()):
            self.compare(*items, other, one)

    def _stretch(self, loader: Stretch, math: Stretch) -> None:
        if loader.counts != math.counts:
            self._differ(math.ops[0], loader.ops[0])
            return
        got: Counter[ir.Value] = Counter()
        for op in math.ops:
            channel = op.operands[0]
            acquired = _acquired_until_published(loader, channel, got[channel])
            if acquired is None:
                what = "a slot is published elsewhere than it is acquired"
                self.differences.append(Problem(what, op, loader.ops[0]))
                return
            if op.operation.name != SKIP:
                self.cycles += self._waits_for_ever(op, acquired, got)
            got[channel] += 1

    def _waits_for_ever(
        self, op: ir.OpView, acquired: Counter[ir.Value], got: Counter[ir.Value]
    ) -> Iterator[Problem]:
        held = self._oldest.get(op, {})
        for channel, count in acquired.items():
            ahead = count - got[channel]
            if ahead > 0 and held.get(channel, -1) + 1 + ahead > depth_of(channel):
                what = "the slot never comes: the loader waits for one that is held here"
                yield Problem(what, op, channel.owner.opview)


def _acquired_until_published(
    loader: Stretch, channel: ir.Value, number: int
) -> Counter[ir.Value] | None:
    """How many slots of each channel the loader has acquired when it publishes this one."""
    acquired: Counter[ir.Value] = Counter()
    slot: ir.Value | None = None
    for op in loader.ops:
        if op.operation.name == _PUBLISH:
            if slot is not None and op.operands[1] == slot:
                return acquired
            continue
        if op.operands[0] == channel and acquired[channel] == number:
            slot = op.results[0]
        acquired[op.operands[0]] += 1
    return None


def _op_of(item: Item) -> ir.OpView:
    return item.ops[0] if isinstance(item, Stretch) else item.op
