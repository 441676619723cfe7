"""Which barriers are needless: without them, every two accesses would still be in order.

The end of a loop's turn comes before its start, so that a barrier which was placed first may be
needless once those after it stand.

Algorithm: the flow of control as a graph, and at each of its nodes what is pending there. Barriers
are tried in program order. Without one, what is pending before it goes on behind it; that is
followed, together with what is known already, until it meets a barrier or an access that conflicts.
So only what lies between a barrier and those after it is looked at, whatever loops are around it.
Nothing is followed beyond the last place at which its bytes are touched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.shared_memory.accesses import (
    Alloc,
    Barrier,
    Branch,
    Buffer,
    Loop,
    Node,
    Send,
    Skeleton,
    Touch,
    Unit,
)
from tilec.shared_memory.pending import (
    Level,
    Pending,
    after_barrier,
    after_step,
    after_turn,
    begun_at,
    behind_loop,
    needed,
    touches_of,
)


def needless_barriers(
    skeleton: Skeleton, barriers: Sequence[ir.Operation], warps: int
) -> list[ir.Operation]:
    """Those of the barriers that can be taken out, all together."""
    return Flow(skeleton, warps).needless(barriers)


@dataclass(frozen=True)
class _Turn:
    """The way from the end of a loop's turn to its start."""

    loop: Loop


@dataclass(frozen=True)
class _Behind:
    """The way out of a loop."""

    loop: Loop


@dataclass
class _Place:
    """A node of the graph, where control goes from there, and what is pending when it comes."""

    node: Touch | Send | Unit | Barrier | Node | _Turn | _Behind | None
    following: list[int] = field(default_factory=list)
    pending: set[Pending] = field(default_factory=set)


class Flow:
    """`visits` counts what was followed to a node: the measure of the work that was done."""

    def __init__(self, skeleton: Skeleton, warps: int) -> None:
        self.visits = 0
        self._warps = warps
        self._places = [_Place(None)]
        self._gone: set[int] = set()
        # Of each place, the first one to which control may come from there: nodes are drawn in
        # program order, and only loops lead back.
        self._first_ahead: list[int] = []
        self._is_in_loop = False
        self._draw(skeleton, 0)
        self._first_ahead += range(len(self._first_ahead), len(self._places))
        self._last = _last_touches(self._places)
        begun = [
            (number, one)
            for number, place in enumerate(self._places)
            if isinstance(place.node, Touch | Send | Unit)
            for one in begun_at(place.node)
        ]
        self._is_in_order = self._followed(begun)

    def needless(self, barriers: Sequence[ir.Operation]) -> list[ir.Operation]:
        if not self._is_in_order:
            return []
        numbers = {
            place.node.op.operation: number
            for number, place in enumerate(self._places)
            if isinstance(place.node, Barrier)
        }
        return [one for one in barriers if self._goes_without(numbers[one])]

    # ---- the graph -------------------------------------------------------------------------------

    def _after(self, number: int, node: Node | _Turn | _Behind | None) -> int:
        self._places.append(_Place(node))
        self._places[number].following.append(len(self._places) - 1)
        return len(self._places) - 1

    def _draw(self, skeleton: Skeleton, number: int) -> int:
        """Draw a skeleton behind a node; gives the node that ends it."""
        for node in skeleton:
            match node:
                case Alloc():
                    continue
                case Branch(_, ways):
                    number = self._joined([self._draw(way, number) for way in ways])
                case Loop():
                    number = self._draw_loop(node, number)
                case _:
                    number = self._after(number, node)
        return number

    def _joined(self, numbers: Sequence[int]) -> int:
        first, *others = dict.fromkeys(numbers)
        join = self._after(first, None)
        for other in others:
            self._places[other].following.append(join)
        return join

    def _draw_loop(self, loop: Loop, number: int) -> int:
        """It may turn again after any of its parts, and be left there, too."""
        head = self._after(number, None)
        is_outermost = not self._is_in_loop
        if is_outermost:
            self._first_ahead += range(len(self._first_ahead), head)
            self._is_in_loop = True
        ends, end = [], head
        for part in loop.parts:
            end = self._draw(part, end)
            ends.append(end)
        turn = self._after(self._joined(ends), _Turn(loop))
        self._places[turn].following.append(head)
        if is_outermost:
            self._first_ahead += [head] * (turn + 1 - head)
            self._is_in_loop = False
        return self._after(self._joined([number, *ends]), _Behind(loop))

    # ---- what is pending -------------------------------------------------------------------------

    def _goes_without(self, number: int) -> bool:
        """Take a barrier out, if what is then pending behind it conflicts with nothing."""
        self._gone.add(number)
        is_needless = self._followed([(number, one) for one in self._places[number].pending])
        if not is_needless:
            self._gone.remove(number)
        return is_needless

    def _followed(self, begun: Iterable[tuple[int, Pending]]) -> bool:
        """Whether what is pending behind these nodes conflicts with nothing; else all is as it
        was."""
        waiting = deque(
            (following, one)
            for number, one in begun
            for following in self._places[number].following
        )
        noted: list[tuple[int, Pending]] = []
        while waiting:
            number, one = waiting.popleft()
            place = self._places[number]
            if one in place.pending or self._last[one.buffer] < self._first_ahead[number]:
                continue
            self.visits += 1
            if self._conflicts(place, one):
                for noted_at, other in noted:
                    self._places[noted_at].pending.remove(other)
                return False
            place.pending.add(one)
            noted.append((number, one))
            left = self._left(number, one)
            if left is not None:
                waiting.extend((following, left) for following in place.following)
        return True

    def _conflicts(self, place: _Place, one: Pending) -> bool:
        if not isinstance(place.node, Touch | Send | Unit):
            return False
        touches = touches_of(place.node)
        return any(needed(one, touch, self._warps) is not Level.NOTHING for touch in touches)

    def _left(self, number: int, one: Pending) -> Pending | None:
        """What of it is pending behind a node."""
        match self._places[number].node:
            case Barrier(_, is_of_block):
                if number in self._gone:
                    return one
                return after_barrier(one, Level.BLOCK if is_of_block else Level.WARP, self._warps)
            case _Turn(loop):
                return after_turn(one, loop)
            case _Behind(loop):
                return behind_loop(one, loop)
            case None | Alloc() | Branch() | Loop():
                return one
            case step:
                return after_step(one, step)


def _last_touches(places: Sequence[_Place]) -> dict[Buffer, int]:
    """Of each buffer, the last place at which its bytes are touched, through whatever buffer."""
    own: dict[Buffer, int] = {}
    for number, place in enumerate(places):
        if isinstance(place.node, Touch | Send | Unit):
            own.update((touch.buffer, number) for touch in touches_of(place.node))
    last = dict(own)
    ordered = sorted(own, key=lambda one: one.offset)
    for position, buffer in enumerate(ordered):
        for other in ordered[position + 1 :]:
            if other.offset >= buffer.offset + buffer.size:
                break
            last[buffer] = max(last[buffer], own[other])
            last[other] = max(last[other], own[buffer])
    return last
