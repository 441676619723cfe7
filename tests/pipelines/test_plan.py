"""Plans against what they mean: launches are executed symbolically, in any order a plan allows."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.artifact.pipeline import Argument, Pipeline, Temporary
from tilec.artifact.signature import Coverage, Parameter
from tilec.pipelines.order import done_before, predecessors
from tilec.pipelines.plan import followers, plan
from tilec.pipelines.slots import Lifetime, slots_of
from tilec.pipelines.traced import Given, Traced, TracedLaunch, TracedTemporary
from tilec.source import Span

NOWHERE = Span("plan.tile", 0, 1)
TEMPORARIES = ("a", "b", "c", "d")
OUTPUTS = ("y", "z")
OWNS = st.sampled_from(("part", "mut", "atomic"))


@dataclass(frozen=True)
class Step:
    """One launch: what it writes, how, and what it reads beside."""

    target: str
    own: str
    fills: bool
    reads_first: bool
    sources: tuple[str, ...]


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, ...]:
    tensors = st.sampled_from((*TEMPORARIES, *OUTPUTS))
    # Most have values in all temporaries first, so that there is a plan.
    is_filled = draw(st.integers(0, 3)) > 0
    made = [Step(t, "part", True, False, ()) for t in TEMPORARIES] if is_filled else []
    for _ in range(draw(st.integers(1, 10))):
        target = draw(tensors)
        sources = draw(
            st.lists(tensors.filter(lambda t, n=target: t != n), max_size=2, unique=True)
        )
        own, fills, reads_first = draw(OWNS), draw(st.booleans()), draw(st.booleans())
        is_atomic = own == "atomic"
        made.append(
            Step(target, own, fills and not is_atomic, reads_first or is_atomic, tuple(sources))
        )
    return tuple(made)


@dataclass(frozen=True)
class Told:
    """What is said of kernels, whatever a launch gives."""

    of: dict[str, tuple[Coverage, ...]]

    def coverage(self, symbol: str, launch: TracedLaunch) -> tuple[Coverage, ...]:
        return self.of[symbol]

    def shortfall(self, symbol: str, parameter: str, launch: TracedLaunch) -> str | None:
        return None


def pipeline_of(made: tuple[Step, ...]) -> tuple[Traced, Told]:
    """Each launch is of a kernel of its own, `k0` and on."""
    launches, summaries = [], {}
    for number, step in enumerate(made):
        taken = [Given(Argument("out", step.target), step.own, NOWHERE)]
        taken += [
            Given(Argument(f"in{n}", source), "shared", NOWHERE)
            for n, source in enumerate(step.sources)
        ]
        name = f"k{number}"
        launches.append(TracedLaunch(name, (name,), tuple(taken), NOWHERE, "plan.tile", number))
        summaries[name] = (Coverage("out", step.fills, step.reads_first),)
    outputs = tuple(Parameter(name, "tensor", "f32", ("N",), "mut") for name in OUTPUTS)
    temporaries = tuple(
        TracedTemporary(Temporary(name, "f32", ("N",), 0), name, NOWHERE, "N")
        for name in TEMPORARIES
    )
    traced = Traced(
        *("p", "p", (), "", NOWHERE, 1, outputs, (NOWHERE,) * len(outputs), ("N",), ()),
        temporaries,
        tuple(launches),
    )
    return traced, Told(summaries)


def executed(made: tuple[Step, ...], numbers: list[int], places: dict[str, object]) -> list[object]:
    """What is in the outputs after these launches: terms, of everything that went into them."""
    memory: dict[object, object] = {}
    for number in numbers:
        step = made[number]
        before = [memory.get(places.get(t, t), f"{t} before") for t in step.sources]
        old = memory.get(places.get(step.target, step.target), f"{step.target} before")
        if step.fills and not step.reads_first:
            old = None
        memory[places.get(step.target, step.target)] = (number, old, tuple(before))
    return [memory.get(name, f"{name} before") for name in OUTPUTS]


def reads_what_is_not_there(made: tuple[Step, ...]) -> bool:
    filled: set[str] = set(OUTPUTS)
    for step in made:
        if not {*step.sources, *([step.target] if step.reads_first else [])} <= filled:
            return True
        if step.fills:
            filled.add(step.target)
    return False


def number_of(launch: object) -> int:
    return int(launch.kernel[1:])


def an_order(data: st.DataObject, planned: Pipeline) -> list[int]:
    """Some order of the launches that the plan allows."""
    waiting, found = set(range(len(planned.launches))), []
    while waiting:
        ready = [n for n in sorted(waiting) if not waiting & set(planned.launches[n].after)]
        found.append(data.draw(st.sampled_from(ready)))
        waiting.remove(found[-1])
    return found


@settings(max_examples=80, deadline=None)
@given(steps(), st.data())
def test_every_order_that_a_plan_allows_gives_what_is_written(made, data):
    traced, summaries = pipeline_of(made)
    planned, found = plan(traced, summaries)
    assert (planned is None) == reads_what_is_not_there(made)
    if planned is None:
        assert {d.code for d in found} == {"E0801"}
        return
    wanted = executed(made, list(range(len(made))), {})
    kept = [number_of(launch) for launch in planned.launches]
    places = {t.name: ("slot", t.slot) for t in planned.temporaries}
    order = [kept[n] for n in an_order(data, planned)]
    assert executed(made, order, places) == wanted
    # Each launch that is kept matters, and the others are told of.
    for number in kept:
        assert executed(made, [n for n in kept if n != number], {}) != wanted
    assert sum(d.code == "W0803" for d in found) == len(made) - len(kept)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcde"), st.booleans(), min_size=1), max_size=12))
def test_launches_wait_for_those_that_they_must_and_no_others(uses):
    after = predecessors(uses)
    count = len(uses)
    # The least order that keeps conflicting launches in theirs, by Warshall.
    must = [
        [
            i < j and any(t in uses[j] and (uses[i][t] or uses[j][t]) for t in uses[i])
            for j in range(count)
        ]
        for i in range(count)
    ]
    for middle in range(count):
        for i in range(count):
            for j in range(count):
                must[i][j] |= must[i][middle] and must[middle][j]
    before = done_before(after)
    assert [[bool(before[j] >> i & 1) for j in range(count)] for i in range(count)] == must
    for j, direct in enumerate(after):
        assert list(direct) == sorted(set(direct))
        for one in direct:  # no edge follows from the others
            assert not any(before[other] >> one & 1 for other in direct if other != one)
        assert all(one < j for one in direct)


def test_a_temporary_takes_a_place_of_its_own_size_if_there_is_one():
    # In a row: x (large) in 0 and 1, y (small) in 1 and 2, z (small) in 3 and 4.
    before = [0b0, 0b1, 0b11, 0b111, 0b1111]
    lifetimes = [Lifetime((0, 1), "large"), Lifetime((1, 2), "small"), Lifetime((3, 4), "small")]
    assert slots_of(lifetimes, before) == [0, 1, 1]


def test_temporaries_of_launches_side_by_side_lie_apart():
    lifetimes = [Lifetime((0, 2), "N"), Lifetime((1, 2), "N")]
    assert slots_of(lifetimes, [0b0, 0b0, 0b11]) == [0, 1]


def test_a_pipeline_says_what_becomes_of_its_outputs():
    made = (Step("y", "mut", False, False, ()), Step("z", "part", True, True, ("y",)))
    planned, found = plan(*pipeline_of(made))
    assert found and planned is not None  # temporaries that are never used
    assert planned.coverage == (
        Coverage("y", writes_all=False, reads_first=True),
        Coverage("z", writes_all=True, reads_first=True),
    )
    assert planned.temporaries == ()
    assert followers([planned]) == {"k1"}
