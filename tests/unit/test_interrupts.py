"""An interrupt of the user (Ctrl-C) at any moment of a program: what runs keeps its memory, what is
launched later knows of it, nothing waits for ever and nothing is kept for ever.

Python tells of an interrupt where a function of its own begins and where one of C returns, so those
are the moments: each in turn, in all programs below.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from contextlib import suppress
from inspect import CO_GENERATOR
from pathlib import Path
from types import SimpleNamespace

import pytest
from manifest_samples import add_kernel
from noting_driver import module_of
from pipeline_samples import with_pipelines
from simulated_streams import LEGACY, Streams, stream
from test_borrows_of_launches import (
    BASE,
    BLOCKING,
    KIB,
    A,
    B,
    Executable,
    Memory,
    _begin_anew,
    conflict,
)

import tilec.runtime as rt
from tilec.runtime import launch
from tilec.runtime.array import Array
from tilec.runtime.launcher import Launcher

pytestmark = pytest.mark.usefixtures("launch_path")

RUNTIME = str(Path(launch.__file__).parent)
OBJECTS = {address: stream(address) for address in (LEGACY, BLOCKING, A, B)}
ADDRESS = 0x200  # of a stream that is given by its address
KERNEL, MANIFEST = add_kernel(), with_pipelines()
PLACES_OF_FIRST = 1000, 1008, 1016
WORKSPACES = 2**45


class Interrupts:
    """Interrupts the runtime at its moment number `at`, counted from 0."""

    def __init__(self, at):
        self.left = at

    def __enter__(self):
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _seen(self, frame, event, _):
        code = frame.f_code
        # Where a generator is closed it does not begin, though a profiler is told so.
        is_moment = event == "c_return" or (event == "call" and not code.co_flags & CO_GENERATOR)
        if is_moment and code.co_filename.startswith(RUNTIME):
            self.moment()

    def moment(self):
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt

    @property
    def was_in_time(self):
        return self.left < 0


class Watched(Streams):
    """Notes what each launch was given, and which do not come after all that they conflict with.
    Behind each launch is a moment, too."""

    def __init__(self, interrupts):
        super().__init__(blocking=(BLOCKING,))
        self.interrupts = interrupts
        self.memories = []  # what the next launch borrows
        self.given = []  # of each launch: where its tensors lie, in KiB, and their memory
        self.races = []

    def prepared(self, code, entry, cells, early=False):
        start = super().prepared(code, entry, cells, early)

        def noted(on):
            known = self.known_if_launched(on)
            start(on)
            if self.launches > len(self.given):
                self._note([(cell - BASE) // KIB for cell in (cells or ())[:3]], known)
            self.interrupts.moment()

        return noted

    def _note(self, places, known):
        this = ("part", "shared", "shared"), places
        for number, (other, _) in enumerate(self.given):
            is_open = number not in self.done | known
            if is_open and conflict(this, (this[0], other)):
                self.races.append((number, len(self.given)))
        self.given.append((places, self.memories))

    def stream_memory(self, size_bytes, entry, stream):
        self.memory += 2**20
        return WORKSPACES + self.memory

    def free_stream_memory(self, address, entry, stream):
        pass

    def allocated(self, size_bytes, device):
        return Memory(self.stream_memory(size_bytes, None, 0), size_bytes)

    def built_graph(self, code, entry, nodes):
        return Executable(self)


class Program:
    """Steps of which one is interrupted; what they launch was launched once before them."""

    def __init__(self, interrupts, has_pipelines):
        self.driver = driver = Watched(Interrupts(-1))
        loaded = SimpleNamespace(driver=lambda: driver, code=lambda: "code")
        self.add = Launcher(loaded, [KERNEL])
        self.launch(A, *PLACES_OF_FIRST)
        if has_pipelines:
            self.sums = module_of(driver, MANIFEST).sums
            self.call(A, 0, 8)
            self.graph = self.sums.graph(self.tensor(0), self.tensor(8), 1.0)
        driver.finish_all(A)
        self.settle()
        self.settle()
        driver.interrupts = self.interrupts = interrupts

    def tensor(self, place):
        memory = Memory(BASE + place * KIB)
        self.driver.memories.append(weakref.ref(memory))
        return rt.Tensor(memory, Array(BASE + place * KIB, "f32", (1000,), (1,), 0))

    def launch(self, on, *places, order=True):
        """What it borrows is the launch's alone."""
        self.driver.memories = []
        self.add.launch(*map(self.tensor, places), 1.0, stream=OBJECTS.get(on, on), order=order)

    def call(self, on, out, x):
        """Calls a pipeline."""
        self.driver.memories = []
        self.sums.launch(self.tensor(out), self.tensor(x), 1.0, stream=OBJECTS[on])

    def replay(self, on):
        """Twice, and nobody has the graph then."""
        graph, self.graph = self.graph, None
        self.driver.memories = [weakref.ref(one._shared.buffer) for one in graph._given[:2]]
        graph.replay(OBJECTS[on])
        graph.replay(OBJECTS[on])

    def settle(self):
        launch.UNDER_WAY.settle()

    def finish(self, on):
        self.driver.finish_one(on)

    def step(self, name, *told):
        with suppress(KeyboardInterrupt), self.interrupts:
            getattr(self, name)(*told)

    def check(self):
        for number, (_, memories) in enumerate(self.driver.given):
            if number not in self.driver.done:
                assert all(memory() is not None for memory in memories)
        assert not self.driver.races

    def finish_all(self):
        """Nothing is left, and whoever comes now does not wait."""
        for _ in range(3):
            for queue in list(self.driver.queues):
                self.driver.finish_all(queue)
            self.settle()
        assert launch.UNDER_WAY.borrowers() == []
        told = A, *PLACES_OF_FIRST
        other = threading.Thread(target=self.launch, args=told, daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), "it waits for ever"


