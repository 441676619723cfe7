"""What is kept between builds: whole results only."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tilec.buildsystem.cache import Cache, cache_folder
from tilec.compilation import Compiled
from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.source import Span

KEY = "ab" * 32
WARNING = Diagnostic(
    "W0001", "a message", (Label(Span("a.tile", 3, 5), "here"),), ("a note",), "help",
    Severity.WARNING,
)  # fmt: skip
RESULT = Compiled(
    {"a.cubin": bytes(range(256)), "a.json": b"{}"}, (WARNING,), ("a.tile",), {"-D": "B"}, ("B",)
)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def entry(cache: Cache) -> Path:
    [path] = (cache.folder / "results").glob("*/*")
    return path


def test_gives_back_what_was_put(cache):
    assert cache.get(KEY) is None
    cache.put(KEY, RESULT)
    assert cache.get(KEY) == RESULT


@pytest.mark.parametrize("position", [0, 20, 90, 300, -1])
def test_a_changed_byte_is_a_miss(cache, position):
    cache.put(KEY, RESULT)
    content = bytearray(entry(cache).read_bytes())
    content[position] ^= 1
    entry(cache).write_bytes(content)
    assert cache.get(KEY) is None


@pytest.mark.parametrize("size", [0, 1, 14, 79, 80, 200])
def test_a_cut_entry_is_a_miss(cache, size):
    cache.put(KEY, RESULT)
    entry(cache).write_bytes(entry(cache).read_bytes()[:size])
    assert cache.get(KEY) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = Cache(tmp_path / "file" / "cache")
    cache.put(KEY, RESULT)
    assert cache.get(KEY) is None


def test_forgets_what_was_not_read_for_a_month(cache):
    cache.put(KEY, RESULT)
    long_ago = time.time() - 40 * 24 * 3600
    os.utime(entry(cache), (long_ago, long_ago))
    os.utime(cache.folder / "swept", (long_ago, long_ago))
    cache.put("cd" * 32, RESULT)
    assert cache.get(KEY) is None
    assert cache.get("cd" * 32) == RESULT


def test_the_environment_chooses_the_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("TILEC_CACHE", raising=False)
    assert cache_folder() == Path("/x/tilec")
    monkeypatch.setenv("TILEC_CACHE", "/y")
    assert cache_folder() == Path("/y")


def test_who_has_no_home_has_no_folder(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("TILEC_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert cache_folder() is None
