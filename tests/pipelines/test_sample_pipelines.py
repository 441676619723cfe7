"""The programs of `programs/`: what their plans are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tilec.artifact.pipeline import Argument, Pipeline
from tilec.compilation import Options
from tilec.driver import FOLLOWS, front_end
from tilec.ir.dialect import context
from tilec.ir.walk import functions
from tilec.sources import read_sources

PROGRAMS = Path(__file__).parent / "programs"


@cache
def compiled(name: str) -> tuple[dict[str, Pipeline], dict[str, bool]]:
    """The plans by symbol, and the kernels, with whether they follow others."""
    with context():
        front = front_end(read_sources(str(PROGRAMS / f"{name}.tile")), Options())
        assert front.compiled.diagnostics == ()
        assert front.module is not None
        kernels = {f.name.value: FOLLOWS in f.attributes for f in functions(front.module)}
        return {pipeline.symbol: pipeline for pipeline in front.pipelines}, kernels


def after(pipeline: Pipeline) -> list[tuple[int, ...]]:
    return [launch.after for launch in pipeline.launches]


def test_launches_wait_for_what_they_read():
    pipelines, kernels = compiled("mlp")
    mlp = pipelines["mlp"]
    assert [launch.kernel for launch in mlp.launches] == ["matmul", "matmul", "gate", "matmul"]
    assert after(mlp) == [(), (), (0, 1), (2,)]
    assert {t.name: t.slot for t in mlp.temporaries} == {"g": 0, "u": 1, "h": 2}
    assert [r.expression for r in mlp.requires] == [("eq", ("rem", "F", 16), 0)]
    assert kernels == {"matmul__bf16_64": True, "gate": True}


def test_a_loop_is_unrolled_and_two_temporaries_change_places():
    [chain] = compiled("chain")[0].values()
    assert after(chain) == [(), *((n,) for n in range(99))]
    assert [launch.arguments[2].value for launch in chain.launches] == list(range(100))
    given = [(launch.arguments[1].tensor, launch.arguments[0].tensor) for launch in chain.launches]
    assert given == [("x", "a"), *[("a", "b"), ("b", "a")] * 49, ("a", "y")]
    assert {t.name: t.slot for t in chain.temporaries} == {"a": 0, "b": 1}


def test_instances_are_those_of_the_types_or_the_one_that_is_named():
    diamond = compiled("diamond")[0]["diamond"]
    every, one = ("scaled__f32_128", "scaled__f32_512"), ("scaled__f32_128",)
    assert [launch.instances for launch in diamond.launches] == [every, one, every, ("add",), every]
    assert after(diamond) == [(), (0,), (0,), (1, 2), (3,)]


def test_temporaries_that_are_done_with_give_their_place_away():
    diamond = compiled("diamond")[0]["diamond"]
    slots = {t.name: t.slot for t in diamond.temporaries}
    assert slots == {"top": 0, "left": 1, "right": 2, "bottom": 0}


def test_scalars_of_a_pipeline_are_passed_on():
    pipelines = compiled("diamond")[0]
    [launch] = pipelines["both__f32"].launches
    assert launch.arguments[2] == Argument("factor", value="factor")
    values = [
        launch.arguments[2].value
        for launch in pipelines["diamond"].launches
        if launch.kernel == "scaled"
    ]
    assert values == ["factor", 2.0, 3.0, 2.0]


def test_kernels_of_other_files_are_built_with_what_launches_them():
    pipelines, kernels = compiled("two_files")
    twice = pipelines["twice"]
    assert {"copy", "sum"} < set(kernels) and "doubled" not in pipelines
    assert [(launch.kernel, launch.file) for launch in twice.launches] == [
        ("copy", "parts.tile"), ("sum", "parts.tile"), ("copy", "two_files.tile")
    ]  # fmt: skip
    # A temporary of the inner pipeline is one of the outer, and has a name of its own.
    assert [t.name for t in twice.temporaries] == ["t", "t_2"]


def test_views_are_passed_by_the_order_of_their_axes():
    [launch] = compiled("two_files")[0]["swapped"].launches
    assert launch.arguments == (Argument("y", "y"), Argument("x", "x", axes=(1, 0, 2)))


def test_sizes_and_scalars_are_what_launchers_compute():
    histogram = compiled("two_files")[0]["histogram"]
    [padded] = histogram.temporaries
    assert padded.extents == (("add", "H", 1),)
    counts = [launch for launch in histogram.launches if launch.kernel == "count"]
    assert [launch.arguments[2].value for launch in counts] == [("i32", "H")] * 2
    assert [launch.arguments[3].value for launch in counts] == [1, 2]
    # Launches that update the same elements have an order.
    assert after(histogram) == [(), (0,), (1,), (2,)]
    assert histogram.coverage[0].writes_all and not histogram.coverage[0].reads_first
