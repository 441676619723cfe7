"""`tilec build` with the whole compiler behind it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from built_files import files_in

from tilec.artifact.embed import extract
from tilec.artifact.manifest import from_json

DOUBLE = """
use helper::twice;

#[kernel]
#[instance(T = f32, B = 256)]
pub fn double<T: Num, N: Dim, const B: usize>(z: Part<&mut Tensor<T, N>, B>, x: &Tensor<T, N>) {
    z.store(twice(x.load_like(&z)));
}
"""
HELPER = "fn twice<T: Num, const B: usize>(t: Tile<T, B>) -> Tile<T, B> { t + t }\n"


@pytest.fixture(autouse=True)
def program(workplace):
    Path("double.tile").write_text(DOUBLE)
    Path("helper.tile").write_text(HELPER)


def contents(folder: str) -> dict[str, bytes]:
    return {name: Path(folder, name).read_bytes() for name in files_in(Path(folder))}


def test_the_same_inputs_give_the_same_bytes(monkeypatch, tilec_process):
    emit = ("--emit", "tile,mlir,llvm,ptx")
    for seed in ("0", "1"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        arguments = ("double.tile", "-o", f"out{seed}", "--no-cache", *emit)
        assert tilec_process("build", *arguments).status == 0
    assert contents("out0") == contents("out1")
    assert sorted(contents("out0")) == [
        "double.json", "double.mlir", "double.sm_90a.cubin", "double.sm_90a.ll",
        "double.sm_90a.ptx", "double.tile.mlir",
    ]  # fmt: skip


def test_the_cubin_holds_the_manifest_beside_it(tilec):
    assert tilec("build", "double.tile").status == 0
    embedded = extract(Path("build/double.sm_90a.cubin").read_bytes())
    assert embedded == Path("build/double.json").read_bytes()
    manifest = from_json(embedded)
    assert [kernel.symbol for kernel in manifest.kernels] == ["double__f32_256"]


def test_another_helper_gives_another_cubin(tilec):
    tilec("build", "double.tile", "--emit", "dep")
    before = contents("build")
    assert before["double.d"].endswith(b": double.tile helper.tile\nhelper.tile:\n")
    Path("helper.tile").write_text(HELPER.replace("t + t", "t * t"))
    tilec("build", "double.tile")
    assert contents("build")["double.sm_90a.cubin"] != before["double.sm_90a.cubin"]


def _other(name, old, new):
    path = Path(name)
    path.write_text(path.read_text().replace(old, new))


def _moved(name, other):
    Path(other).parent.mkdir(exist_ok=True)
    Path(name).rename(other)


# One after the other: what is done to the files below, and what the kernel then makes of 1.
EDITS = [
    ("nothing", lambda: None, 6),
    ("the helper that it calls", lambda: _other("first.tile", "t * deep", "t * 2.0 * deep"), 12),
    ("a helper of that one", lambda: _other("second.tile", "{ FACTOR", "{ FACTOR + 1.0"), 14),
    ("a constant of that one", lambda: _other("third.tile", "6.0", "9.0"), 20),
    ("which of two is called", lambda: _other("third.tile", "= true", "= false"), -20),
    ("the one that was not called before", lambda: _other("first.tile", "-t", "-t * 3.0"), -60),
    ("a comment", lambda: _other("second.tile", "fn", "// a remark\nfn"), -60),
    ("another place", lambda: _moved("third.tile", "far/third.tile"), -60),
    ("a nearer file of that name", lambda: Path("near/third.tile").write_text(NEAR), 22),
    ("the nearer one gone", lambda: Path("near/third.tile").unlink(), -60),
    ("what it was before", lambda: _other("far/third.tile", "= false", "= true"), 20),
]
NEAR = "const FACTOR: f32 = 10.0;\nconst FORWARD: bool = true;\n"


def test_after_any_edit_a_build_is_that_of_a_clean_machine(tilec):
    """Whatever is kept, and however far from the kernel the file is that was edited."""
    Path("near").mkdir()
    Path("third.tile").write_text(NEAR.replace("10.0", "6.0"))
    Path("second.tile").write_text("use third::FACTOR;\nfn deep() -> f32 { FACTOR }\n")
    Path("first.tile").write_text(
        "use second::deep;\n"
        "fn there(t: Tile<f32, 64>) -> Tile<f32, 64> { t * deep() }\n"
        "fn back(t: Tile<f32, 64>) -> Tile<f32, 64> { -t }\n"
    )
    Path("k.tile").write_text(
        "use first::{there, back};\nuse third::FORWARD;\n#[kernel]\n"
        "pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>) {\n"
        "    let t = there(x.load_like(&z));\n"
        "    z.store(if FORWARD { t } else { back(t) });\n}\n"
    )
    np.save("x.npy", np.ones(1, np.float32))
    folders = ("-I", "near", "-I", "far")
    for what, edit, expected in EDITS:
        edit()
        run = ("run", "k.tile", "--kernel", "k", "--cpu", "--arg", "x=x.npy", "--out", "z=z.npy")
        assert tilec(*run, *folders).status == 0, what
        assert np.load("z.npy") == expected, what
        emit = ("--emit", "header,dep,ptx")
        for extra in ((), ("-o", "clean", "--no-cache")):
            assert tilec("build", "k.tile", *folders, *emit, *extra).status == 0, what
        kept, clean = contents("build"), contents("clean")
        assert {**kept, "k.d": b""} == {**clean, "k.d": b""}, what
        assert kept["k.d"].replace(b"build/", b"clean/") == clean["k.d"], what


def test_many_processes_share_a_cache_and_a_folder(workplace, tmp_path):
    command = [sys.executable, "-m", "tilec", "build", "double.tile"]
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    errors = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0] * 4, errors
    built = contents("build")
    assert sorted(built) == ["double.json", "double.sm_90a.cubin"]
    assert extract(built["double.sm_90a.cubin"]) == built["double.json"]
    assert len(list((tmp_path / "cache" / "results").glob("*/*"))) == 1
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_an_option_that_fits_no_kernel_is_usage(tilec):
    assert tilec("build", "double.tile", "-D", "B=512", "-o", "one").status == 0
    manifest = from_json(Path("one/double.json").read_bytes())
    assert [kernel.symbol for kernel in manifest.kernels] == ["double__f32_512"]
    ended = tilec("build", "double.tile", "-D", "BLOCK=512")
    assert ended.status == 2
    assert "-D BLOCK=512" in ended.err


def test_a_folder_that_cannot_be_written_is_usage(tilec):
    Path("out").write_text("a file")
    ended = tilec("build", "double.tile", "-o", "out")
    assert ended.status == 2
    assert "cannot write" in ended.err


def test_a_missing_assembler_is_usage_and_says_what_to_do(tilec, monkeypatch):
    monkeypatch.setenv("TILEC_PTXAS", os.devnull)
    ended = tilec("build", "double.tile")
    assert ended.status == 2
    assert "TILEC_PTXAS" in ended.err
    assert not Path("build").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "is no ptxas"),
        ("exit 3", "is no ptxas, or a broken one: it ends with status 3"),
        (
            'echo "ptxas kernel.ptx, line 5; fatal   : Unsupported .version 8.0; '
            "current version is '7.4'\" >&2; exit 255",
            "is too old: unsupported .version 8.0; current version is '7.4'",
        ),
        (
            "echo \"ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'\" >&2; "
            "exit 255",
            "is too old: value 'sm_90a' is not defined for option 'gpu-name'",
        ),
        ("kill -KILL $$", "was ended by SIGKILL"),
        ("kill -XFSZ $$", "was ended by SIGXFSZ"),
    ],
)
def test_another_assembler_that_will_not_do_is_usage(tilec, monkeypatch, script, said):
    Path("other").write_text(f"#!/bin/sh\n{script}\n")
    Path("other").chmod(0o755)
    monkeypatch.setenv("TILEC_PTXAS", "other")
    ended = tilec("build", "double.tile", "--no-cache")
    assert (ended.status, said in ended.err) == (2, True), ended.err
    assert ("TILEC_PTXAS" in ended.err) != ("`-j 1`" in ended.err)
    assert not Path("build").exists()


def test_an_assembler_that_crashes_is_an_internal_error_with_a_report(tilec, monkeypatch):
    Path("other").write_text("#!/bin/sh\nkill -SEGV $$\n")
    Path("other").chmod(0o755)
    monkeypatch.setenv("TILEC_PTXAS", "other")
    assert tilec("build", "double.tile", "--no-cache").status == 70


def test_an_assembler_may_be_named_from_the_current_folder(tilec, monkeypatch):
    from tilec.target import toolchain

    Path("own-ptxas").symlink_to(toolchain.ptxas())
    monkeypatch.setenv("TILEC_PTXAS", "own-ptxas")
    assert tilec("build", "double.tile", "--no-cache").status == 0


WRONG = """#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 64>, n: i32) {
    assert!(
        n > 3);
    z.store(n / 5
        + 8 / n);
}
"""


def test_a_checked_build_says_where_it_traps(tilec):
    Path("wrong.tile").write_text(WRONG)
    assert tilec("build", "wrong.tile", "--checked", "--emit", "ptx").status == 0
    assert sorted(contents("build")) == ["wrong.json", "wrong.sm_90a.cubin", "wrong.sm_90a.ptx"]
    manifest = from_json(contents("build")["wrong.json"])
    assert manifest.checked
    ptx = contents("build")["wrong.sm_90a.ptx"].decode()
    numbers = re.findall(r"\.b8 assert_\w+\[\d+\] = \{(.*?)\}", ptx)
    texts = {bytes(map(int, found.split(", "))).decode() for found in numbers}
    symbols = {variant.symbol for variant in manifest.kernels[0].variants}
    said = {"assert!(n > 3)", "8 / n: the divisor is not 0"}
    assert texts == {"wrong.tile", *symbols, *said}
    calls = ptx.split("call.uni __assertfail")[:-1]
    lines = [re.findall(r"st\.param\.b32\s+\[param2\], (\d+);", call)[-1] for call in calls]
    assert lines == ["3", "6"] * len(symbols)


def test_an_unchecked_build_is_another(tilec):
    Path("wrong.tile").write_text(WRONG)
    tilec("build", "wrong.tile", "--checked")
    checked = contents("build")
    assert "unchanged" not in tilec("build", "wrong.tile", "--emit", "ptx").out
    assert not from_json(contents("build")["wrong.json"]).checked
    assert contents("build")["wrong.sm_90a.cubin"] != checked["wrong.sm_90a.cubin"]
    assert b"__assertfail" not in contents("build")["wrong.sm_90a.ptx"]
    assert "a checked build" not in tilec("inspect", "build/wrong.json").out
    tilec("build", "wrong.tile", "--checked")
    assert contents("build")["wrong.sm_90a.cubin"] == checked["wrong.sm_90a.cubin"]
    assert "wrong.tile for sm_90a, a checked build" in tilec("inspect", "build/wrong.json").out


UNSAFE = """
use helper::put;

