"""Files are written whole or not at all, several as one."""

from __future__ import annotations

import pytest

from tilec.buildsystem import writing
from tilec.buildsystem.writing import write_together, write_whole
from tilec.diagnostics.setup_error import SetupError


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

    monkeypatch.setattr(writing.os, "fsync", flush)
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

    monkeypatch.setattr(writing.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, {"a": b"1", "b": b"2"})
    assert names(tmp_path) == []
