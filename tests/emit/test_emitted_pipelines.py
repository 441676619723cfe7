"""Emitted pipelines launch what `tilec.runtime` would, by all ways, and refuse what it refuses."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.emit.arguments import arguments_of, hostile_arguments_of
from tests.emit.expected import launched_by, launched_on
from tests.emit.limits import LIMITED
from tests.emit.noting import (
    ADDED,
    ALLOCATED,
    EDGE,
    LAUNCHED,
    RECORDED,
    TAKEN,
    WAITED,
    Pipelines,
    order_of,
)
from tests.emit.pipeline_calling import (
    CHECK,
    GRAPH,
    LAUNCH,
    LAUNCH_ON,
    LAUNCH_WITH,
    PLAN,
    WORKSPACE,
)
from tests.emit.pipeline_expected import launcher_of, planned
from tests.emit.pipeline_samples import pipelined
from tests.emit.samples import scalars_kernel
from tests.emit.statuses import STATUS
from tests.unit.pipeline_samples import with_pipelines
from tilec.artifact.pipelines import comes_after, faults_of_pipelines
from tilec.emit.sets import pipeline_sets
from tilec.runtime.array import Array
from tilec.runtime.stream_schedule import schedule_of

SETS = {one.name: one for one in pipeline_sets(pipelined())}
STREAMS = (0x100, 0x200, 0x300, 0x400, 0x500)
WAYS = (LAUNCH, LAUNCH_WITH, LAUNCH_ON, GRAPH)
BROUGHT = 3 * 2**62  # where no tensor is
ORDERED = ["sums", "layers", "wide", "counted", "apart", "tangled1", "tangled2"]


def test_the_samples_are_sound():
    assert not list(faults_of_pipelines(pipelined()))


def call(pipelines, name, arguments, way, needed, device=0):
    """Runs a pipeline in some way; gives the status, the message and where the workspace was."""
    pipelines.driver.fake_forget()
    streams = [stream + 0x20000 * device for stream in STREAMS]
    if way == LAUNCH_WITH:
        called = pipelines.run(name, arguments, way, streams[0], workspace=(BROUGHT, needed))
        return called, BROUGHT if needed else 0
    called = pipelines.run(name, arguments, way, streams[0], streams=streams)
    memory = pipelines.notes(TAKEN, ALLOCATED)
    return called, memory[0].address if memory else 0


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("how", ["right", "spoilt", "hostile"])
def test_launches_are_those_of_the_runtime(name, how, pipelines):
    launcher = launcher_of(SETS[name], pipelined())
    random = Random(f"{name} {how}")
    seen = set()
    for number in range(40 if how == "right" else 60):
        kernel = random.choice(SETS[name].kernels)
        if how == "hostile":
            arguments = hostile_arguments_of(kernel, random)
        else:
            arguments = arguments_of(kernel, random, how == "spoilt")
        plan = planned(launcher, arguments)
        way = WAYS[number % len(WAYS)]
        if isinstance(plan, str):
            called, _ = call(pipelines, name, arguments, way, 2**50)
            assert called.message == plan, arguments
            assert pipelines.run(name, arguments, CHECK).message == plan
            assert pipelines.noted.count == 0 and not called.graph
            seen.add("refused")
            continue
        assert pipelines.run(name, arguments, CHECK).message == ""
        if plan.workspace.bytes >= 2**46:  # for which the fake driver has no memory
            way = LAUNCH_WITH
        pipelines.fake.second_from = BROUGHT if plan.device == 1 else 2**64 - 1
        told = pipelines.run(name, arguments, WORKSPACE)
        assert (told.message, told.workspace_bytes) == ("", plan.workspace.bytes)
        called, workspace = call(pipelines, name, arguments, way, plan.workspace.bytes, plan.device)
        assert called.message == "", arguments
        plan = planned(launcher, arguments, workspace)
        wanted = [one for one in map(launched_by, plan.launches) if one is not None]
        made = pipelines.notes(ADDED if way == GRAPH else LAUNCHED)
        assert [launched_on(note) for note in made] == wanted, arguments
        memory = pipelines.notes(TAKEN, ALLOCATED)
        if way != LAUNCH_WITH and wanted:
            assert [note.bytes for note in memory] == [plan.workspace.bytes] * bool(memory)
            assert bool(memory) == bool(plan.workspace.bytes)
        else:
            assert not memory
        pipelines.destroy(called.graph)
        assert pipelines.left() == (0, 0, 0, 0, 0)
        seen.add("launched" if wanted else "empty")
    assert "launched" in seen
    assert "refused" in seen or how == "right"


@pytest.mark.parametrize(("name", "n", "m", "wanted"), LIMITED)
def test_numbers_that_64_bits_do_not_hold_are_refused(name, n, m, wanted, pipelines):
    arguments = [Array(2**40, "u8", (2, 2, 2, 2), (8, 4, 2, 1), 0), n, m]
    launcher = launcher_of(SETS[name], pipelined())
    plan = planned(launcher, arguments)
    called, _ = call(pipelines, name, arguments, LAUNCH_WITH, 2**50)
    if isinstance(wanted, str):
        said = wanted.format(n=n, m=m)
        assert called.message.startswith(f"`{name}`: ") and said in called.message
        assert plan == called.message
        if "too large" in said:
            assert called.status == STATUS["TILEC_ERROR_ARITHMETIC"]
        assert pipelines.noted.count == 0
        return
    assert called.message == ""
    [note] = pipelines.notes(LAUNCHED)
    [variant] = scalars_kernel().variants
    got = {slot.name: bytes(note.parameters[i])[:8] for i, slot in enumerate(variant.slots)}
    assert {one: int.from_bytes(got[one], "little") for one in wanted} == wanted
    [launch] = planned(launcher, arguments, BROUGHT).launches
    assert launched_on(note) == launched_by(launch)


@pytest.mark.parametrize("name", SETS)
def test_plans_are_those_of_the_runtime(name, pipelines):
    launcher = launcher_of(SETS[name], pipelined())
    random = Random(f"plans {name}")
    counts = set()
    for number in range(8):
        arguments = arguments_of(random.choice(SETS[name].kernels), random, number % 4 == 0)
        plan = planned(launcher, arguments)
        called = pipelines.run(name, arguments, PLAN)
        if isinstance(plan, str):
            assert (called.message, list(called.plans)) == (plan, []), arguments
            continue
        assert [
            (
                told.kernel.decode(), told.variant.decode(), told.target.decode(), tuple(told.grid),
                tuple(told.block), tuple(told.cluster), told.shared_bytes, told.device,
            )
            for told in called.plans
        ] == [
            (
                one.kernel.symbol, one.variant.symbol, pipelined().target, one.grid or (0, 0, 0),
                (one.variant.threads, 1, 1), one.variant.cluster, one.variant.dynamic_smem_bytes,
                0 if plan.device is None else plan.device,
            )
            for one in plan.launches
        ], arguments  # fmt: skip
        counts.add(len(called.plans))
    assert counts and pipelines.noted.count == 0


def of_arguments(pipelines, name, random):
    """Arguments that launch something, and what the runtime says of them."""
    launcher = launcher_of(SETS[name], pipelined())
    while True:
        arguments = arguments_of(SETS[name].kernels[0], random, False)
        plan = planned(launcher, arguments)
        if not isinstance(plan, str) and any(one.grid for one in plan.launches):
            return arguments, plan


def before_each(plan):
    """By launch with programs: those that it must come after, by their numbers among these."""
    kept = [n for n, one in enumerate(plan.launches) if one.grid is not None]
    before = comes_after(plan.pipeline.launches)
    return [{kept.index(m) for m in before[n] if m in kept} for n in kept]


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("count", [1, 3, 5])
def test_streams_keep_the_order_of_the_launches(name, count, pipelines):
    random = Random(f"streams {name}")
    for _ in range(6):
        arguments, plan = of_arguments(pipelines, name, random)
        pipelines.driver.fake_forget()
        called = pipelines.run(name, arguments, LAUNCH_ON, streams=STREAMS[:count])
        assert called.message == ""
        order = order_of(pipelines.notes(), STREAMS)
        for (_, before), wanted in zip(order.launches, before_each(plan), strict=True):
            assert wanted | {"start"} <= before
        everything = {*range(len(order.launches)), "start"}
        assert order.done[STREAMS[0]] == everything
        memory = pipelines.notes(TAKEN)
        assert [note.stream for note in memory] == [STREAMS[0]] * bool(plan.workspace.bytes)
        assert order.given == [(STREAMS[0], everything)] * len(memory)
        assert pipelines.left() == (0, 0, 0, 0, 0)


def test_streams_are_taken_as_the_runtime_takes_them(pipelines):
    random = Random("schedule")
    for name in ORDERED:
        arguments, plan = of_arguments(pipelines, name, random)
        launcher = launcher_of(SETS[name], pipelined())
        after = launcher.call_of(arguments, 0).planned.after
        for count in range(1, 6):
            pipelines.driver.fake_forget()
            pipelines.run(name, arguments, LAUNCH_ON, streams=STREAMS[:count])
            launched = pipelines.notes(LAUNCHED)
            schedule = schedule_of(after, count)
            assert [n.stream for n in launched] == [STREAMS[turn.stream] for turn in schedule.turns]
            assert len(pipelines.notes(RECORDED)) == (schedule.streams > 1) + sum(
                turn.is_recorded for turn in schedule.turns
            )
            waits = sum(len(turn.waits) for turn in schedule.turns) + len(schedule.joins)
            assert len(pipelines.notes(WAITED)) == waits
            early = [
                turn.follows and one.variant.starts_early
                for turn, one in zip(
                    schedule.turns, (o for o in plan.launches if o.grid), strict=True
                )
            ]
            assert [bool(n.early) for n in launched] == early


def test_launches_are_side_by_side_where_they_have_no_order(pipelines):
    arguments, _ = of_arguments(pipelines, "wide", Random("wide"))
    pipelines.driver.fake_forget()
    pipelines.run("wide", arguments, LAUNCH_ON, streams=STREAMS)
    assert {note.stream for note in pipelines.notes(LAUNCHED)} == set(STREAMS[:4])


@pytest.mark.parametrize("name", ORDERED)
def test_graphs_have_the_order_of_the_launches(name, pipelines):
    random = Random(f"graphs {name}")
    for turn in range(6):
        arguments, plan = of_arguments(pipelines, name, random)
        if name == "counted" and turn == 0:
            arguments[2] = 0  # the second launch has no programs
            plan = planned(launcher_of(SETS[name], pipelined()), arguments)
        pipelines.driver.fake_forget()
        called = pipelines.run(name, arguments, GRAPH)
        assert called.message == ""
        nodes = pipelines.notes(ADDED)
        before = [set(note.before[: note.before_count]) for note in nodes]
        first = nodes[0].number
        early = {}
        for note in pipelines.notes(EDGE):
            assert not before[note.number - first]
            before[note.number - first].add(note.before[0])
            early[note.number - first] = note.before[0] - first
        all_before = []
        for one in before:
            direct = {number - first for number in one}
            assert not any(n in all_before[m] for n in direct for m in direct)
            all_before.append(direct.union(*(all_before[n] for n in direct)))
        assert all_before == before_each(plan)
        launches = [one for one in plan.launches if one.grid is not None]
        for number, one in enumerate(launches):
            assert (number in early) == (one.variant.starts_early and len(before[number]) == 1)
        pipelines.destroy(called.graph)


def test_on_one_stream_a_launch_that_may_starts_early_but_the_first(pipelines):
    arguments, plan = of_arguments(pipelines, "wide", Random("early"))
    pipelines.driver.fake_forget()
    pipelines.run("wide", arguments)
    early = [note.early for note in pipelines.notes(LAUNCHED)]
    assert early == [0, *(int(one.variant.starts_early) for one in plan.launches[1:])]
    assert sum(early) == 7


def _for_target(target):
    """`sums`, whose kernels say by their names for what they are built."""
    made = with_pipelines()
    kernels = tuple(
        replace(
            kernel,
            variants=tuple(
                replace(
                    one,
                    symbol=f"{one.symbol}_{target}",
                    starts_early=target == "sm_90a",
                    threads=int(target[3:5]),
                )
                for one in kernel.variants
            ),
        )
        for kernel in made.kernels
    )
    return replace(made, target=target, kernels=kernels)


def test_of_several_targets_the_nearest_that_runs_is_taken(tools):
    targets = ("sm_80", "sm_90a")
    made = Pipelines([_for_target(target) for target in targets], tools / "targets", tools)
    for capability, target, early in (((8, 6), "sm_80", 0), ((9, 0), "sm_90a", 1)):
        fresh = made.anew()
        fresh.driver.fake_forget()
        fresh.fake.major, fresh.fake.minor = capability
        fresh.use_driver()
        given = [Array(2**40 * i, "f32", (1000,), (1,), 0) for i in (1, 2)]
        assert fresh.run("sums", [*given, 1.0]).message == ""
        launched = fresh.notes(LAUNCHED)
        names = {f"add__f32_1024__v16_{target}".encode()}
        assert {note.kernel for note in launched} == names
        assert [note.early for note in launched] == [0] + [early] * 4
        assert fresh.run("sums", [*given, 1.0], GRAPH).message == ""
        assert len(fresh.notes(EDGE)) == 2 * early  # after two launches it waits for both
    fresh = made.anew()
    fresh.fake.major = 7
    fresh.use_driver()
    assert "is built for sm_90a, sm_80, device 0" in fresh.run("sums", [*given, 1.0]).message


@pytest.mark.parametrize("n, member", [(64, "128_256"), (128, "64_64"), (65, "64_64")])
def test_of_a_part_of_a_family_what_was_measured_counts(n, member, pipelines):
    """At 64 and 128 it was; at 65 the model of costs says which."""
    arguments = [Array(2**40 * i, "bf16", (n, n), (n, 1), 0) for i in (1, 2, 3)]
    assert pipelines.run("partly", arguments).message == ""
    [launched] = pipelines.notes(LAUNCHED)
    assert launched.kernel.decode() == f"matmul__bf16_{member}"
    [plan] = planned(launcher_of(SETS["partly"], pipelined()), arguments).launches
    assert plan.kernel.symbol == f"matmul__bf16_{member}"
