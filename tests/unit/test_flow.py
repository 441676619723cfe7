"""Who reads what whom wrote in a pipeline."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.manifest_samples import add_kernel
from tests.unit.pipeline_samples import launch, sums
from tilec.artifact.flow import Flow, Use, flows_of, uses_of
from tilec.artifact.signature import Coverage

KERNELS = {k.symbol: k for k in (add_kernel(block=1024), add_kernel(block=256))}


def test_a_launch_uses_each_tensor_once() -> None:
    assert uses_of(sums(), KERNELS)[3] == (Use("d", False, True), Use("c", True, False))


def test_what_is_written_again_flows_from_the_last_who_wrote_it() -> None:
    launches = (
        launch("out", "x", "x", (), 1),
        launch("a", "out", "x", (0,), 2),
        launch("out", "a", "x", (1,), 3),
    )
    assert flows_of(replace(sums(), launches=launches), KERNELS) == [
        Flow("x", None, 0),
        Flow("out", 0, 1),
        Flow("x", None, 1),
        Flow("a", 1, 2),
        Flow("x", None, 2),
        Flow("out", 2, None),
    ]


def test_what_is_written_in_part_goes_on_from_what_was_there() -> None:
    part = Coverage("z", writes_all=False, reads_first=False)
    kernels = {s: replace(k, coverage=(part,)) for s, k in KERNELS.items()}
    launches = launch("out", "x", "x", (), 1), launch("out", "x", "x", (0,), 2)
    assert flows_of(replace(sums(), launches=launches), kernels) == [
        Flow("out", None, 0),
        Flow("x", None, 0),
        Flow("out", 0, 1),
        Flow("x", None, 1),
        Flow("out", 1, None),
    ]
