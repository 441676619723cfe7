"""Pipelines in manifests: JSON and back, what readers refuse, and where temporaries lie."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest
from pipeline_samples import launch, sums, with_pipelines

from tilec.artifact.abi import COUNT_LIMIT
from tilec.artifact.manifest import from_json, to_json
from tilec.artifact.pipeline import Argument, Temporary
from tilec.artifact.signature import Parameter, Requirement
from tilec.artifact.validate import faults_of
from tilec.artifact.workspace import WorkspaceError, workspace_of


def test_json_and_back():
    told = with_pipelines()
    assert list(faults_of(told)) == []
    assert from_json(to_json(told)) == told
    schema = (files("tilec.artifact") / "manifest.schema.json").read_text()
    jsonschema.validate(json.loads(to_json(told)), json.loads(schema))


def _launches(**by_number):
    launches = list(sums().launches)
    for number, one in by_number.items():
        launches[int(number[1:])] = one
    return replace(sums(), launches=tuple(launches))


def _given(number, **changes):
    one = sums().launches[number]
    arguments = tuple(
        replace(a, **changes) if a.parameter in ("z", "x") else a for a in one.arguments
    )
    return _launches(**{f"n{number}": replace(one, arguments=arguments)})


def _temporaries(*slots):
    pairs = zip(sums().temporaries, slots, strict=True)
    return replace(sums(), temporaries=tuple(replace(t, slot=slot) for t, slot in pairs))


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (replace(sums(), name="add"), "has the name of a kernel"),
        (replace(sums(), dims=()), "`N` is no `Dim`"),
        (replace(sums(), dims=("N", "N")), "the name `N` occurs twice"),
        (
            replace(sums(), parameters=(*sums().parameters, Parameter("N", "scalar", "usize"))),
            "the name `N` occurs twice",
        ),
        (replace(sums(), dims=("N", "M")), "no tensor binds the `Dim` `M`"),
        (replace(sums(), parameters=sums().parameters[:2]), "the unknown `scale`"),
        (
            replace(sums(), requires=(Requirement("r", ("lt", ("add", "scale", 1), 2), 1),)),
            r"`requires!\(scale \+ 1 < 2\)` computes `\+` of floats",
        ),
        (
            replace(sums(), temporaries=(replace(sums().temporaries[0], extents=("scale",)),)),
            "the extent `scale` of `a` is a float",
        ),
        (
            _launches(n0=launch("a", "x", "x", (), 1, ("mul", "scale", "N"))),
            r"gives `scale` `scale \* N`, which computes `\*` of floats",
        ),
        (_launches(n0=launch("a", "x", "x", (), 1, ("max", "scale", "N"))), None),
        (_temporaries(0, 1, 2, 3), None),
        (_temporaries(0, 1, 3, 0), "no consecutive numbers"),
        (_temporaries(0, 1, 2, 2), "`c` and `d` lie at one place"),
        (_temporaries(0, 0, 1, 2), "`a` and `b` lie at one place"),
        (_launches(n2=launch("c", "a", "b", (0,), 1)), "launches 1 and 2 share `b`, and have no"),
        (_launches(n4=launch("out", "d", "d", (0, 1, 2, 3), 1)), None),
        (_launches(n3=launch("d", "c", "c", (3,), 1)), r"launch 3 of `add` comes after \[3\]"),
        (_launches(n3=launch("c", "c", "x", (2,), 1)), "is given `c` twice, and writes it"),
        (_launches(n0=launch("x", "a", "b", (), 1)), "gives `z` `x` to be written, which is sha"),
        (_launches(n0=launch("a", "x", "e", (), 1)), "gives `y` no tensor"),
        (_launches(n0=launch("a", "x", "x", (), 1, "k")), "gives `scale` the unknown `k`"),
        (_given(1, axes=(1,)), r"the axes \[1\]"),
        (_given(1, value=3), "no tensor"),
        (
            _launches(n0=replace(launch("a", "x", "x", (), 1), instances=("copy__i8",))),
            "`copy__i8`, which is no instance of it",
        ),
        (_launches(n0=replace(launch("a", "x", "x", (), 1), instances=())), "has no instance"),
        (
            _launches(n0=replace(launch("a", "x", "x", (), 1), arguments=(Argument("z", "a"),))),
            "does not give the parameters",
        ),
    ],
)
def test_what_is_not_sound_is_told(pipeline, said):
    found = list(faults_of(with_pipelines(pipeline)))
    if said is None:
        assert found == []
        return
    assert any(re.search(said, fault) for fault in found), found


def test_a_launch_writes_what_any_of_its_instances_does():
    """b and c are made of a side by side, which is right as long as all instances read it."""
    side_by_side = _launches(
        n0=launch("a", "out", "x", (), 1),
        n1=launch("b", "a", "x", (0,), 1),
        n2=launch("c", "a", "x", (0,), 1),
        n3=launch("d", "c", "b", (1, 2), 1),
    )
    told = with_pipelines(replace(side_by_side, temporaries=_temporaries(0, 1, 2, 3).temporaries))
    assert list(faults_of(told)) == []

    def changed(kernel):
        z, x, *rest = kernel.parameters
        is_other = kernel.symbol == "add__f32_256"
        return replace(kernel, parameters=(z, replace(x, own="mut"), *rest)) if is_other else kernel

    found = list(faults_of(replace(told, kernels=tuple(map(changed, told.kernels)))))
    assert any("launches 1 and 2 share `a`, and have no order" in fault for fault in found), found


def test_temporaries_of_one_slot_share_bytes():
    room = workspace_of(sums(), {"N": 1000, "scale": 1.0})
    # 4000 bytes are 16 times 256; three slots, four temporaries.
    assert (room.bytes, room.apart) == (3 * 4096, 4 * 4096)
    assert room.offsets == {"a": 0, "b": 4096, "c": 8192, "d": 0}
    assert room.extents["d"] == (1000,)


def test_a_slot_is_as_large_as_its_largest():
    one, two = Temporary("a", "i8", ("N",), 0), Temporary("d", "f64", (("mul", "N", 2), 3), 0)
    room = workspace_of(replace(sums(), temporaries=(one, two)), {"N": 100})
    assert (room.bytes, room.offsets) == (4864, {"a": 0, "d": 0})  # 4800 is no multiple of 256


@pytest.mark.parametrize("n", [0, 1, 64, 65, 2**31 + 1, COUNT_LIMIT])
def test_slots_start_at_multiples_of_256_bytes(n):
    room = workspace_of(sums(), {"N": n})
    assert room.bytes == 3 * (-(-4 * n // 256) * 256)
    assert all(offset % 256 == 0 for offset in room.offsets.values())


@pytest.mark.parametrize(
    ("extents", "said"),
    [((("sub", "N", 5),), "the extent -4"), (("N", COUNT_LIMIT, COUNT_LIMIT), "2\\^60")],
)
def test_impossible_temporaries_are_refused(extents, said):
    pipeline = replace(sums(), temporaries=(Temporary("a", "i8", extents, 0),))
    with pytest.raises(WorkspaceError, match=f"`a` has .*{said}"):
        workspace_of(pipeline, {"N": 1})


def test_a_workspace_has_no_more_bytes_than_there_are_addresses():
    # 2^60 elements of 4 bytes, once and twice.
    extents = (2**30, 2**30)
    temporaries = [Temporary(name, "f32", extents, slot) for slot, name in enumerate("ab")]
    one = replace(sums(), temporaries=tuple(temporaries[:1]))
    assert workspace_of(one, {"N": 1}).bytes == 2**62
    with pytest.raises(WorkspaceError, match=f"the workspace has {2**63} bytes"):
        workspace_of(replace(sums(), temporaries=tuple(temporaries)), {"N": 1})


def test_parts_are_no_parameters_of_pipelines():
    owned = Parameter("out", "tensor", "f32", ("N",), "part", (4,))
    pipeline = replace(sums(), parameters=(owned, *sums().parameters[1:]))
    assert any("the ownership part" in fault for fault in faults_of(with_pipelines(pipeline)))
