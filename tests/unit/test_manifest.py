"""The manifest: JSON and back, its schema, and what readers refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from math import prod

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest_samples import add_kernel, copy_kernel, manifest, report

from tilec.artifact.abi import COUNT_LIMIT, launch_grid, slots_of
from tilec.artifact.family import Cost
from tilec.artifact.lowering_report import LoweringReport, SharedBuffer
from tilec.artifact.manifest import ManifestError, Slot, TensorMap, from_json, to_json
from tilec.artifact.schema import schema_text
from tilec.artifact.signature import Parameter, Requirement
from tilec.artifact.validate import faults_of

PUBLISHED = (files("tilec.artifact") / "manifest.schema.json").read_text()


def test_json_and_back_is_the_same_manifest():
    assert from_json(to_json(manifest())) == manifest()


def test_the_same_manifest_gives_the_same_bytes():
    assert to_json(manifest()) == to_json(manifest()) == to_json(from_json(to_json(manifest())))


def test_the_published_schema_is_made_from_the_classes():
    assert schema_text() == PUBLISHED


def test_a_manifest_meets_the_published_schema():
    schema = json.loads(PUBLISHED)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(to_json(manifest())), schema)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.pop("tilec_manifest"), "no `tilec_manifest`"),
        (lambda d: d.update(tilec_manifest=99), "schema version 99"),
        (lambda d: d.pop("target"), "`manifest` has no `target`"),
        (lambda d: d.update(extra=1), "unknown field `extra`"),
        (lambda d: d["kernels"][0].update(line="4"), r"kernels\[0\].line`: expected integer"),
        (lambda d: d["kernels"][0].update(line=True), r"kernels\[0\].line`: expected integer"),
        (lambda d: d["kernels"][0].update(grid=[["plus", 1, 2]]), r"grid\[0\]`: expected an op"),
        (lambda d: d["kernels"][0].update(grid=[None]), r"grid\[0\]`: expected an expression"),
        (lambda d: d["kernels"][0]["parameters"][0].update(own="mine"), 'expected "shared" or'),
        (lambda d: d["kernels"][0]["variants"][0].update(cluster=[1, 1]), "expected 3 items"),
        (
            lambda d: d["kernels"][0].update(grid=[["add", "N", None]]),
            "expected an expression, got N",
        ),
        (lambda d: d.update(kernels={}), "expected a list"),
    ],
)
def test_a_reader_names_the_field_at_fault(edit, message):
    document = json.loads(to_json(manifest()))
    edit(document)
    with pytest.raises(ManifestError, match=message):
        from_json(json.dumps(document))


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b"null", b"[" * 100_000])
def test_what_is_no_manifest_is_refused(text):
    with pytest.raises(ManifestError):
        from_json(text)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_mutated_text_is_read_or_refused(data):
    text = bytearray(to_json(manifest()).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = from_json(bytes(text))
    except ManifestError:
        return
    list(faults_of(read))


def test_lists_of_integers_take_one_line():
    assert '"lane": [2, 4, 8, 16, 32]' in to_json(manifest())


def test_a_sound_manifest_has_no_faults():
    assert list(faults_of(manifest())) == []


def _kernel(**changes):
    return manifest(replace(copy_kernel(), **changes))


def _reporting(told):
    wide, general = copy_kernel().variants
    return _kernel(variants=(replace(wide, lowering=told), general))


def _changed(**changes):
    wide, general = copy_kernel().variants
    return _kernel(variants=(replace(wide, **changes), general))


def _persistent(blocks, **changes):
    return _changed(persistent_blocks_per_sm=blocks, **changes)


def _mapped(*maps, **changes):
    kernel = copy_kernel()
    maps = maps or (TensorMap("source", (64, 64), 64, False), TensorMap("target", (2, 16), 0, True))
    slots = slots_of(kernel.parameters, kernel.dims, maps)
    return _changed(**{"tensor_maps": maps, "slots": slots, **changes})


def test_maps_clusters_and_persistence_are_sound_and_survive_json():
    split = _changed(cluster=(4, 1, 1), split=4)
    for told in (_mapped(cluster=(2, 2, 1)), _persistent(2, cluster=(8, 1, 1)), split):
        assert list(faults_of(told)) == []
        assert from_json(to_json(told)) == told
        jsonschema.validate(json.loads(to_json(told)), json.loads(PUBLISHED))


def test_tensor_maps_are_the_last_slots():
    slots = _mapped().kernels[0].variants[0].slots
    assert [(slot.kind, slot.name) for slot in slots[-3:]] == [
        ("extent", "M"),
        ("tensor_map", "source"),
        ("tensor_map", "target"),
    ]


MOVED = report("target", "i8").movements[0]


def test_what_is_beyond_the_least_number_of_wavefronts_is_conflicts():
    assert MOVED.bank_conflicts == 8
    assert report("target", "i8").bank_conflicts == 8


def test_values_go_as_far_as_their_instructions_say():
    moved = report("target", "i8").movements
    assert [one.way for one in moved] == ["shared memory", "shuffles"]
    assert replace(moved[1], shuffles=0).way == "registers"


@pytest.mark.parametrize(
    ("faulty", "fault"),
    [
        (manifest(add_kernel(), add_kernel()), "the instance `add__f32_1024` occurs twice"),
        *(
            (replace(manifest(), target=target), f"the target `{target}` is none")
            for target in ("", "sm_", "sm_9", "zzz", "sm_90x", "sm_²0", "90a")
        ),
        (_kernel(variants=()), "there is no variant"),
        (_kernel(grid=(1.5,)), "`1.5` is a float"),
        (_kernel(grid=(("select", ("gt", 1.5, 0), "M", 2.5),)), "is a float"),
        (
            _kernel(requires=(Requirement("r", ("gt", ("rem", 1.5, 2), 0), 1),)),
            "`1.5 % 2 > 0` computes `%` of floats",
        ),
        (
            _changed(cost=Cost(memory_cycles=("max", "M", 1.5))),
            "`M.max(1.5)`, is a float",
        ),
        (_kernel(grid=("K",)), "an expression names the unknown `K`"),
        (_kernel(dims=("M", "K")), "no tensor binds the `Dim` `K`"),
        (_kernel(dims=("M", "M")), "the name `M` occurs twice"),
        (
            _kernel(parameters=(*copy_kernel().parameters[:2], Parameter("M", "scalar", "i8"))),
            "the name `M` occurs twice",
        ),
        (_kernel(dims=()), "`target` names the unknown `Dim` `M`"),
        (_kernel(parameters=(Parameter("s", "scalar", "f7"),)), "unknown element type `f7`"),
        (_kernel(parameters=(Parameter("t", "tensor", "f32"),)), "no ownership"),
        (
            _kernel(variants=(replace(copy_kernel().variants[0], slots=()),)),
            "slots of `copy__i8__v16` are not those",
        ),
        (
            _kernel(variants=(replace(copy_kernel().variants[0], cluster=(4, 3, 1)),)),
            "has the cluster (4, 3, 1)",
        ),
        (
            _kernel(variants=(replace(copy_kernel().variants[0], cluster=(0, 1, 1)),)),
            "has the cluster (0, 1, 1)",
        ),
        (_changed(split=2), "splits programs among 2 blocks, of the cluster (1, 1, 1)"),
        (_persistent(1, cluster=(2, 1, 1), split=2), "is persistent, and splits programs"),
        (_persistent(0), "`copy__i8__v16` has 0 persistent blocks"),
        (_persistent(1, cluster=(2, 2, 1)), "cluster (2, 2, 1), which is not along x"),
        (_mapped(slots=copy_kernel().variants[0].slots), "slots of `copy__i8__v16` are not those"),
        (_mapped(TensorMap("count", (16,), 0, False)), "a map of `count`, which is no tensor"),
        (_mapped(TensorMap("source", (64,), 0, False)), "a map of `source`, whose box is (64,)"),
        (_mapped(TensorMap("source", (0, 64), 0, False)), "whose box is (0, 64)"),
        (_mapped(TensorMap("source", (257, 64), 0, False)), "whose box is (257, 64)"),
        (_mapped(TensorMap("source", (8, 24), 0, False)), "rows of 24 bytes have no 0-byte"),
        (_mapped(TensorMap("source", (8, 64), 32, False)), "rows of 64 bytes have no 32-byte"),
        (_mapped(TensorMap("source", (8, 64), 64, True)), "`source`, which it does not write"),
        (_mapped(TensorMap("source", (8, 64), 64, False, True)), "does not round it to tf32"),
        (_kernel(layouts=()), "`copy__i8__v16` names the unknown layout 0"),
        (_reporting(report("z", "i8")), "`copy__i8__v16` accesses the unknown `z`"),
        (
            _reporting(LoweringReport(buffers=(SharedBuffer("a.tile", 1, 1, 128, 129),))),
            "has buffers outside its shared memory",
        ),
        (
            _reporting(LoweringReport(movements=(replace(MOVED, wavefronts=3),))),
            "fewer wavefronts than the least",
        ),
    ],
)
def test_faults_are_found(faulty, fault):
    assert any(fault in x for x in faults_of(faulty))


def test_slots_are_parameters_in_order_then_extents():
    parameters = (
        Parameter("c", "tensor", "bf16", ("B", "M", 64), "part", (1, 16, 64)),
        Parameter("scale", "scalar", "f32"),
        Parameter("v", "tensor", "f32", ("M",), "shared"),
    )
    assert slots_of(parameters, ("M", "B")) == (
        Slot("pointer", "c", "bf16"),
        Slot("stride", "c", axis=0),
        Slot("stride", "c", axis=1),
        Slot("scalar", "scale", "f32"),
        Slot("pointer", "v", "f32"),
        Slot("extent", "M"),
        Slot("extent", "B"),
    )


_EXTENTS = st.integers(1, 2**13) | st.sampled_from([1, 2**16 - 1, 2**16, 2**31 - 1, 2**31])


def _is_launchable(extents):
    return prod(extents) <= COUNT_LIMIT


@given(st.lists(_EXTENTS, min_size=1, max_size=5).filter(_is_launchable))
def test_a_grid_covers_every_program_within_the_hardware_limits(extents):
    x, y, z = launch_grid(extents)
    assert 1 <= x <= 2**31 - 1 and 1 <= y <= 65535 and 1 <= z <= 65535
    count = prod(extents)
    if y > 1:  # blocks are programs
        assert (x, y) == (extents[-1], extents[-2]) and x * y * z == count
    else:
        assert count <= x * z < count + x


@pytest.mark.parametrize(
    ("extents", "grid"),
    [
        ([5], (5, 1, 1)),
        ([2**40], (2**31 - 1, 1, 513)),
        ([65535, 1], (1, 65535, 1)),
        ([65536, 1], (65536, 1, 1)),  # more rows than the hardware has
        ([1, 7], (7, 1, 1)),
        ([3, 4, 5], (5, 4, 3)),
        ([6, 1, 1], (6, 1, 1)),
        ([2, 3, 4, 5], (5, 4, 6)),
        ([2**8, 2**9, 2, 1], (2**18, 1, 1)),
    ],
)
def test_the_grid_of_a_launch(extents, grid):
    assert launch_grid(extents) == grid
