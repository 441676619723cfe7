"""What lies where a command reads may be anything, put there by anybody: nothing of it hangs a
command, is a fault of the compiler, or is delivered as a result."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilec.buildsystem.cache_entry import decoded, encoded

COPY = """
#[kernel]
pub fn copy<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>) {
    z.store(x.load_like(&z));
}
"""
RUN = ("run", "copy.tile", "--kernel", "copy", "--cpu", "--arg")


@pytest.fixture(autouse=True)
def program(workplace):
    Path("copy.tile").write_text(COPY)
    np.save("x.npy", np.zeros(3, np.float32))


def test_a_link_that_leads_to_itself_hides_no_module(tilec):
    Path("helpers.tile").write_text("pub const ONE: i32 = 1;\n")
    Path("a.tile").write_text("use helpers::ONE;\n")
    for name in ("loop.tile", "aaa", "zzz.tile"):
        Path(name).symlink_to(name)
    Path("nowhere.tile").symlink_to("none")
    ended = tilec("check", "a.tile")
    assert (ended.status, ended.err) == (0, "")


def test_a_link_in_the_place_of_a_module_lets_the_next_folder_have_it(tilec):
    Path("a.tile").write_text("use helpers::ONE;\n")
    Path("helpers.tile").symlink_to("helpers.tile")
    Path("more").mkdir()
    Path("more/helpers.tile").write_text("pub const ONE: i32 = 1;\n")
    assert tilec("check", "a.tile", "-I", "more").status == 0
    ended = tilec("check", "a.tile")
    assert (ended.status, "unknown file `helpers.tile`" in ended.err) == (1, True)


def commands(name):
    """Every way in which a command reads a file of this name."""
    yield "check", name
    yield "build", name
    yield "inspect", name
    yield "inspect", "x.npy", "--dot", "--times", name
    yield "abi-diff", name, name
    yield "opt", name, "--passes", "cse"
    yield "tune", name, "--shapes", "N=1"
    yield "run", name, "--kernel", "copy", "--cpu"
    if name.endswith(".npy"):
        yield *RUN, f"x={name}"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("pipe", "a named pipe, not a regular file"),
        ("device", "a device, not a regular file"),
        ("hole", "bytes, which is the limit"),
        ("loop", "symbolic links"),
    ],
)
def test_only_regular_files_up_to_a_size_are_read(tilec, kind, said):
    for name in ("in.tile", "in.cubin", "in.npy"):
        path = Path(name)
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path)
        else:
            path.touch()
            os.truncate(path, 1 << 40)
        for command in commands(name):
            ended = tilec(*command)
            assert (ended.status, ended.out) == (2, ""), (command, ended)
            assert f"`{name}`" in ended.err and said in ended.err, (command, ended)


@pytest.mark.parametrize("name", ["helpers.tile", "copy.tune.json"])
def test_what_is_read_beside_a_program_is_regular_too(tilec, name):
    Path("copy.tile").write_text(f"use helpers::ONE;\n{COPY}")
    Path("helpers.tile").write_text("pub const ONE: i32 = 1;\n")
    Path(name).unlink(missing_ok=True)
    os.mkfifo(name)
    ended = tilec("build", "copy.tile")
    assert (ended.status, ended.out) == (2, "")
    assert f"cannot read `{name}`: is a named pipe" in ended.err


def test_a_pipe_of_the_shell_is_an_input(tilec):
    reads, writes = os.pipe()
    os.write(writes, COPY.encode())
    os.close(writes)
    ended = tilec("check", f"/dev/fd/{reads}")
    os.close(reads)
    assert (ended.status, ended.err) == (0, "")


def test_a_device_as_an_output_stays_one(tilec):
    os.mkfifo("y.npy")
    ended = tilec(*RUN, "x=x.npy", "--out", "z=y.npy")
    assert (ended.status, "is not a regular file" in ended.err) == (2, True)
    assert Path("y.npy").is_fifo()


def test_the_message_of_a_file_that_holds_no_array_names_it(tilec):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (10**12,)}).encode()
    Path("huge.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    ended = tilec(*RUN, "x=huge.npy")
    assert ended.status == 1
    assert "`huge.npy`: the file for `x` holds no array" in ended.err
    assert "takes 4000000000000 bytes, and 0 are there" in ended.err


def test_a_cache_that_others_can_write_is_not_used_and_that_is_said(tilec, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    Path("copy.tile").write_text("pub const ONE: i32 = 1;\n")
    ended = tilec("build", "copy.tile")
    assert ended.status == 0
    assert "is not used: other users can write there" in ended.err
    assert "other users can write there" in tilec("doctor").out
    assert list(cache.iterdir()) == []
    cache.chmod(0o700)
    ended = tilec("build", "copy.tile")
    assert (ended.status, ended.err) == (0, "")


def test_what_is_planted_in_a_shared_cache_has_the_names_that_a_build_writes(
    tilec, tmp_path, monkeypatch
):
    shared = tmp_path / "shared"
    monkeypatch.setenv("TILEC_SHARED_CACHE", str(shared))
    assert tilec("build", "copy.tile").status == 0
    [entry] = (shared / "results").glob("*/*")
    kept = decoded(entry.read_bytes(), entry.name, b"")
    planted = dict.fromkeys(("../../evil.txt", str(tmp_path / "evil.txt"), "copy.rs"), b"pwned")
    changed = replace(kept, outputs={**planted, **kept.outputs})
    entry.write_bytes(encoded(changed, entry.name, b""))
    before = {path: path.read_bytes() for path in Path("build").iterdir()}
    ended = tilec("build", "copy.tile")
    assert (ended.status, ended.out) == (0, "copy.tile: unchanged\n")
    assert {path: path.read_bytes() for path in Path("build").iterdir()} == before
    assert not any(tmp_path.rglob("evil.txt"))
    assert "shared: whoever can write there" in tilec("doctor").out
