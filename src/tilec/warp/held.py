"""What a role holds at one place: slots, sums that products are being added to, the turn of a team.

What is held is *linear*: it is given up once. What two ways of the program bring to one place is
merged to what holds on both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mlir import ir

from tilec.warp.written import Places


@dataclass(frozen=True)
class Nothing:
    """What stands for a slot where there is none. To give it up is allowed, and not necessary."""


@dataclass(frozen=True)
class Slot:
    """A slot of a channel.

    `since` counts the products that have begun since the last one that reads it, at least, or is
    None where none is under way that does; `age` counts the slots of the channel that were got
    since, at most. Not `is_certain`, there may be none.
    """

    channel: ir.Value
    made: ir.OpView = field(compare=False)
    since: int | None = None
    age: int = 0
    is_certain: bool = True
    filled: frozenset[int] = frozenset()

    def after_product(self, *, reads: bool) -> Slot:
        if reads:
            return replace(self, since=0)
        return self if self.since is None else replace(self, since=self.since + 1)

    def after_drain(self, pending: int) -> Slot:
        """All but the last `pending` products are done."""
        is_done = self.since is not None and self.since >= pending
        return replace(self, since=None) if is_done else self


@dataclass(frozen=True)
class Sums:
    """An accumulator whose product may be in flight; certainly, if `is_certain`.

    `since` is a lower bound on the products issued after the last one that adds to it, or None if
    that one is done.
    """

    made: ir.OpView = field(compare=False)
    is_certain: bool = True
    since: int | None = 0

    def after_product(self) -> Sums:
        return self if self.since is None else replace(self, since=self.since + 1)

    def after_drain(self, pending: int) -> Sums:
        """All but the last `pending` products are done."""
        is_done = self.since is not None and self.since >= pending
        return replace(self, since=None) if is_done else self


@dataclass(frozen=True)
class Lent:
    """A tile whose registers a product may still read: it is not to be made anew.

    `since` counts the products that have begun since, at least; `by` are those that read it, or
    did.
    """

    by: frozenset[ir.Operation]
    since: int = 0


@dataclass(frozen=True)
class Turn:
    """This team may get slots, and no other one. It may up to here only, where the loop in
    `last_of` turns for the last time."""

    made: ir.OpView = field(compare=False)
    last_of: tuple[ir.OpView, ...] = ()


Held = Slot | Nothing | Sums | Lent | Turn | Places
# By value; what is not here is nothing special, or was given up.
AllHeld = dict[ir.Value, Held]


class DoNotMeetError(Exception):
    """What two ways bring is not the same."""


def merged(one: Held | None, other: Held | None) -> Held | None:
    """What a value is that is either of these; None stands for any other value.

    Raises:   DoNotMeetError
    """
    match one, other:
        case (None, None) | (Nothing(), Nothing()):
            return one
        case (Slot(), Nothing()):
            return replace(one, is_certain=False)
        case (Nothing(), Slot()):
            return replace(other, is_certain=False)
        case (Slot(), Slot()):
            return _merged_slots(one, other)
        case (Places(), Places()):
            return one.merged(other)
        case (Lent(), Lent()):
            return Lent(one.by | other.by, min(one.since, other.since))
        case (Turn(), Turn()) if one == other:
            return one
        case (Turn(), _) | (_, Turn()):
            raise DoNotMeetError("a turn meets what is none")
        case (Sums(), Sums()):
            is_certain = one.is_certain and other.is_certain
            counts = [sums.since for sums in (one, other) if sums.since is not None]
            return replace(one, is_certain=is_certain, since=min(counts, default=None))
        case (Sums(), None):
            return replace(one, is_certain=False)
        case (None, Sums()):
            return replace(other, is_certain=False)
        case _:
            raise DoNotMeetError("a slot meets what is none")


def _merged_slots(one: Slot, other: Slot) -> Slot:
    if one.channel != other.channel:
        raise DoNotMeetError("slots of two channels meet")
    if one.filled != other.filled:
        raise DoNotMeetError("slots meet of which other tiles are filled")
    counts = [slot.since for slot in (one, other) if slot.since is not None]
    return replace(
        one,
        since=min(counts, default=None),
        age=max(one.age, other.age),
        is_certain=one.is_certain and other.is_certain,
    )
