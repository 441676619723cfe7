"""Tuning files: text and back, what is no such file, and what of one a manifest takes over."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from family_samples import LARGE, SMALL, of_family

from tilec.artifact.family import Measured, Table
from tilec.artifact.tuning_file import (
    Loser,
    MemberCode,
    Run,
    Trial,
    TunedFamily,
    TuningFile,
    TuningFileError,
    from_text,
    merged,
    remarks,
    to_text,
    with_tables,
)
from tilec.artifact.validate import faults_of

DIMS = ("M", "N", "K")
OTHER = MemberCode(LARGE.symbol, "one"), MemberCode(SMALL.symbol, "three")


def trial(size, member=LARGE.symbol, us=10.0):
    loser = SMALL.symbol if member == LARGE.symbol else LARGE.symbol
    return Trial((size, size, size), member, us, (Loser(loser, None, "not applicable: K > 64"),))


def a_run(*trials, **changes):
    told = of_family()
    made = Run(
        card="A Card",
        target="sm_90a",
        compiler=told.toolchain.compiler,
        driver="580",
        date="2026-11-28",
        codes=(MemberCode(LARGE.symbol, "one"), MemberCode(SMALL.symbol, "two")),
        families=(TunedFamily("matmul__bf16", DIMS, trials),),
    )
    return replace(made, **changes)


def tables(*runs, target="sm_90a"):
    [family] = with_tables(of_family().families, TuningFile(runs), target)
    return family.tables


def test_text_and_back():
    file = TuningFile((a_run(trial(512), trial(1024, SMALL.symbol)),))
    assert from_text(to_text(file)) == file
    assert '"extents": [512, 512, 512]' in to_text(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON: .* at line 1, column 2"),
        ("[]", "no `tilec_tune`"),
        ('{"tilec_tune": 9, "runs": []}', "version 9, this tilec reads 2"),
        ('{"tilec_tune": 2}', "has no `runs`"),
        ('{"tilec_tune": 2, "runs": [{}]}', r"runs\[0\]` has no `card`"),
        ("[" * 100_000, "nested too deep|no JSON"),
    ],
)
def test_what_is_no_tuning_file_is_refused(text, message):
    with pytest.raises(TuningFileError, match=message):
        from_text(text)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("NaN", "`NaN` is no number"),
        ("-Infinity", "`-Infinity` is no number"),
        ("1e999", r"trials\[0\].us`: expected number, got inf"),
        ("1" * 5000, "no JSON"),
        ('"\\ud83d"', "no JSON"),
    ],
)
def test_what_no_manifest_can_hold_is_refused(written, message):
    document = json.loads(to_text(TuningFile((a_run(trial(512)),))))
    document["runs"][0]["families"][0]["trials"][0]["us"] = "here"
    with pytest.raises(TuningFileError, match=message):
        from_text(json.dumps(document).replace('"here"', written))


def test_extents_are_those_of_tensors():
    text = to_text(TuningFile((a_run(trial(512)),)))
    for extent in (-1, 2**40 + 1, 2**70):
        with pytest.raises(TuningFileError, match=r"each of M, N, K, up to 2\^40"):
            from_text(text.replace("[512, 512, 512]", f"[512, {extent}, 512]"))


def test_an_extent_for_each_dim():
    text = to_text(TuningFile((a_run(trial(512)),))).replace("[512, 512, 512]", "[512, 512]")
    with pytest.raises(TuningFileError, match=r"\[512, 512\].*each of M, N, K"):
        from_text(text)


def test_a_shape_is_in_the_last_run_that_measured_it():
    old = a_run(trial(512), trial(1024), compiler="old")
    new = a_run(trial(512, SMALL.symbol))
    file = merged(TuningFile((old,)), new)
    assert [[t.extents[0] for f in run.families for t in f.trials] for run in file.runs] == [
        [1024],
        [512],
    ]
    assert merged(file, a_run(trial(512), trial(1024))).runs == (a_run(trial(512), trial(1024)),)


def test_another_card_keeps_what_it_has():
    other = a_run(trial(512), card="Another Card")
    assert merged(TuningFile((other,)), a_run(trial(512))).runs == (other, a_run(trial(512)))


def test_tables_are_by_card_and_for_the_target():
    here, there = a_run(trial(512)), a_run(trial(256, SMALL.symbol), card="Another Card")
    assert tables(here, there) == (
        Table("A Card", (Measured((512, 512, 512), LARGE.symbol, 10.0),)),
        Table("Another Card", (Measured((256, 256, 256), SMALL.symbol, 10.0),)),
    )
    assert tables(here, target="sm_80") == ()


def test_members_and_families_that_are_not_there_are_left_out():
    gone = a_run(trial(512, "matmul__bf16_1_1"), trial(256))
    [table] = tables(gone)
    assert [one.extents[0] for one in table.measured] == [256]
    assert tables(a_run(trial(512), families=(TunedFamily("other", DIMS, (trial(512),)),))) == ()


def test_a_manifest_with_tables_is_sound():
    told = of_family()
    families = with_tables(told.families, TuningFile((a_run(trial(512)),)), "sm_90a")
    assert list(faults_of(replace(told, families=families))) == []


@pytest.mark.parametrize(
    ("made", "remark"),
    [
        (a_run(trial(512)), None),
        (a_run(trial(512), target="sm_80"), "what it has for sm_80 is ignored for sm_90a"),
        (a_run(trial(512), compiler="x"), None),
        (a_run(trial(512), codes=OTHER), f"before `{SMALL.symbol}` had the code of now"),
        (a_run(trial(512), codes=()), f"before `{LARGE.symbol}` and 1 more had the code"),
        (a_run(trial(512, "gone")), "not built, which is ignored: `gone`"),
        (a_run(families=(TunedFamily("gone", DIMS, ()),)), "ignored: `gone`"),
    ],
)
def test_remarks_say_what_is_not_as_it_seems(made, remark):
    found = remarks(TuningFile((made,)), of_family(), {LARGE.symbol: "one", SMALL.symbol: "two"})
    assert bool(found) == (remark is not None)
    assert remark is None or remark in found[0]


def test_the_text_is_for_reading_too():
    document = json.loads(to_text(TuningFile((a_run(trial(512)),))))
    assert list(document) == ["tilec_tune", "runs"]
    [made] = document["runs"]
    assert made["families"][0]["trials"][0]["losers"][0]["why"] == "not applicable: K > 64"