def launches(on, count, first=0):
    return [("launch", on, *(24 * (first + n) + i for i in (0, 8, 16))) for n in range(count)]


SETTLE, FINISH_A = ("settle",), ("finish", A)
PROGRAMS = {
    "one stream": [*launches(A, 4), FINISH_A, SETTLE, *launches(A, 2, 4), SETTLE],
    "many": [*launches(A, 5), FINISH_A, FINISH_A, *launches(A, 5, 5), FINISH_A],
    "two streams": [
        *launches(A, 2),
        *launches(B, 2),
        *launches(A, 1),
        FINISH_A,
        SETTLE,
        *launches(B, 1),
        *launches(LEGACY, 1, 1),
    ],
    "an address": [*launches(ADDRESS, 2), *launches(A, 1), SETTLE, *launches(A, 1, 1)],
    "a thread's own": [*launches(2, 2), *launches(A, 1), SETTLE, *launches(A, 1, 1)],
    "back on one stream": [
        *launches(A, 1), *launches(B, 1, 1), FINISH_A, SETTLE, SETTLE, *launches(B, 2, 2),
        *launches(A, 1, 2),
    ],
}  # fmt: skip


PIPELINES = {
    "pipeline": [("call", A, 0, 8), *launches(A, 1, 1), SETTLE],
    "graph": [("replay", A), *launches(A, 1, 1), SETTLE],
}


@pytest.fixture
def few_gather(monkeypatch):
    """Events are recorded after three launches, not 64."""
    monkeypatch.setattr(launch, "LIMIT", 3)
    monkeypatch.setattr(launch, "LIMIT_AFTER_CHANGE", 2)


@pytest.mark.parametrize("name", [*PROGRAMS, *PIPELINES])
def test_an_interrupt_changes_nothing_for_what_runs(name, few_gather):
    program, at = {**PROGRAMS, **PIPELINES}[name], 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            _begin_anew(patch.setattr)
            interrupts = Interrupts(at)
            run = Program(interrupts, name in PIPELINES)
            for step in program:
                run.step(*step)
                gc.collect(0)
                run.check()
            if not interrupts.was_in_time:
                break
            run.finish_all()
        at += 1
    assert at > 20
