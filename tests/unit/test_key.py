"""The key of a result changes with all that decides it, and with nothing else."""

from __future__ import annotations

import pytest

from tilec.buildsystem.key import compiler_fingerprint, key_of
from tilec.compilation import Options
from tilec.sources import read_sources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "a.tile").write_text("use b::f;")
    (tmp_path / "b.tile").write_text("one")
    (tmp_path / "unused.tile").write_text("")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "c.tile").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def key(name="a.tile", include=(), **options):
    return key_of(read_sources(name, include), Options(**options))


def test_the_same_inputs_have_the_same_key(folder):
    before = key()
    (folder / "unused.tile").write_text("changed")
    (folder / "a.tile").touch()
    assert key() == before
    assert len(before) == 64


def test_every_input_counts(folder):
    keys = [
        key(),
        key("./a.tile"),  # line tables hold the name
        key(targets=("sm_80",)),
        key(defines=("B=64",)),
        key(instances=("a<B=64>",)),
        key(emit=("ptx",)),
        key(checked=True),
    ]
    (folder / "b.tile").write_text("two")
    keys.append(key())
    (folder / "a.tile").write_text("use b::f; ")
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_another_file_for_the_same_module_counts(folder):
    (folder / "a.tile").write_text("use c::f;")
    from_include = key(include=["include"])
    (folder / "c.tile").write_text("")
    assert key(include=["include"]) != from_include


def test_the_compiler_counts(folder, monkeypatch):
    before = key()
    compiler_fingerprint.cache_clear()
    assert key() == before
    monkeypatch.setattr("tilec.buildsystem.key.__version__", "0.0.0-other")
    compiler_fingerprint.cache_clear()
    assert key() != before
    compiler_fingerprint.cache_clear()


def test_the_assembler_counts(folder, monkeypatch, tmp_path):
    before = key()
    other = tmp_path / "ptxas"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("TILEC_PTXAS", str(other))
    compiler_fingerprint.cache_clear()
    assert key() != before
    compiler_fingerprint.cache_clear()
