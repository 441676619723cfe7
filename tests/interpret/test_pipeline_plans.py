"""Pipelines on the CPU: what a plan computes, what of its contract is refused, what is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from executed import check
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.pipelines import comes_after
from tilec.artifact.signature import Parameter, Requirement
from tilec.diagnostics import Diagnostic
from tilec.diagnostics.render import render
from tilec.frontend.emit import emit
from tilec.interpret.contract import BrokenContract
from tilec.interpret.pipeline import make_ready
from tilec.interpret.pipeline_report import pipeline_diagnostics
from tilec.interpret.pipeline_run import order_of, run_pipeline
from tilec.interpret.pipeline_watch import Watch
from tilec.ir.dialect import context

# The lines at the end are those of the launches of `sums`.
PROGRAM = """\
#[kernel]
#[instance(B = 4)]
pub fn sum<N: Dim, const B: usize>(
    z: Part<&mut Tensor<f32, N>, B>, x: &Tensor<f32, N>, y: &Tensor<f32, N>, scale: f32,
) {
    requires!(N < 100);
    z.store((x.load_like(&z) + y.load_like(&z)) * scale);
}

#[kernel(grid = [(N / 2).div_ceil(4)])]
pub fn half<N: Dim>(z: &mut Tensor<f32, N>, x: &Tensor<f32, N>) {
    let [p, _, _] = program_id();
    z.store::<4>([p], x.load::<4>([p]));
}

