"""Files are written whole or not at all, several as one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

from tilec.buildsystem.writing import write_together
from tilec.diagnostics.setup_error import SetupError
from tilec.whole_files import write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_all_and_says_what_changed(tmp_path):
    folder = tmp_path / "deep" / "down"
    assert write_together(folder, {"a": b"1", "b": b"2"}) == (folder / "a", folder / "b")
    assert write_together(folder, {"a": b"1", "b": b"3"}) == (folder / "b",)
    assert (folder / "b").read_bytes() == b"3"
    assert names(folder) == ["a", "b"]


def test_leaves_the_time_of_a_file_that_has_the_bytes_already(tmp_path):
    write_together(tmp_path, {"a": b"1"})
    before = (tmp_path / "a").stat().st_mtime_ns
    assert write_together(tmp_path, {"a": b"1"}) == ()
    assert (tmp_path / "a").stat().st_mtime_ns == before


def test_writes_none_when_one_cannot_be_written(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(SetupError, match="is a directory"):
        write_together(tmp_path, {"a": b"1", "b": b"2"})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a", "b"]


def test_writes_none_when_the_disk_is_full(tmp_path, monkeypatch):
    written = []

    def flush(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(SetupError, match="no space left"):
        write_together(tmp_path, {"a": b"1", "b": b"2"})
    assert names(tmp_path) == []


def test_refuses_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SetupError, match="cannot write"):
        write_together(tmp_path / "file" / "out", {"a": b"1"})


@pytest.mark.parametrize(
    "write", [write_together, lambda folder, all: write_whole(folder / "a", b"")]
)
def test_whatever_ends_a_writing_leaves_no_unfinished_file(tmp_path, monkeypatch, write):
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, {"a": b"1", "b": b"2"})
    assert names(tmp_path) == []


LEFTOVER = ".a.json.4711-0123abcd.tmp"


@pytest.mark.parametrize("content", [b"old", b"new"])
def test_what_a_killed_process_left_beside_an_output_goes_with_the_next_writing(tmp_path, content):
    (tmp_path / "a.json").write_bytes(b"old")
    (tmp_path / LEFTOVER).write_bytes(b"ha")
    write_together(tmp_path, {"a.json": content})
    assert names(tmp_path) == ["a.json"]


def test_what_another_process_writes_at_this_time_stays(tmp_path):
    with (tmp_path / LEFTOVER).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_together(tmp_path, {"a.json": b"new"})
        assert names(tmp_path) == [LEFTOVER, "a.json"]


@pytest.mark.parametrize(
    "name", [".a.json.tmp", "a.json.4711-0123abcd.tmp", ".a.json.4711-0123abcd.tmp.gz", ".x-1.tmp"]
)
def test_what_is_not_ours_by_its_name_stays(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    write_together(tmp_path, {"a.json": b"new"})
    assert name in names(tmp_path)


def test_a_link_or_a_folder_by_such_a_name_stays(tmp_path):
    (tmp_path / "kept").write_bytes(b"mine")
    (tmp_path / LEFTOVER).symlink_to("kept")
    (tmp_path / ".b.4711-0123abcd.tmp").mkdir()
    write_together(tmp_path, {"a.json": b"new"})
    assert {LEFTOVER, ".b.4711-0123abcd.tmp", "kept"} <= set(names(tmp_path))


WRITES_FOR_EVER = """
import os, sys, time
from pathlib import Path
from tilec.whole_files import write_whole
os.fsync = lambda descriptor: (print("writes", flush=True), time.sleep(600))
write_whole(Path(sys.argv[1]), b"1")
"""


def test_a_writer_keeps_its_file_while_it_lives_and_no_longer(tmp_path):
    path = tmp_path / "a.json"
    command = [sys.executable, "-c", WRITES_FOR_EVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writes\n"
        write_together(tmp_path, {"b.json": b"2"})
        assert len(names(tmp_path)) == 2
        process.kill()
    assert len(names(tmp_path)) == 2
    write_together(tmp_path, {"b.json": b"3"})
    assert names(tmp_path) == ["b.json"]


@pytest.mark.parametrize(
    "write", [write_whole, lambda path, c: write_together(path.parent, {"z": c})]
)
def test_a_pipe_is_not_replaced(tmp_path, write):
    os.mkfifo(tmp_path / "z")
    with pytest.raises((OSError, SetupError), match="is not a regular file"):
        write(tmp_path / "z", b"")
    assert names(tmp_path) == ["z"]
    assert (tmp_path / "z").is_fifo()
