"""Pipelines that tests start from, as the compiler would write them."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.manifest_samples import add_kernel, manifest
from tilec.artifact.manifest import Manifest
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.signature import Coverage, Parameter, Requirement


def launch(z: str, x: str, y: str, after: tuple[int, ...], line: int, scale: object = "scale"):
    """z = x + y, by either of the two instances of `add`."""
    return PipelineLaunch(
        kernel="add",
        instances=("add__f32_1024", "add__f32_256"),
        arguments=(
            *(Argument(name, given) for name, given in zip("zxy", (z, x, y), strict=True)),
            Argument("scale", value=scale),
        ),
        after=after,
        file="sums.tile",
        line=line,
    )


def sums() -> Pipeline:
    """out = 8 x, by way of a = x + x, b = x + x (side by side), c = a + b and d = c + c.

    `a` is done with where `d` begins, and so is `b`; `c` and `d` are in use at one time.
    """
    return Pipeline(
        name="sums",
        symbol="sums",
        generics=(),
        documentation="out = 8 x",
        line=30,
        parameters=(
            Parameter("out", "tensor", "f32", ("N",), "mut"),
            Parameter("x", "tensor", "f32", ("N",), "shared"),
            Parameter("scale", "scalar", "f32"),
        ),
        dims=("N",),
        requires=(Requirement("N < 1000000", ("lt", "N", 1000000), 31),),
        temporaries=tuple(
            Temporary(name, "f32", ("N",), slot)
            for name, slot in (("a", 0), ("b", 1), ("c", 2), ("d", 0))
        ),
        launches=(
            launch("a", "x", "x", (), 32),
            launch("b", "x", "x", (), 33),
            launch("c", "a", "b", (0, 1), 34),
            launch("d", "c", "c", (2,), 35),
            launch("out", "d", "d", (3,), 36),
        ),
        coverage=(Coverage("out", writes_all=True, reads_first=False),),
    )


def with_pipelines(*pipelines: Pipeline) -> Manifest:
    """A manifest of two instances of `add`, and of these pipelines, or of `sums`."""
    kernels = add_kernel(block=1024), add_kernel(block=256)
    return replace(manifest(*kernels), pipelines=pipelines or (sums(),))
