"""Graphs of pipelines: launched again and again, given other arguments, and given back."""

from __future__ import annotations

import ctypes
from threading import Thread

import pytest

from tests.emit.expected import launched_by, launched_on
from tests.emit.launching import CUBIN, describe
from tests.emit.noting import ADDED, ALLOCATED, CHANGED, FREED, INSTANTIATED, REPLAYED
from tests.emit.pipeline_calling import GRAPH, UPDATE
from tests.emit.pipeline_expected import launcher_of, planned
from tests.emit.pipeline_samples import pipelined
from tests.emit.statuses import STATUS
from tests.emit.test_pipeline_failures import (
    BASE,
    NOTHING,
    copied,
    dense,
    each_failure,
    shape,
    summed,
    wide,
)
from tests.emit.toolchain import LINKED, STRICT, c_compiler, compiled
from tests.unit.pipeline_samples import with_pipelines
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header
from tilec.emit.sets import pipeline_sets

SETS = {one.name: one for one in pipeline_sets(pipelined())}
MOVED = {"pointer": 5 * BASE}


def wanted(call, workspace):
    """The launches of a call with a workspace at this address."""
    name, arguments = call
    plan = planned(launcher_of(SETS[name], pipelined()), arguments, workspace)
    return [one for one in map(launched_by, plan.launches) if one is not None]


class Made:
    """A graph of a call, until the end of a block; after it nothing is left."""

    def __init__(self, pipelines, call):
        self.pipelines = pipelines
        pipelines.driver.fake_forget()
        called = pipelines.run(*call, GRAPH)
        assert called.message == ""
        self.graph = called.graph
        self.workspace = next((n.address for n in pipelines.notes(ALLOCATED)), 0)
        # What each node does, by its number; as the driver was last told.
        self.first = next((n.number for n in pipelines.notes(ADDED)), 0)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.pipelines.destroy(self.graph)
        if error[0] is None:
            assert self.pipelines.left() == NOTHING

    def update(self, call):
        return self.pipelines.run(*call, UPDATE, graph=self.graph)

    def does(self):
        """What the nodes of the last graph are."""
        notes = self.pipelines.notes(ADDED, CHANGED, INSTANTIATED)
        nodes = {}
        for note in notes:
            if note.kind == ADDED and nodes and max(nodes) + 1 != note.number:
                nodes = {}
            if note.kind != INSTANTIATED:
                nodes[note.number] = launched_on(note)
        return [nodes[number] for number in sorted(nodes)]


def test_a_graph_is_launched_on_any_stream(pipelines):
    with Made(pipelines, summed()) as made:
        for stream in (0, 0x100, 0x200):
            assert pipelines.replay(made.graph, stream).message == ""
        assert [note.stream for note in pipelines.notes(REPLAYED)] == [0, 0x100, 0x200]
        assert made.does() == wanted(summed(), made.workspace)
        captured = pipelines.replay(made.graph, 0x700)
        assert captured.status == STATUS["TILEC_ERROR_GRAPH"]
        assert "is not launched on a stream that is being captured" in captured.message
        refused = pipelines.replay(made.graph, 0x20000)
        assert refused.status == STATUS["TILEC_ERROR_DEVICE"]


def test_other_arguments_are_set_in_the_graph_that_is_there(pipelines):
    with Made(pipelines, wide()) as made:
        for call in (wide(x=MOVED), wide(scale=3.0), wide(x={"pointer": 5 * BASE + 2})):
            assert made.update(call).message == ""
            assert made.does() == wanted(call, made.workspace)
        assert len(pipelines.notes(INSTANTIATED)) == 1
        assert len(pipelines.notes(CHANGED)) == 4 + 8 + 8  # those that are given something else


def test_a_smaller_workspace_is_kept_and_a_larger_one_replaces_it(pipelines):
    with Made(pipelines, summed()) as made:
        pipelines.replay(made.graph)
        assert made.update(summed(10)).message == ""
        assert made.does() == wanted(summed(10), made.workspace)
        assert not pipelines.notes(FREED) and not pipelines.noted.contexts_waited_for
        assert made.update(summed(5000)).message == ""
        old, new = pipelines.notes(ALLOCATED)
        assert [note.address for note in pipelines.notes(FREED)] == [old.address]
        assert pipelines.noted.contexts_waited_for == 1  # it may still have been in use
        assert made.does() == wanted(summed(5000), new.address)


