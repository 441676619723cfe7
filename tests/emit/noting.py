"""The pipelines of an emitted header with a driver that launches nothing, and what it saw."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from tests.emit.launching import Headers
from tests.emit.pipeline_calling import PipelineFunctions

(
    LAUNCHED, RECORDED, WAITED, TAKEN, GIVEN, ALLOCATED, FREED, ADDED, EDGE, INSTANTIATED, CHANGED,
    REPLAYED,
) = range(1, 13)  # fmt: skip


class CNote(ctypes.Structure):
    """`struct note` of fake_pipelines.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in (
            "kind", "early", "parameter_count", "number", "before_count",
        )),
        ("before", ctypes.c_int * 64),
        *((name, ctypes.c_uint64) for name in ("stream", "address", "bytes")),
        ("kernel", ctypes.c_char * 256),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("cluster", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("parameters", (ctypes.c_ubyte * 128) * 64),
    )  # fmt: skip


class CNoted(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in (
            "count", "events", "graphs", "executables", "taken", "allocated", "contexts_waited_for",
        )),
        ("notes", CNote * 1024),
    )  # fmt: skip


class CFailing(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_int)
        for name in (
            "launch", "event", "record", "wait", "take", "allocate", "graph", "node", "instantiate",
            "change", "replay",
        )
    )  # fmt: skip


class Pipelines(PipelineFunctions, Headers):
    """A header's functions, with a fake driver that writes down what it is asked."""

    def open(self, path):
        super().open(path)
        self.noted = CNoted.in_dll(self.driver, "noted")
        self.failing = CFailing.in_dll(self.driver, "fail")

    def notes(self, *kinds: int) -> list[CNote]:
        """What the driver was asked, in order; all, or what is of these kinds."""
        assert self.noted.count <= 1024
        notes = self.noted.notes[: self.noted.count]
        return [note for note in notes if not kinds or note.kind in kinds]

    def left(self) -> tuple[int, ...]:
        """What was not given back: events, graphs, executable graphs, memory of both kinds."""
        noted = self.noted
        return noted.events, noted.graphs, noted.executables, noted.taken, noted.allocated


class Order(NamedTuple):
    """What is done before what, as streams and events tell.

    `launches` are the streams of all launches, each with what is done when it starts: the numbers
    of launches, and "start" for all that the first stream had been given before. `given` are the
    streams on which memory was given back, with what is done then. `done` is by stream what is done
    before it is given something next.
    """

    launches: list[tuple[int, set[object]]]
    given: list[tuple[int, set[object]]]
    done: dict[int, set[object]]


def order_of(notes: Sequence[CNote], streams: Sequence[int]) -> Order:
    """The order in which a driver does what was asked of it on these streams."""
    found = Order([], [], {stream: set() for stream in streams})
    found.done[streams[0]].add("start")
    recorded = {}
    for place, note in enumerate(notes):
        done = found.done[note.stream]
        if note.kind == RECORDED:
            recorded[place] = set(done)
        elif note.kind == WAITED:
            done |= recorded[note.before[0]]
        elif note.kind == LAUNCHED:
            found.launches.append((note.stream, set(done)))
            done.add(len(found.launches) - 1)
        elif note.kind == GIVEN:
            found.given.append((note.stream, set(done)))
    return found
