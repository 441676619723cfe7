"""`--error-format=sarif`: one document on standard output, whatever happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

GOOD = "#[kernel]\npub fn good<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {\n    z.store(1.0);\n}\n"
BAD = GOOD.replace("good", "bad").replace("1.0", "w")


@pytest.fixture(autouse=True)
def files(workplace):
    Path("good.tile").write_text(GOOD)
    Path("k").mkdir()
    Path("k/bad.tile").write_text(BAD)


def run_of(out: str) -> Any:
    [run] = json.loads(out)["runs"]
    return run


def test_check_gives_one_document_for_all_files(tilec):
    ended = tilec("check", "good.tile", "k/bad.tile", "--error-format=sarif")
    assert (ended.status, ended.err) == (1, "")
    [result] = run_of(ended.out)["results"]
    assert result["ruleId"] == "E0201"
    [location] = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "k/bad.tile"},
        "region": {"startLine": 3, "startColumn": 13, "endLine": 3, "endColumn": 14},
    }


def test_what_is_right_gives_a_document_too(tilec):
    ended = tilec("check", "good.tile", "--error-format=sarif")
    assert (ended.status, ended.err) == (0, "")
    run = run_of(ended.out)
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_build_gives_a_document_and_nothing_else(tilec):
    ended = tilec("build", "good.tile", "k/bad.tile", "--emit", "mlir", "--error-format=sarif")
    assert (ended.status, ended.err) == (1, "")
    assert [result["ruleId"] for result in run_of(ended.out)["results"]] == ["E0201"]
    assert Path("build/good.mlir").exists()


def test_what_cannot_be_done_is_in_the_document_and_said(tilec):
    ended = tilec("check", "none.tile", "--error-format=sarif")
    assert ended.status == 2
    assert "error: cannot read `none.tile`" in ended.err
    [invocation] = run_of(ended.out)["invocations"]
    assert not invocation["executionSuccessful"]


def test_a_document_has_no_place_for_a_report(tilec):
    ended = tilec("check", "good.tile", "--report", "--error-format=sarif")
    assert ended.status == 2
    assert "holds no report" in ended.err
    assert not run_of(ended.out)["invocations"][0]["executionSuccessful"]


def test_other_commands_give_none(tilec):
    ended = tilec("run", "good.tile", "--kernel", "good", "--cpu", "--error-format=sarif")
    assert ended.status == 2
    assert "'sarif' is not one of" in ended.err
