"""Families at the command line: what builds make of tuning files, and what is shown of families."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.family_samples import LARGE, SMALL, of_family
from tests.unit.manifest_samples import add_kernel
from tests.unit.manifest_samples import manifest as plain_manifest
from tilec.artifact.code import codes_of
from tilec.artifact.families import families_of
from tilec.artifact.manifest import from_json, to_json
from tilec.artifact.signature import Requirement
from tilec.artifact.tuning_file import MemberCode, Run, Trial, TunedFamily, TuningFile, to_text

SOURCE = """#[kernel]
#[instance(B = 128)]
#[instance(B = 1024)]
pub fn twice<N: Dim, const B: usize>(z: Part<&mut Tensor<f32, N>, B>, x: &Tensor<f32, N>) {
    let t = x.load_like(&z);
    z.store(t + t);
}
"""


def built(folder="build"):
    return from_json(Path(folder, "twice.json").read_bytes())


def tuning(told, *trials, **changes):
    """A tuning file as it would be had what is built been measured."""
    codes = codes_of(told, Path("build", "twice.sm_90a.cubin").read_bytes())
    made = Run(
        card="A Card",
        target=told.target,
        compiler=told.toolchain.compiler,
        driver="",
        date="",
        codes=tuple(MemberCode(*one) for one in codes.items()),
        families=(TunedFamily("twice", ("N",), tuple(trials)),),
    )
    return to_text(TuningFile((replace(made, **changes),)))


@pytest.fixture
def source(workplace):
    Path("twice.tile").write_text(SOURCE)
    return workplace


# ---- builds --------------------------------------------------------------------------------------


def test_a_build_lists_families_and_costs(tilec, source):
    assert tilec("build", "twice.tile").status == 0
    told = built()
    [family] = told.families
    assert (family.name, family.members) == ("twice", ("twice__128", "twice__1024"))
    assert family.tables == ()
    assert all(v.cost.parts for kernel in told.kernels for v in kernel.variants)
    assert len(told.toolchain.compiler) == 16


def test_what_was_measured_is_in_the_manifest_and_counts_as_input(tilec, source):
    tilec("build", "twice.tile")
    Path("twice.tune.json").write_text(tuning(built(), Trial((64,), "twice__128", 2.0)))
    ended = tilec("build", "twice.tile", "--emit", "dep")
    assert (ended.status, ended.err) == (0, "")
    [table] = built().families[0].tables
    assert (table.card, table.measured[0].member) == ("A Card", "twice__128")
    assert (
        Path("build/twice.d")
        .read_text()
        .endswith(": twice.tile twice.tune.json\ntwice.tune.json:\n")
    )
    assert tilec("build", "twice.tile").out == "twice.tile: unchanged\n"
    Path("twice.tune.json").write_text(tuning(built(), Trial((64,), "twice__1024", 2.0)))
    tilec("build", "twice.tile")
    assert built().families[0].tables[0].measured[0].member == "twice__1024"
    Path("twice.tune.json").unlink()
    tilec("build", "twice.tile")
    assert built().families[0].tables == ()


def test_kernels_of_other_files_have_what_was_measured_there(tilec, source):
    """`twice` of `twice.tile` is launched by a pipeline of `main.tile`, which has a `thrice`."""
    thrice = SOURCE.replace("twice", "thrice").replace("B = 1024", "B = 256")
    pipeline = """
