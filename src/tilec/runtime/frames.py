"""All launches of a pipeline, ready to be given to streams: one call's at a time.

As an entry's frames, these are made once and used again: a call takes them out of a list and puts
them back, so that two threads never fill the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tilec.artifact.expression import Value
from tilec.runtime.errors import TilecError
from tilec.runtime.stream_schedule import FORK

if TYPE_CHECKING:
    from tilec.runtime.cuda_driver import Completion, Driver
    from tilec.runtime.entry import Cells, Entry, Start, Started
    from tilec.runtime.step import Step
    from tilec.runtime.stream_schedule import Schedule, Turn


class Frames:
    """The launches `steps` of the variants `entries`, on streams as `schedule` says."""

    __slots__ = (
        "_bases",
        "_bits",
        "_cells",
        "_driver",
        "_events",
        "_schedule",
        "_starts",
        "_steps",
    )

    def __init__(
        self,
        steps: Sequence[Step],
        entries: Sequence[Entry],
        schedule: Schedule,
        driver: Driver,
        code: object,
    ) -> None:
        self._steps = steps
        self._schedule = schedule
        self._driver = driver
        self._cells: list[Cells] = []
        self._starts: list[Start] = []
        for step, entry, turn in zip(steps, entries, schedule.turns, strict=True):
            cells = step.cells(entry)
            early = entry.variant.starts_early and turn.follows
            self._cells.append(cells)
            self._starts.append(driver.prepared(code, entry, cells, early))
        self._bases: list[int] = []
        self._bits: Sequence[int] | None = None
        self._events: dict[int, Completion] = {}

    def fill_scalars(self, bits: Sequence[int], values: Mapping[str, Value] | None) -> None:
        """Fills in what the caller gives for scalars, and what follows from it if `values` are
        given; what the last call gave is there already. Frames that refuse are not used again.

        Raises:   ContractError
        """
        if bits == self._bits:
            return
        for step, cells in zip(self._steps, self._cells, strict=True):
            step.fill_scalars(cells, bits, values)
        self._bits = bits

    def fill_pointers(self, bases: list[int]) -> None:
        """Fills in addresses; those of the last call are there already."""
        if bases == self._bases:
            return
        for step, cells in zip(self._steps, self._cells, strict=True):
            step.fill_pointers(cells, bases)
        self._bases = bases

    def start(self, stream: int, pipeline: Started) -> None:
        """Gives all launches to the caller's stream, and to others beside it.

        Whatever happens, what the caller's stream is given next comes after all that was started.

        Raises:   LaunchError; ContractError if the stream is another device's
        """
        if self._schedule.streams > 1:
            self._start_on_several(stream, pipeline)
            return
        number = -1
        try:
            for start in self._starts:
                number += 1
                start(stream)
        except TilecError as error:
            raise self._steps[number].failure(error) from error

    def _start_on_several(self, stream: int, pipeline: Started) -> None:
        driver, schedule = self._driver, self._schedule
        with driver.side_streams(schedule.streams - 1, pipeline, stream) as side:
            streams = [stream, *side]
            self._record(FORK, stream, pipeline)
            try:
                for turn, start in zip(schedule.turns, self._starts, strict=True):
                    self._take(turn, start, streams[turn.stream], pipeline)
                for join in schedule.joins:
                    driver.wait_for(self._events[join], stream)
            except BaseException:  # an interrupt of the user, too
                self._join_all(streams, pipeline)
                raise

    def _take(self, turn: Turn, start: Start, stream: int, pipeline: Started) -> None:
        for wait in turn.waits:
            self._driver.wait_for(self._events[wait], stream)
        try:
            start(stream)
        except TilecError as error:
            raise self._steps[turn.launch].failure(error) from error
        if turn.is_recorded:
            self._record(turn.launch, stream, pipeline)

    def _record(self, launch: int, stream: int, pipeline: Started) -> None:
        """Makes the event of a launch, or FORK, stand for what a stream was given so far."""
        event = self._events.get(launch)
        if event is None:
            event = self._events[launch] = self._driver.made_event(pipeline.device)
        self._driver.record(event, stream)

    def _join_all(self, streams: Sequence[int], pipeline: Started) -> None:
        for one in streams[1:]:
            # A capture refuses to wait for a stream that was given nothing yet.
            with suppress(TilecError):
                self._record(FORK, one, pipeline)
                self._driver.wait_for(self._events[FORK], streams[0])