def test_other_launches_make_another_graph(pipelines):
    with Made(pipelines, copied()) as made:
        pipelines.replay(made.graph)
        for number, call in enumerate((copied(n=0), copied(n=2), copied(0)), 1):
            assert made.update(call).message == ""
            assert pipelines.noted.contexts_waited_for == number
            assert pipelines.noted.executables == (call != copied(0))
            launched = [launched_on(note) for note in pipelines.notes(ADDED)]
            launches = wanted(call, made.workspace)
            assert launched[len(launched) - len(launches) :] == launches
        assert pipelines.replay(made.graph).message == ""
        assert len(pipelines.notes(REPLAYED)) == 1
        assert made.update(copied()).message == ""
        assert pipelines.replay(made.graph).message == ""
        assert len(pipelines.notes(REPLAYED)) == 2


@pytest.mark.parametrize(
    "call, status",
    [
        (summed(x=None), "NULL"),
        (summed(x=shape(999)), "EXTENT"),
        (summed(2_000_000), "REQUIRES"),
        (summed(out={"device": 1}, x={"device": 1}), "DEVICE"),
        (copied(), "GRAPH"),
    ],
)
def test_an_update_that_is_refused_changes_nothing(call, status, pipelines):
    with Made(pipelines, summed()) as made:
        called = made.update(call)
        assert called.status == STATUS[f"TILEC_ERROR_{status}"]
        assert not pipelines.notes(CHANGED)
        assert pipelines.replay(made.graph).message == ""
        assert made.update(summed(x=MOVED)).message == ""
        assert made.does() == wanted(summed(x=MOVED), made.workspace)


def test_an_update_that_the_driver_refuses_changes_nothing(pipelines):
    for number in range(1, 6):
        with Made(pipelines, summed()) as made:
            pipelines.failing.change = number
            called = made.update(summed(999))
            assert called.status == STATUS["TILEC_ERROR_GRAPH"]
            assert called.message == "no graph could be made of `sums`: CUDA_ERROR_INVALID_VALUE"
            assert made.does() == wanted(summed(), made.workspace)
            pipelines.failing.allocate = 1
            assert made.update(summed(9000)).status == STATUS["TILEC_ERROR_MEMORY"]
            pipelines.failing.instantiate = 1
            assert made.does() == wanted(summed(), made.workspace)


def test_an_update_whose_graph_the_driver_refuses_keeps_the_old_one(pipelines):
    with Made(pipelines, copied()) as made:
        for counter in ("graph", "node", "instantiate"):
            setattr(pipelines.failing, counter, 1)
            assert made.update(copied(n=0)).status == STATUS["TILEC_ERROR_GRAPH"]
            assert pipelines.left() == (0, 1, 1, 0, 1)
        assert pipelines.replay(made.graph).message == ""


def test_what_the_driver_refuses_ties_a_graph_to_no_device(pipelines):
    there = {"device": 1}
    with Made(pipelines, copied(0)) as made:
        pipelines.failing.graph = 1
        assert made.update(copied()).status == STATUS["TILEC_ERROR_GRAPH"]
        assert made.update(copied(z=there, x=there)).message == ""
        assert pipelines.replay(made.graph, 0x20000).message == ""


@pytest.mark.parametrize("counter", ["allocate", "graph", "node", "instantiate"])
def test_where_the_driver_refuses_a_graph_nothing_is_left_over(counter, pipelines):
    count = 0
    graphs = []

    def make():
        called = pipelines.run(*wide(), GRAPH)
        graphs.append(called.graph)
        return called

    for called in each_failure(pipelines, counter, make):
        status = STATUS["TILEC_ERROR_MEMORY" if counter == "allocate" else "TILEC_ERROR_GRAPH"]
        assert (called.status, called.graph, pipelines.left()) == (status, None, NOTHING)
        assert called.message.startswith("no graph could be made of `wide`: ")
        count += 1
    assert count >= (14 if counter == "node" else 1)
    pipelines.destroy(graphs[-1])
    assert pipelines.left() == NOTHING