#[kernel(grid = [1])]
pub fn k<N: Dim>(y: &mut Tensor<f32, N>) {
    unsafe {
        y.store_unchecked::<4>([0], y.load::<4>([1]));
    }
    put(y, 1);
    put(y, 2);
}
"""
PUT = """pub fn put<N: Dim>(y: &mut Tensor<f32, N>, i: usize) {
    unsafe { y.store::<4>([i], Tile::<f32, 4>::zeros()); }
}
"""


def test_the_manifest_lists_each_unsafe_access_once_with_its_place(tilec):
    Path("k.tile").write_text(UNSAFE)
    Path("helper.tile").write_text(PUT)
    assert tilec("build", "k.tile").status == 0
    [kernel] = from_json(Path("build/k.json").read_bytes()).kernels
    assert [(use.file, use.line, use.column, use.what) for use in kernel.unsafe] == [
        ("k.tile", 7, 37, "load"),
        ("k.tile", 7, 9, "store_unchecked"),
        ("helper.tile", 2, 14, "store"),
    ]
    shown = [line.split() for line in tilec("inspect", "build/k.sm_90a.cubin").out.splitlines()]
    assert ["unsafe", "load", "(line", "7)"] in shown
    assert ["unsafe", "store_unchecked", "(line", "7)"] in shown
    assert ["unsafe", "store", "(helper.tile:2)"] in shown