#[pipeline]
pub fn again<N: Dim>(z: &mut Tensor<f32, N>, x: &Tensor<f32, N>) { twice(z, x); }
"""
    Path("main.tile").write_text(f"use twice::twice;\n{thrice}{pipeline}")
    families = [
        TunedFamily(name, ("N",), (Trial((64,), f"{name}__128", 2.0),))
        for name in ("twice", "thrice")
    ]
    run = Run("A Card", "sm_90a", "", "", "", (), tuple(families))
    Path("twice.tune.json").write_text(to_text(TuningFile((run,))))
    ended = tilec("build", "main.tile", "--emit", "dep")
    assert (ended.status, ended.err) == (0, "")
    told = from_json(Path("build/main.json").read_bytes())
    # What the file says of a kernel that is not its own is not about that kernel.
    assert {family.name: len(family.tables) for family in told.families} == {
        "twice": 1,
        "thrice": 0,
    }
    assert (
        Path("build/main.d")
        .read_text()
        .endswith(": main.tile twice.tile twice.tune.json\ntwice.tile:\ntwice.tune.json:\n")
    )


def test_what_is_no_tuning_file_ends_the_build(tilec, source):
    Path("twice.tune.json").write_text('{"tilec_tune": 2,\n runs: []}')
    ended = tilec("build", "twice.tile")
    assert ended.status == 2
    assert "`twice.tune.json` is no tuning file: it is no JSON" in ended.err
    assert "line 2, column 2" in ended.err
    assert not Path("build").exists()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"target": "sm_80"}, "what it has for sm_80 is ignored for sm_90a"),
        (
            {"codes": (MemberCode("twice__128", "another"),)},
            "it is used, and was measured before `twice__1024` and 1 more had the code of now",
        ),
    ],
)
def test_what_is_not_of_this_build_is_noted(tilec, source, change, note):
    tilec("build", "twice.tile")
    Path("twice.tune.json").write_text(tuning(built(), Trial((64,), "twice__128", 2.0), **change))
    for _ in range(2):  # also when nothing is compiled
        ended = tilec("build", "twice.tile")
        assert ended.status == 0
        assert f"note: `twice.tune.json`: {note}" in ended.err
    assert bool(built().families[0].tables) == ("target" not in change)


def test_what_leaves_the_code_as_it_was_leaves_the_measurements_valid(tilec, source):
    tilec("build", "twice.tile")
    Path("twice.tune.json").write_text(tuning(built(), Trial((64,), "twice__128", 2.0)))
    Path("twice.tile").write_text(SOURCE.replace("let t", "// Two loads are one.\n    let t"))
    assert tilec("build", "twice.tile").err == ""
    Path("twice.tile").write_text(SOURCE.replace("t + t", "t * t"))
    assert "measured before `twice__1024` and 1 more had" in tilec("build", "twice.tile").err


# ---- shown ---------------------------------------------------------------------------------------


def shown(tilec, told, *options):
    Path("matmul.json").write_text(to_json(told))
    return tilec("inspect", "matmul.json", *options)


def test_members_and_what_was_measured_are_shown(tilec):
    told = of_family(measured=[((512, 512, 512), SMALL.symbol), ((1, 2, 3), LARGE.symbol)])
    out = shown(tilec, told).out
    assert (
        "matmul__bf16: launched as one, by M, N, K\n"
        f"  members   {LARGE.symbol}\n"
        f"            {SMALL.symbol}\n"
        "  measured  2 shapes on A Card\n"
    ) in out
    assert "512  512  512" not in out
    assert f"    512  512  512  1   {SMALL.symbol}\n" in shown(tilec, told, "--families").out


def test_figures_of_the_model_are_shown_for_a_shape(tilec):
    told = of_family(measured=[((2048, 2048, 2048), SMALL.symbol)])
    out = shown(tilec, told, "--pick", "2048x2048x2048").out
    lines = [line.split() for line in out.splitlines()]
    # 128 programs are one round of 132; 1024 are eight of small ones.
    assert [LARGE.symbol, "128", "1", str(100 + 20 + 32 * 1138)] in [row[:4] for row in lines]
    assert [SMALL.symbol, "1024", "8", str(100 + 8 * (20 + 32 * 256))] in [r[:4] for r in lines]
    [choice] = [line for line in out.splitlines() if "the model's choice" in line]
    assert choice.split()[0] == LARGE.symbol
    assert f"A Card: {SMALL.symbol} was measured, 1 µs" in out


def test_a_member_that_cannot_says_why(tilec):
    asking = Requirement("K > 512", ("gt", "K", 512), 9)
    told = of_family(replace(LARGE, requires=(asking,)), SMALL)
    out = shown(tilec, told, "--pick", "M=64,N=64,K=64").out
    assert f"{LARGE.symbol}  requires K > 512" in out
    [choice] = [line for line in out.splitlines() if "the model's choice" in line]
    assert choice.split()[0] == SMALL.symbol


def test_a_pick_that_is_no_shape_is_usage(tilec):
    ended = shown(tilec, of_family(), "--pick", "64x64")
    assert ended.status == 2
    assert "`64x64` is no shape of M, N, K" in ended.err
    assert shown(tilec, plain_manifest(), "--pick", "64").status == 2


def test_a_pick_is_of_the_families_whose_extents_it_says(tilec):
    products, vectors = of_family(), (add_kernel(), add_kernel(block=256))
    families = (*products.families, *families_of(vectors))
    told = replace(products, kernels=(*products.kernels, *vectors), families=families)
    ended = shown(tilec, told, "--pick", "64x64x64", "--pick", "N=100")
    assert ended.status == 0, ended.err
    of_products, of_vectors = ended.out.split("\nadd__f32: ")
    assert "M = 64, N = 64, K = 64" in of_products and "N = 100" not in of_products
    assert "M = 64" not in of_vectors and "N = 100" in of_vectors


def test_a_family_is_chosen_by_its_types(tilec):
    out = shown(tilec, of_family(), "--kernel", "matmul__bf16").out
    assert out.count("\nmatmul__bf16_") == 2 and "launched as one" in out
    assert "launched as one" not in shown(tilec, of_family(), "--kernel", SMALL.symbol).out


# ---- tune ----------------------------------------------------------------------------------------


def test_tuning_says_what_is_missing_before_it_needs_a_gpu(tilec, source):
    tilec("build", "twice.tile")
    for arguments, message in [
        (["nowhere.json", "--shapes", "64"], "cannot read `nowhere.json`"),
        (["build/twice.json", "--shapes", "64x64"], "no shape of N"),
        (["build/twice.json", "--shapes", "64", "--kernel", "x"], "no kernel `x`"),
        (["build/twice.json", "--shapes", "64", "--arg", "x"], "expected `NAME=…`"),
        (["build/twice.json", "--shapes", "64", "--fill", "x=1"], "expected `LOW:HIGH`"),
        (["build/twice.json", "--shapes", "64", "--fill", "x=1:b"], "expected a number"),
        (["build/twice.sm_90a.cubin", "--shapes", "64"], "torch"),
    ]:
        ended = tilec("tune", *arguments)
        assert ended.status == 2, ended
        assert message in ended.err


def test_a_cubin_that_is_missing_is_named(tilec, source):
    tilec("build", "twice.tile")
    Path("build/twice.sm_90a.cubin").unlink()
    ended = tilec("tune", "build/twice.json", "--shapes", "64")
    assert ended.status == 2
    assert "cannot read `build/twice.sm_90a.cubin`" in ended.err


def test_the_schema_of_a_tuned_manifest_is_published():
    told = of_family(measured=[((512, 512, 512), SMALL.symbol)])
    assert json.loads(to_json(told))["families"][0]["tables"][0]["card"] == "A Card"
