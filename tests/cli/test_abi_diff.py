"""`tilec abi-diff`: exit status, what is printed, which files it reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.manifest_samples import add_kernel, copy_kernel, manifest
from tests.unit.test_embed import cubin
from tilec.artifact.embed import embed
from tilec.artifact.manifest import to_json

ADD = add_kernel()
BUILDS = {
    "old": manifest(ADD),
    "same": manifest(ADD),
    "more": manifest(ADD, copy_kernel()),
    "grid": manifest(replace(ADD, grid=(("ceildiv", "N", 512),))),
    "gone": manifest(copy_kernel()),
}


@pytest.fixture(autouse=True)
def builds(workplace):
    for name, one in BUILDS.items():
        Path(f"{name}.json").write_text(to_json(one))
        Path(f"{name}.cubin").write_bytes(embed(cubin(), to_json(one).encode()))


@pytest.mark.parametrize(
    ("new", "options", "status", "out"),
    [
        ("same", (), 0, "nothing changed for callers\n"),
        ("more", (), 0, "compatible\n  `copy__i8` is new\n"),
        ("more", ("--deny", "recompile"), 0, "compatible\n  `copy__i8` is new\n"),
        ("grid", (), 0, "recompile\n  `add__f32_1024` the grid is `N.div_ceil(512)`, "
         "was `N.div_ceil(1024)`\n"),
        ("gone", ("-q",), 1, "breaking\n  `add__f32_1024` is gone\n"),
    ],
)  # fmt: skip
def test_the_status_says_whether_callers_break(tilec, new, options, status, out):
    for ending in ("json", "cubin"):
        ended = tilec("abi-diff", "old.json", f"{new}.{ending}", *options)
        assert (ended.status, ended.out, ended.err) == (status, out, "")


def test_what_must_be_compiled_again_can_be_denied(tilec):
    assert tilec("abi-diff", "old.cubin", "grid.cubin", "--deny", "recompile").status == 1


def test_changes_are_objects_for_programs(tilec):
    ended = tilec("abi-diff", "old.json", "gone.json", "--error-format=json")
    assert ended.status == 1
    assert [json.loads(line) for line in ended.out.splitlines()] == [
        {"kind": "breaking", "about": "add__f32_1024", "message": "is gone"},
        {"kind": "compatible", "about": "copy__i8", "message": "is new"},
    ]


def test_a_manifest_of_the_schema_before_is_read(tilec):
    document = json.loads(Path("old.json").read_text())
    document["tilec_manifest"] = 7
    del document["pipelines"]
    del document["kernels"][0]["touched"]
    for variant in document["kernels"][0]["variants"]:
        del variant["starts_early"]
    Path("before.json").write_text(json.dumps(document))
    ended = tilec("abi-diff", "before.json", "old.json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == ("recompile\n  has schema version 10, was 7: own readers must know it\n")
    document["tilec_manifest"] = 6
    Path("before.json").write_text(json.dumps(document))
    ended = tilec("abi-diff", "before.json", "old.json")
    assert (ended.status, "schema version 6" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot read"), (b"{", "no JSON"), (b"[1]", "no `tilec_manifest`"),
     (b"\x7fELF", "cut off"), (cubin(), "holds no manifest")],
)  # fmt: skip
def test_a_file_that_is_none_is_no_verdict(tilec, content, message):
    if content is not None:
        Path("broken").write_bytes(content)
    for pair in (("broken", "old.json"), ("old.json", "broken")):
        ended = tilec("abi-diff", *pair)
        assert (ended.status, message in ended.err, ended.out) == (2, True, "")
