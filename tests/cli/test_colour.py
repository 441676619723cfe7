"""Colours on standard error, as the environment wants them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def files(workplace, monkeypatch):
    Path("bad.tile").write_text("#[kernel]\npub fn f() {}\n")
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_no_terminal_gets_none(tilec):
    assert "\x1b[" not in tilec("check", "bad.tile").err
    assert "\x1b[" not in tilec("check", "none.tile").err


def test_they_can_be_forced(tilec, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in tilec("check", "bad.tile").err
    assert "\x1b[" in tilec("check", "none.tile").err


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_what_programs_read_has_none(tilec, monkeypatch, form):
    monkeypatch.setenv("FORCE_COLOR", "1")
    ended = tilec("check", "bad.tile", f"--error-format={form}")
    assert "\x1b[" not in ended.out + ended.err