#[kernel]
pub fn widened<M: Dim, K: Dim, N: Dim>(
    z: Part<&mut Tensor<f32, M, K, N>, 1, 2, 4>, x: &Tensor<bf16, M, K, N>,
) {
    z.store(x.load_like(&z).to::<f32>());
}
// sums
// a = x + x
// b = x + x
// c = a + b
// d = c + c
// out = d + d
"""
FIRST_LINE = 23


def vector(name: str, own: str = "shared") -> Parameter:
    return Parameter(name, "tensor", "f32", ("N",), own)


def added(z: str, x: str, y: str, after: tuple[int, ...], line: int) -> PipelineLaunch:
    given = zip("zxy", (z, x, y), strict=True)
    arguments = (*(Argument(name, tensor) for name, tensor in given), Argument("scale", value="s"))
    return PipelineLaunch("sum", ("sum__4",), arguments, after, "case.tile", line)


def temporaries(**slots: int) -> tuple[Temporary, ...]:
    return tuple(Temporary(name, "f32", ("N",), slot) for name, slot in slots.items())


def sums(*launches: PipelineLaunch) -> Pipeline:
    """out = ((x + x) + (x + x)) * 4 for a scale of 1; or these launches."""
    return Pipeline(
        name="sums",
        symbol="sums",
        generics=(),
        documentation="",
        line=FIRST_LINE - 1,
        parameters=(vector("out", "mut"), vector("x"), Parameter("s", "scalar", "f32")),
        dims=("N",),
        requires=(Requirement("N % 2 == 0", ("eq", ("rem", "N", 2), 0), 1),),
        temporaries=temporaries(a=0, b=1, c=2, d=0),
        launches=launches
        or (
            added("a", "x", "x", (), FIRST_LINE),
            added("b", "x", "x", (), FIRST_LINE + 1),
            added("c", "a", "b", (0, 1), FIRST_LINE + 2),
            added("d", "c", "c", (2,), FIRST_LINE + 3),
            added("out", "d", "d", (3,), FIRST_LINE + 4),
        ),
        coverage=(),
    )


X = np.arange(10, dtype=np.float32) - 3
checked = cache(check)


def run(pipeline: Pipeline, seed: int | None = None, **given: Any) -> Mapping[str, np.ndarray]:
    (program, instances), found = checked(PROGRAM)
    assert not found, found
    with context():
        module = emit(instances, program.sources)
        ready = make_ready((pipeline,), module, pipeline.name, {"x": X, "s": 1.0, **given})
        run_pipeline(ready, seed)
        return ready.tensors


def watched(
    pipeline: Pipeline, seed: int | None = None, **given: Any
) -> tuple[list[Diagnostic], list[str]]:
    """What is found, and as it is shown."""
    (program, instances), _ = checked(PROGRAM)
    with context():
        module = emit(instances, program.sources)
        ready = make_ready((pipeline,), module, pipeline.name, {"x": X, "s": 1.0, **given})
        watch = Watch(ready)
        run_pipeline(ready, seed, watch)
        found = list(pipeline_diagnostics(watch.findings(), ready, program.sources))
    return found, [render(one, program.sources) for one in found]


def messages(pipeline: Pipeline, seed: int | None = None) -> list[str]:
    return [f"{d.code} {d.message}" for d in watched(pipeline, seed)[0]]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_launches_run_in_an_order_that_the_plan_allows(seed: int | None) -> None:
    np.testing.assert_array_equal(run(sums(), seed)["out"], X * 16)


def test_scalars_of_launches_are_computed_from_those_of_the_pipeline() -> None:
    [launch] = sums(added("out", "x", "x", (), FIRST_LINE)).launches
    halved = (*launch.arguments[:3], Argument("scale", value=("div", "N", 2)))
    given = sums(replace(launch, arguments=halved))
    np.testing.assert_array_equal(run(given)["out"], X * 2 * 5)


def test_axes_of_what_is_given_may_have_another_order() -> None:
    """The temporary is written through one order of its axes, and read through the same."""
    shape = ("M", "K", "N")
    turned = (1, 0, 2)

    def widening(z: Argument, x: Argument, after: tuple[int, ...]) -> PipelineLaunch:
        return PipelineLaunch("widened", ("widened",), (z, x), after, "case.tile", FIRST_LINE)

    pipeline = replace(
        sums(widening(Argument("z", "y"), Argument("x", "x", turned), ())),
        parameters=(
            Parameter("y", "tensor", "f32", ("K", "M", "N"), "mut"),
            Parameter("x", "tensor", "bf16", shape, "shared"),
        ),
        dims=shape,
        requires=(),
        temporaries=(),
    )
    x = np.arange(24).reshape(2, 3, 4).astype(ml_dtypes.bfloat16)
    (program, instances), _ = checked(PROGRAM)
    with context():
        module = emit(instances, program.sources)
        ready = make_ready((pipeline,), module, "sums", {"x": x})
        watch = Watch(ready)
        run_pipeline(ready, watch=watch)
        assert not list(watch.findings())
        expected = x.astype(np.float32).transpose(turned)
        np.testing.assert_array_equal(ready.tensors["y"], expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": X[:9]}, "`sums`: `requires!(N % 2 == 0)` does not hold, where N = 9"),
        ({"x": X.astype(np.float64)}, "`sums`: `x` has elements `f32`, got float64"),
        ({"out": X[:8]}, "`sums`: axis 0 of `x` is `N`, which is 8 by axis 0 of `out`, got 10"),
        ({"s": 10**400}, f"`sums`: `s`: {10**400} is out of the range of `f32`"),
        ({"s": True}, "`sums`: `s`: expected a number of type `f32`, got True"),
        ({"y": 1}, "`sums`: the pipeline has no parameter `y`"),
        (
            {"x": np.zeros(100, np.float32)},
            f"`sums`: the launch of `sum` in case.tile:{FIRST_LINE} (z = a, x = x, y = x): "
            "`sum__4`: "
            "`requires!(N < 100)` does not hold",
        ),
    ],
)
def test_a_broken_contract_is_refused(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(BrokenContract) as broken:
        run(sums(), **given)
    assert str(broken.value) == said


def test_the_contract_of_the_last_launch_holds_before_the_first_starts() -> None:
    """The extents of a temporary are as wrong as can be: nothing is written."""
    short = Temporary("c", "f32", (("sub", "N", 1),), 2)
    pipeline = replace(sums(), temporaries=(*temporaries(a=0, b=1, d=0), short))
    out = np.full(10, 7, np.float32)
    with pytest.raises(
        BrokenContract, match=rf"case.tile:{FIRST_LINE + 2} \(.*\): `sum__4`: axis 0"
    ):
        run(pipeline, out=out)
    negative = Temporary("c", "f32", (("sub", 0, "N"),), 2)
    with pytest.raises(BrokenContract, match="the temporary `c` has the extent -10"):
        run(replace(pipeline, temporaries=(*pipeline.temporaries[:3], negative)), out=out)
    endless = Temporary("c", "f32", (("mul", "N", 2**36), 2**20), 2)
    with pytest.raises(BrokenContract, match=r"there is no room for [0-9]+ bytes of workspace"):
        run(replace(pipeline, temporaries=(*pipeline.temporaries[:3], endless)), out=out)


@pytest.mark.parametrize("seed", [None, 3])
def test_nothing_is_found_in_a_pipeline_that_is_right(seed: int | None) -> None:
    assert messages(sums(), seed) == []


def test_a_temporary_that_no_launch_has_written_is_found() -> None:
    found, [shown] = watched(sums(added("out", "a", "x", (), FIRST_LINE)))
    assert [d.code for d in found] == ["E0801"]
    assert shown == (
        "error[E0801]: launch 0 of `sums` reads `a[0]`, which has no value yet\n"
        "  --> case.tile:7:14\n"
        "   |\n"
        " 7 |     z.store((x.load_like(&z) + y.load_like(&z)) * scale);\n"
        "   |              ^^^^^^^^^^^^^^^ program (0) reads it here\n"
        "...\n"
        "23 | // a = x + x\n"
        "   | ------------ launch 0\n"
        "   |\n"
        "   = note: in `sums` at N = 10, s = 1.0\n"
    )


def test_a_temporary_that_a_launch_writes_by_half_is_found() -> None:
    arguments = Argument("z", "a"), Argument("x", "x")
    half = PipelineLaunch("half", ("half",), arguments, (), "case.tile", FIRST_LINE)
    pipeline = sums(half, added("out", "a", "x", (0,), FIRST_LINE + 1))
    # 10 / 2 elements in tiles of 4: two programs, whose tiles are 8 elements.
    assert messages(pipeline) == ["E0801 launch 1 of `sums` reads `a[8]`, which has no value yet"]


def test_an_output_that_was_not_given_has_no_value() -> None:
    pipeline = sums(added("a", "out", "x", (), 1), added("out", "a", "x", (0,), 2))
    assert messages(pipeline) == ["W0801 launch 0 of `sums` reads `out[0]`, which has no value yet"]
    found, _ = watched(pipeline, out=np.ones(10, np.float32))
    assert found == []


def test_temporaries_of_one_slot_that_are_in_use_at_one_time_are_found() -> None:
    """`a` and `c` lie at one place, though `c` is made of `a`, and `a` is needed after it."""
    pipeline = replace(
        sums(
            added("a", "x", "x", (), FIRST_LINE),
            added("c", "a", "x", (0,), FIRST_LINE + 2),
            added("out", "a", "c", (1,), FIRST_LINE + 4),
        ),
        temporaries=temporaries(a=0, c=0),
    )
    assert messages(pipeline) == [
        "E0801 launch 1 of `sums` reads `a[0]`, whose place `c` has taken",
        "E0801 launch 2 of `sums` reads `a[0]`, whose place `c` has taken",
    ]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_launches_without_an_order_that_meet_are_found_in_every_order(seed: int | None) -> None:
    launches = list(sums().launches)
    launches[2] = replace(launches[2], after=(0,))  # `b` may be written while it is read
    found = messages(sums(*launches), seed)
    assert (
        "E0502 launch 2 of `sums` reads `b[0]`, which launch 1 writes, and no order is between them"
    ) in found


def test_launches_that_write_one_place_without_an_order_are_found() -> None:
    pipeline = replace(
        sums(
            added("a", "x", "x", (), FIRST_LINE),
            added("b", "x", "x", (), FIRST_LINE + 1),
            added("out", "a", "a", (0, 1), FIRST_LINE + 2),
        ),
        temporaries=temporaries(a=0, b=0),
    )
    found, shown = watched(pipeline)
    [order] = [i for i, d in enumerate(found) if d.code == "E0501"]
    assert found[order].message == (
        "launches 0 and 1 of `sums` both write `a[0]`, and no order is between them"
    )
    assert "note: `a` and `b` lie at one place" in shown[order]
    assert f"{FIRST_LINE} | // a = x + x\n" in shown[order]
    assert f"{FIRST_LINE + 1} | // b = x + x\n" in shown[order]


def test_what_one_launch_does_wrong_is_told_with_the_line_that_launches() -> None:
    program = PROGRAM.replace("z.store::<4>([p]", "z.store::<4>([p / 2]")
    arguments = Argument("z", "out"), Argument("x", "x")
    half = PipelineLaunch("half", ("half",), arguments, (), "case.tile", FIRST_LINE)
    (changed, instances), _ = check(program)
    with context():
        module = emit(instances, changed.sources)
        ready = make_ready((sums(half),), module, "sums", {"x": X, "s": 1.0})
        watch = Watch(ready)
        run_pipeline(ready, watch=watch)
        [found] = pipeline_diagnostics(watch.findings(), ready, changed.sources)
    assert (found.code, found.message) == (
        "E0501",
        "programs (0) and (1) both write `z[0]`",
    )
    assert found.labels[-1].text == "launch 0"
    assert found.notes == ("in a launch at N = 10", "in `sums` at N = 10, s = 1.0")


@st.composite
def plans(draw: st.DrawFn) -> tuple[PipelineLaunch, ...]:
    count = draw(st.integers(1, 8))
    after = (draw(st.sets(st.integers(0, n - 1))) if n else set() for n in range(count))
    return tuple(added("a", "x", "x", tuple(sorted(a)), n + 1) for n, a in enumerate(after))


@settings(max_examples=40, deadline=None)
@given(plans(), st.integers(0, 2**32))
def test_an_order_has_each_launch_once_and_after_those_it_must(
    launches: tuple[PipelineLaunch, ...], seed: int
) -> None:
    order = order_of(launches, seed)
    assert sorted(order) == list(range(len(launches)))
    place = {number: at for at, number in enumerate(order)}
    for number, before in enumerate(comes_after(launches)):
        assert all(place[one] < place[number] for one in before)


def test_other_orders_than_that_of_the_source_come_out() -> None:
    free = tuple(added("a", "x", "x", (), n) for n in range(3))
    assert len({tuple(order_of(free, seed)) for seed in range(60)}) == 6


@st.composite
def any_plans(draw: st.DrawFn) -> Pipeline:
    """Launches on three temporaries in two slots, in orders that may be too few."""
    launches = []
    for number in range(draw(st.integers(1, 6))):
        z, x, y = (draw(st.sampled_from(["a", "b", "c", "out", "x"][:last])) for last in (4, 5, 5))
        after = draw(st.sets(st.integers(0, number - 1))) if number else set()
        # A launch that writes a tensor has it once.
        x, y = (one if one != z else "x" for one in (x, y))
        launches.append(added(z, x, y, tuple(sorted(after)), number + 1))
    slots = {name: draw(st.integers(0, 1)) for name in "abc"}
    return replace(sums(*launches), temporaries=temporaries(**slots))


def expected_codes(pipeline: Pipeline) -> set[str]:
    """What is wrong with a plan of `sum`s, by the definition, in the order of the source."""
    slots = {t.name: t.slot for t in pipeline.temporaries}
    before = comes_after(pipeline.launches)
    found: set[str] = set()
    owner: dict[object, str] = {}
    begun: set[str] = set()
    uses: list[tuple[int, object, bool]] = []
    for number, launch in enumerate(pipeline.launches):
        z, x, y = (argument.tensor for argument in launch.arguments[:3])
        for name in (z, x, y):
            if name in slots and name not in begun:
                begun.add(name)
                owner.pop(slots[name], None)
        if any(name in slots and owner.get(slots[name]) != name for name in (x, y)):
            found.add("E0801")
        if z in slots:
            owner[slots[z]] = z
        uses += [(number, slots.get(name, name), name == z) for name in {z, x, y}]
    for (i, place, writes), (j, other, also) in combinations(uses, 2):
        if place == other and i != j and i not in before[j] and (writes or also):
            found.add("E0501" if writes and also else "E0502")
    return found


@settings(max_examples=60, deadline=None)
@given(any_plans())
def test_all_that_is_wrong_with_a_plan_is_found_and_nothing_else(pipeline: Pipeline) -> None:
    found, _ = watched(pipeline, x=X[:4], out=X[:4])
    assert {diagnostic.code for diagnostic in found} == expected_codes(pipeline)
