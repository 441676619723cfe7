"""The grammar as data: its conflicts, its keywords, and the cache of its tables."""

from __future__ import annotations

import logging
import os
import pickle
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest
from lark import Lark, logger

from tilec.frontend import grammar
from tilec.frontend.grammar import load_grammar
from tilec.frontend.parser_stack import ParserStack

TEXT = (files("tilec.grammar") / "tile.lark").read_text(encoding="utf-8")
# The Rust Reference, "Keywords", edition 2021: strict and reserved ones, and `_`.
WORDS = """
    as async await break const continue crate dyn else enum extern false fn for if impl in let loop
    match mod move mut pub ref return self Self static struct super trait true type unsafe use where
    while abstract become box do final macro override priv try typeof unsized virtual yield _"""
KEYWORDS = set(WORDS.split())
# What lark resolves by reading on; the grammar's head says why each is right.
READS_ON = {
    ("LBRACE", "expression", "RETURN"),
    ("LBRACE", "expression", "BREAK"),
    ("LBRACE", "expression", "BREAK LIFETIME"),
    ("LPAR", "postfix", "postfix DOT NAME"),
    ("COMMA", "primary", "block_like"),
    ("ELSE", "if_", "IF condition block"),
}


def test_names_are_everything_but_rusts_keywords() -> None:
    pattern = re.compile(re.search(r"^NAME: /(.*)/$", TEXT, re.MULTILINE)[1])  # type: ignore[index]
    assert not [word for word in KEYWORDS if pattern.fullmatch(word)]
    assert all(pattern.fullmatch(f"r#{word}") for word in KEYWORDS - {"_"})
    assert all(pattern.fullmatch(f"{word}s") for word in KEYWORDS)


def test_every_keyword_is_a_terminal() -> None:
    terminals = re.findall(r"^[A-Z]+: /(\w+)\\b/$", TEXT, re.MULTILINE)
    reserved = re.search(r"^RESERVED: /\(\?:(.*)\)\\b/$", TEXT, re.MULTILINE)
    assert reserved is not None
    assert sorted([*terminals, *reserved[1].split("|")]) == sorted(KEYWORDS)


def test_the_grammar_has_only_the_conflicts_that_are_meant(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level(logging.DEBUG, logger.name):
        Lark(TEXT, parser="lalr", start=["file", "vocabulary"], debug=True, keep_all_tokens=True)
    text = "\n".join(caplog.messages)
    conflict = r"conflict for terminal (\w+): \(resolving as shift\)\n \* <(\w+) : ([\w ]+)>"
    assert set(re.findall(conflict, text)) == READS_ON


class NoCallbacks:
    """Lark then builds its own trees."""


def test_tables_are_cached_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _reads(load_grammar(NoCallbacks()))
    [cached] = (tmp_path / "tilec").iterdir()
    made = cached.stat().st_mtime_ns
    assert _reads(load_grammar(NoCallbacks()))
    assert [f.stat().st_mtime_ns for f in (tmp_path / "tilec").iterdir()] == [made]


def test_a_damaged_cache_is_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_grammar(NoCallbacks())
    [cached] = (tmp_path / "tilec").iterdir()
    cached.write_bytes(cached.read_bytes()[:1000])
    assert _reads(load_grammar(NoCallbacks()))


def test_no_cache_is_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert _reads(load_grammar(NoCallbacks()))


def test_who_has_no_home_reads_no_tables_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may leave tables for us in a folder for temporary files."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(grammar, "read_regular", lambda path, limit: pytest.fail(f"reads {path}"))
    assert _reads(load_grammar(NoCallbacks()))


def test_tables_in_a_folder_that_others_may_write_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_grammar(NoCallbacks())
    (tmp_path / "tilec").chmod(0o777)
    monkeypatch.setattr(grammar, "read_regular", lambda path, limit: pytest.fail(f"reads {path}"))
    assert _reads(load_grammar(NoCallbacks()))


def test_tables_that_are_code_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_grammar(NoCallbacks())
    [cached] = (tmp_path / "tilec").iterdir()
    cached.write_bytes(pickle.dumps(_RunsCode(tmp_path / "ran")))
    assert _reads(load_grammar(NoCallbacks()))
    assert not (tmp_path / "ran").exists()


@dataclass
class _RunsCode:
    """What pickle, left to itself, would call as it reads this."""

    path: Path

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.path),)


def _reads(grammar: Lark) -> bool:
    return grammar.parse("fn f() {}", start="file") is not None


def test_a_trial_leaves_the_stack_as_it_is() -> None:
    stack = ParserStack(load_grammar(NoCallbacks()), "fn f() { let x = 1 + 2")
    for _ in range(11):
        assert stack.feed(stack.next_token())
    height = stack.height
    assert stack.accepts("SEMICOLON", "RBRACE", "FN")
    assert not stack.accepts("SEMICOLON", "RBRACE", "RBRACE")
    assert stack.height == height
    assert not stack.feed(stack.next_token().update(type="FN"))
    assert stack.height == height
