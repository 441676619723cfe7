"""Reading a file and what it may use."""

from __future__ import annotations

import hashlib
import os

import pytest

from tilec.diagnostics.setup_error import SetupError
from tilec.sources import read_sources


def write(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.tile").write_text(text)


def test_reads_what_is_used_and_what_that_uses(tmp_path):
    write(tmp_path, a="use b::f;", b="use c::g;", c="const X: i32 = 1;", d="")
    sources = read_sources(f"{tmp_path}/a.tile")
    assert sorted(sources.files) == [f"{tmp_path}/{name}.tile" for name in "abc"]
    used = sources.module("b", sources.root)
    assert used.text == "use c::g;"
    assert sources.module("c", used).text == "const X: i32 = 1;"
    assert sources.module("d", sources.root) is None


def test_files_may_use_each_other_in_a_circle(tmp_path):
    write(tmp_path, a="use b::f;", b="use a::g;")
    sources = read_sources(f"{tmp_path}/a.tile")
    assert sources.module("a", sources.module("b", sources.root)) == sources.root


def test_the_own_folder_wins_over_include_folders_and_they_in_their_order(tmp_path):
    write(tmp_path, a="use b::f; use c::g;", b="own")
    write(tmp_path / "one", b="one", c="one")
    write(tmp_path / "two", b="two", c="two")
    include = [f"{tmp_path}/missing", f"{tmp_path}/one", f"{tmp_path}/two"]
    sources = read_sources(f"{tmp_path}/a.tile", include)
    assert sources.module("b", sources.root).text == "own"
    assert sources.module("c", sources.root).text == "one"


@pytest.mark.parametrize("use", ["use  b :: f;", "use /* ; */ b::f;", "use // x\n b::f;", "use b"])
def test_finds_a_module_however_the_use_is_written(tmp_path, use):
    write(tmp_path, a=use, b="")
    sources = read_sources(f"{tmp_path}/a.tile")
    assert sources.module("b", sources.root) is not None


def test_bytes_decide_the_digest_and_text_is_without_mark_and_carriage_returns(tmp_path):
    data = b"\xef\xbb\xbfone\r\ntwo\r\n"
    (tmp_path / "a.tile").write_bytes(data)
    sources = read_sources(f"{tmp_path}/a.tile")
    assert sources.root.text == "one\ntwo\n"
    assert sources.digests == {sources.root.name: hashlib.sha256(data).hexdigest()}


@pytest.mark.parametrize(
    ("data", "place", "label"),
    [
        (b"fn\n\xff f", (1, 0), "byte 0xff"),
        (b"\xef\xbb\xbfab\r\nc\xc3", (1, 1), "byte 0xc3"),
        ("ä\nöx".encode() + b"\xfe", (1, 2), "byte 0xfe"),
        (b"fn\r\n f\0", (1, 2), "NUL character"),
    ],
)
def test_says_where_a_file_is_no_text(tmp_path, data, place, label):
    (tmp_path / "a.tile").write_bytes(data)
    sources = read_sources(f"{tmp_path}/a.tile")
    [problem] = sources.problems
    assert problem.code == "E0101"
    assert sources.root.position(problem.span.start) == place
    assert problem.labels[0].text == label


def test_refuses_what_cannot_be_read(tmp_path):
    with pytest.raises(SetupError, match="no such file"):
        read_sources(f"{tmp_path}/none.tile")
    with pytest.raises(SetupError, match="is a directory"):
        read_sources(str(tmp_path))


def test_what_cannot_be_read_is_refused_where_it_is_used_and_is_else_no_module(tmp_path):
    write(tmp_path, a="use b::f; const c: i32 = 1;", b="")
    os.mkfifo(tmp_path / "c.tile")
    sources = read_sources(f"{tmp_path}/a.tile")
    assert sorted(sources.files) == [f"{tmp_path}/{name}.tile" for name in "ab"]
    assert sources.module("c", sources.root) is None
    write(tmp_path, a="use\n c::f;")
    with pytest.raises(SetupError, match=r"cannot read `.*c\.tile`: is a named pipe"):
        read_sources(f"{tmp_path}/a.tile")