def test_a_replay_that_fails_is_an_error(pipelines):
    with Made(pipelines, summed()) as made:
        pipelines.failing.replay = 1
        called = pipelines.replay(made.graph)
        said = "`sums` was not launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
        assert (called.status, called.message) == (STATUS["TILEC_ERROR_LAUNCH"], said)


def test_no_graph_is_an_error_and_is_given_back_quietly(pipelines):
    assert pipelines.replay(None).message == "`graph` is a null pointer"
    called = pipelines.run(*summed(), UPDATE, graph=None)
    assert (called.status, called.message) == (
        STATUS["TILEC_ERROR_NULL"],
        "`sums`: `graph` is a null pointer",
    )
    pipelines.destroy(None)


def test_a_graph_that_was_launched_is_waited_for_before_its_workspace_goes(pipelines):
    for launched in (0, 1):
        with Made(pipelines, summed()) as made:
            for _ in range(launched):
                pipelines.replay(made.graph)
        assert pipelines.noted.contexts_waited_for == launched


def test_a_graph_lives_in_a_context_of_its_device(pipelines):
    pipelines.driver.fake_enter(0)
    there = {"device": 1}
    with Made(pipelines, summed(out=there, x=there)) as made:
        assert pipelines.replay(made.graph, 0x20000).message == ""
        assert (pipelines.fake.context, pipelines.driver.fake_current()) == (1, 0)
    assert pipelines.driver.fake_current() == 0


def test_threads_may_use_one_graph(pipelines):
    with Made(pipelines, summed()) as made:
        said = []

        def use(number):
            for turn in range(20):
                said.append(pipelines.replay(made.graph, 0x100 + number).message)
                n = 100 + number if turn % 3 else 1000
                said.append(made.update(summed(n)).message)

        threads = [Thread(target=use, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == [""] * 160
        assert len(pipelines.notes(REPLAYED)) == 80


_UNIT = """
#include "sums.h"
int {name}(tilec_graph **graph, void *out, void *x, int64_t n);
int {name}(tilec_graph **graph, void *out, void *x, int64_t n)
{{
    tilec_tensor z = tilec_vector(out, TILEC_F32, n), y = tilec_vector(x, TILEC_F32, n);
    z.device = y.device = 0;
    return {call}, &z, &y, 1);
}}
"""


def test_units_of_a_program_share_graphs(pipelines, tools):
    folder = tools / "units"
    folder.mkdir()
    [text] = emit_header([Artifact(with_pipelines(), CUBIN)], "sums", EmitOptions()).values()
    (folder / "sums.h").write_bytes(text)
    calls = {"made": "sums_graph(graph", "changed": "sums_graph_update(*graph"}
    for name, call in calls.items():
        more = "int use(void *d);\nint use(void *d) { return tilec_set_driver(d); }\n"
        unit = _UNIT.format(name=name, call=call) + (more if name == "made" else "")
        (folder / f"{name}.c").write_text(unit)
    compiled(c_compiler(), "-std=c99", *STRICT, "-shared", "-fPIC", "-o", folder / "libunits.so",
             folder / "made.c", folder / "changed.c", *LINKED)  # fmt: skip
    describe(pipelines.driver, with_pipelines())
    library, graph = ctypes.CDLL(str(folder / "libunits.so")), ctypes.c_void_p()
    assert library.use(ctypes.c_void_p(pipelines.driver._handle)) == 0
    for name, x in (("made", 2**41), ("changed", 2**42)):
        arguments = (ctypes.c_void_p(2**40), ctypes.c_void_p(x), ctypes.c_int64(1000))
        assert getattr(library, name)(ctypes.byref(graph), *arguments) == 0
    assert len(pipelines.notes(CHANGED)) == 2
    assert len(pipelines.notes(INSTANTIATED)) == 1


def test_an_instance_may_change_with_the_arguments(pipelines):
    def call(n):
        return "doubled", [dense(1, "f32", n), dense(2, "f32", n)]

    with Made(pipelines, call(50)) as made:
        assert made.update(call(100)).message == ""
        assert [launched_on(note) for note in pipelines.notes(ADDED)] == [
            *wanted(call(50), 0),
            *wanted(call(100), 0),
        ]
