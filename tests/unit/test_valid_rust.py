"""Every accepted program is syntactically valid Rust: what editors and rustfmt make of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_rust
from hypothesis import given
from test_parse import ALL_CONSTRUCTS, leaves, st
from test_parse import _larger as larger
from trees import parsed, text_of

from tilec.diagnostics.pages import codes, page
from tilec.frontend import ast

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/cases/accept", "kernels", "tests/pipelines/programs", "tests/proofs/programs")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.tile"))]
PROGRAMS = {f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8") for path in FILES}
PROGRAMS |= {code: found.right for code in codes() if (found := page(code)) is not None}
PROGRAMS["all constructs"] = ALL_CONSTRUCTS
RUSTFMT = shutil.which("rustfmt", path=f"{Path.home()}/.cargo/bin") or shutil.which("rustfmt")

rust = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


def is_read_by_editors(text: str) -> bool:
    return not rust.parse(text.encode()).root_node.has_error


@pytest.mark.parametrize("name", PROGRAMS)
def test_tree_sitter_reads_every_accepted_program(name: str) -> None:
    parsed(PROGRAMS[name])
    assert is_read_by_editors(PROGRAMS[name])


@pytest.mark.skipif(RUSTFMT is None, reason="rustfmt is not installed")
@pytest.mark.parametrize("name", PROGRAMS)
def test_rustfmt_reads_every_accepted_program(name: str) -> None:
    assert RUSTFMT is not None
    arguments = [RUSTFMT, "--edition", "2021", "--emit", "stdout"]
    done = subprocess.run(arguments, input=PROGRAMS[name].encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@given(st.recursive(leaves, larger, max_leaves=12))
def test_tree_sitter_reads_every_expression(tree: ast.Expression) -> None:
    assert is_read_by_editors(f"const X: T = {text_of(tree)};")
