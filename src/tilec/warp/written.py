"""What threads write to shared memory for products to read: a buffer's places, at one moment.

Of each place is known how far what was written there is on its way to products of all warps, and
how far products of all warps are from reading it no more. Only meetings of all math warps tell of
other warps; all of them follow one path, so what these did before one all have done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mlir import ir

# How far what was written is.
WRITTEN, SHOWN, SEEN = range(3)


@dataclass(frozen=True)
class Place:
    """One place of a buffer, written by the one in `by`; by this or that, or nobody, if empty.

    `stage`: whether it was shown since, and seen by all warps. `since` counts the products of these
    warps that have begun since the last one that reads it, at least, or is None if none that does
    is under way; `is_free` if that is known of all warps.
    """

    by: tuple[ir.OpView, ...] = ()
    stage: int = WRITTEN
    since: int | None = None
    is_free: bool = True


@dataclass(frozen=True)
class Places:
    """Those of a buffer, the one first that was written last."""

    made: ir.OpView = field(compare=False)
    places: tuple[Place, ...]

    @staticmethod
    def of(buffer: ir.OpView, depth: int) -> Places:
        """Before anything is written."""
        return Places(buffer, (Place(),) * depth)

    @property
    def oldest(self) -> Place:
        """The place that is written next."""
        return self.places[-1]

    def after_write(self, by: ir.OpView) -> Places:
        return replace(self, places=(Place((by,), is_free=False), *self.places[:-1]))

    def after_show(self) -> Places:
        return self._each(lambda one: replace(one, stage=max(one.stage, SHOWN)))

    def after_meeting(self) -> Places:
        def met(one: Place) -> Place:
            stage = SEEN if one.stage == SHOWN else one.stage
            return replace(one, stage=stage, is_free=one.is_free or one.since is None)

        return self._each(met)

    def latest_by(self, by: ir.OpView) -> Place | None:
        """Where this operation has written last, if that was not written again."""
        return next((one for one in self.places if one.by == (by,)), None)

    def after_product(self, read: Sequence[Place]) -> Places:
        """Once a product has begun that reads these places, among others."""

        def begun(one: Place) -> Place:
            if any(one is place for place in read):
                return replace(one, since=0, is_free=False)
            return one if one.since is None else replace(one, since=one.since + 1)

        return self._each(begun)

    def after_drain(self, pending: int) -> Places:
        def drained(one: Place) -> Place:
            is_done = one.since is not None and one.since >= pending
            return replace(one, since=None) if is_done else one

        return self._each(drained)

    def merged(self, other: Places) -> Places:
        """What holds on both ways."""
        pairs = zip(self.places, other.places, strict=True)
        return replace(self, places=tuple(_both(*pair) for pair in pairs))

    def _each(self, change: Callable[[Place], Place]) -> Places:
        return replace(self, places=tuple(change(one) for one in self.places))


def _both(one: Place, other: Place) -> Place:
    counts = [place.since for place in (one, other) if place.since is not None]
    return Place(
        one.by if one.by == other.by else (),
        min(one.stage, other.stage),
        min(counts, default=None),
        one.is_free and other.is_free,
    )
