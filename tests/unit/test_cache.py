"""What is kept between builds: whole results only, and only the user's own."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tilec.buildsystem.cache import Cache, cache_folder, open_cache
from tilec.buildsystem.cache_entry import decoded, encoded
from tilec.buildsystem.expected import is_expected
from tilec.compilation import Compiled, Options
from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.source import Span
from tilec.sources import read_sources

KEY = "ab" * 32
OTHER = "cd" * 32
WARNING = Diagnostic(
    "W0001", "a message", (Label(Span("a.tile", 3, 5), "here"),), ("a note",), "help",
    Severity.WARNING,
)  # fmt: skip
RESULT = Compiled(
    {"a.cubin": bytes(range(256)), "a.json": b"{}"}, (WARNING,), ("a.tile",), {"-D": "B"}, ("B",)
)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", b"secret")


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


def test_an_entry_of_another_key_or_secret_is_a_miss(cache):
    """Who copies entries about, or makes them without the secret, plants nothing."""
    cache.put(OTHER, RESULT)
    planted = cache.folder / "results" / KEY[:2] / KEY
    planted.parent.mkdir()
    planted.write_bytes((cache.folder / "results" / OTHER[:2] / OTHER).read_bytes())
    assert cache.get(KEY) is None
    for secret in (b"", b"other"):
        planted.write_bytes(encoded(RESULT, KEY, secret))
        assert cache.get(KEY) is None
        assert Cache(cache.folder, secret).get(KEY) == RESULT


def sealed(body: bytes) -> bytes:
    """An entry as who shares a cache can make it."""
    seal = hmac.new(b"", KEY.encode() + b"\n" + body, hashlib.sha256).hexdigest()
    return b"tilec result 2\n" + seal.encode() + b"\n" + body


HEADER = {"outputs": [], "diagnostics": [], "used": [], "texts": {}, "unmatched": []}
LABEL = {"span": {"file": "a", "start": 0, "end": 1}, "text": ""}
DIAGNOSTIC = {
    "code": "E1", "message": "", "labels": [LABEL], "notes": [], "help": None, "severity": "error",
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"outputs": [["a", 5]]},
        {"outputs": [["a", -1]]},
        {"outputs": [["a", True]]},
        {"outputs": [[1, 0]]},
        {"outputs": [["a"]]},
        {"outputs": {"a": 1}},
        {"used": "a"},
        {"used": [1]},
        {"texts": []},
        {"texts": {"a": 1}},
        {"unmatched": None},
        {"diagnostics": [{**DIAGNOSTIC, "labels": []}]},
        {"diagnostics": [{**DIAGNOSTIC, "severity": "fatal"}]},
        {"diagnostics": [{**DIAGNOSTIC, "message": 1}]},
        {"diagnostics": [{**DIAGNOSTIC, "labels": [{**LABEL, "span": {"file": 1}}]}]},
        {"diagnostics": [1]},
    ],
    ids=str,
)
def test_an_entry_of_another_form_is_a_miss(changed):
    assert decoded(sealed(json.dumps(HEADER).encode() + b"\n"), KEY, b"") == Compiled()
    body = json.dumps({**HEADER, **changed}).encode() + b"\n"
    assert decoded(sealed(body), KEY, b"") is None


@pytest.mark.parametrize("body", [b"{nope\n", b"{}\n", b"", b"[]\n", b"\xff\n", b"[" * 100_000])
def test_an_entry_that_is_no_result_is_a_miss(body):
    assert decoded(sealed(body), KEY, b"") is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), True),
        (("a.sm_90a.cubin", "a.json"), True),
        (("a.sm_90a.cubin", "a.h", "a.json"), True),
        (("a.json",), False),
        (("a.sm_90a.cubin", "a.json", "../../x"), False),
        (("a.sm_90a.cubin", "a.json", "/x"), False),
        (("a.sm_90a.cubin", "a.json", "b.json"), False),
        (("a.sm_90a.cubin", "a.json", "a.rs"), False),
        (("a.sm_90a.cubin", "a.json", ""), False),
        (("b.sm_90a.cubin", "b.json"), False),
    ],
)
def test_a_result_has_the_files_that_the_build_writes(tmp_path, names, expected):
    (tmp_path / "a.tile").write_text("")
    sources = read_sources(f"{tmp_path}/a.tile")
    options = Options(emit=("header",))
    kept = Compiled(dict.fromkeys(names, b""), used=(sources.root.name,))
    assert is_expected(kept, sources, options) == expected
    assert not is_expected(replace(kept, used=("/etc/passwd",)), sources, options)


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = Cache(tmp_path / "file" / "cache", b"")
    cache.put(KEY, RESULT)
    assert cache.get(KEY) is None


def test_a_pipe_or_a_folder_in_the_place_of_an_entry_is_a_miss(cache):
    path = cache.folder / "results" / KEY[:2] / KEY
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    cache.put(KEY, RESULT)
    assert cache.get(KEY) is None
    path.unlink()
    path.mkdir()
    cache.put(KEY, RESULT)
    assert cache.get(KEY) is None


def test_forgets_what_was_not_read_for_a_month(cache, tmp_path):
    cache.put(KEY, RESULT)
    long_ago = time.time() - 40 * 24 * 3600
    others = tmp_path / "others" / KEY
    others.parent.mkdir()
    others.touch()
    (cache.folder / "results" / "ee").symlink_to(others.parent)
    for path in (entry_of_key := cache.folder / "results" / KEY[:2] / KEY, others):
        os.utime(path, (long_ago, long_ago))
    os.utime(cache.folder / "swept", (long_ago, long_ago))
    cache.put(OTHER, RESULT)
    assert not entry_of_key.exists()
    assert cache.get(OTHER) == RESULT
    assert others.exists()


@pytest.fixture
def private(tmp_path, monkeypatch):
    monkeypatch.delenv("TILEC_SHARED_CACHE", raising=False)
    monkeypatch.setenv("TILEC_CACHE", str(tmp_path / "own" / "cache"))
    return tmp_path / "own" / "cache"


def test_a_cache_is_the_users_alone_and_keeps_its_secret(private):
    open_cache().cache.put(KEY, RESULT)
    assert private.stat().st_mode & 0o777 == 0o700
    assert (private / "secret").stat().st_mode & 0o777 == 0o600
    assert open_cache().cache.get(KEY) == RESULT


def test_a_folder_that_others_can_read_becomes_private(private):
    private.mkdir(mode=0o755, parents=True)
    assert open_cache().note is None
    assert private.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o720, 0o702])
def test_a_folder_that_others_can_write_is_not_used(private, mode):
    private.mkdir(parents=True)
    private.chmod(mode)
    opened = open_cache()
    assert opened.cache is None
    assert "other users can write there; `chmod 700` it" in opened.note
    assert list(private.iterdir()) == []


def test_a_folder_or_link_of_another_user_is_not_used(private, monkeypatch):
    private.mkdir(mode=0o700, parents=True)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert "it belongs to another user" in open_cache().note
    (private.parent / "link").symlink_to(private)
    monkeypatch.setenv("TILEC_CACHE", str(private.parent / "link"))
    if user != 0:  # what root links to is trusted
        assert "a link that another user made" in open_cache().note


@pytest.mark.parametrize("bad", ["short", "readable", "link"])
def test_a_secret_that_can_be_none_is_made_anew(private, bad):
    open_cache().cache.put(KEY, RESULT)
    secret = private / "secret"
    content = secret.read_bytes()
    if bad == "short":
        secret.write_bytes(content[:5])
    elif bad == "readable":
        secret.chmod(0o644)
    else:
        secret.rename(private / "elsewhere")
        secret.symlink_to("elsewhere")
    assert open_cache().cache.get(KEY) is None
    assert secret.read_bytes() != content
    assert (secret.stat().st_mode & 0o777, secret.is_symlink()) == (0o600, False)


def test_a_shared_cache_is_shared_on_demand_only(private, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("TILEC_SHARED_CACHE", str(shared))
    open_cache().cache.put(KEY, RESULT)
    assert open_cache().cache.get(KEY) == RESULT
    assert not private.exists()
    assert shared.stat().st_mode & 0o1777 == 0o1777
    monkeypatch.delenv("TILEC_SHARED_CACHE")
    assert open_cache().cache.get(KEY) is None


def test_a_disk_that_cannot_be_written_is_no_cache(private, monkeypatch):
    def refused(*arguments, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refused)
    assert (open_cache().cache, open_cache().note) == (None, None)


def test_the_environment_chooses_the_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("TILEC_CACHE", raising=False)
    assert cache_folder() == Path("/x/tilec")
    monkeypatch.setenv("TILEC_CACHE", "/y")
    assert cache_folder() == Path("/y")


def test_who_has_no_home_has_no_folder(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("TILEC_CACHE", "XDG_CACHE_HOME", "TILEC_SHARED_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert cache_folder() is None
    assert open_cache().cache is None
