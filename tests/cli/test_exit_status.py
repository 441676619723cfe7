"""Each way to end: its status, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tilec.cli.entry
from tilec import __version__
from tilec.diagnostics.pages import page


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--version",), ("build", "--help")])
def test_help_and_version_are_done(tilec, arguments):
    ended = tilec(*arguments)
    assert ended.status == 0
    assert ended.err == ""
    assert ended.out


def test_version_is_the_packages(tilec):
    assert tilec("--version").out == f"tilec {__version__}\n"


def test_every_listed_command_has_help(tilec):
    for name in tilec_commands():
        assert f"Usage: tilec {name}" in tilec(name, "--help").out


def tilec_commands():
    return tilec.cli.entry.COMMANDS


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("build",),
        ("build", "--nonsense", "a.tile"),
        ("build", "none.tile"),
        ("build", "."),
        ("build", "empty.tile", "--emit", "nonsense"),
        ("build", "empty.tile", "--target", "sm_1"),
        ("build", "empty.tile", "--target", ","),
        ("build", "empty.tile", "--emit", " , "),
        ("build", "empty.tile", "-D", "B"),
        ("build", "empty.tile", "-j", "0"),
        ("build", "empty.tile", "none.tile"),
        ("check",),
        ("check", "none.tile"),
        ("explain", "E9999"),
        ("explain", "nonsense"),
        ("inspect", "none.cubin"),
        ("opt", "none.mlir", "--passes", "cse"),
        ("opt", "empty.mlir", "--passes", "nonsense"),
        ("opt", "empty.mlir"),
    ],
)
def test_what_cannot_be_asked_is_usage(tilec, arguments):
    Path("empty.tile").write_text("")
    Path("empty.mlir").write_text("")
    ended = tilec(*arguments)
    assert ended.status == 2
    assert ended.err.strip()
    assert "Traceback" not in ended.err
    assert not Path("build").exists()


def test_an_unknown_target_is_e0901_in_json_too(tilec):
    Path("a.tile").write_text("")
    ended = tilec("build", "a.tile", "--target", "sm_1", "--error-format=json")
    [found] = [json.loads(line) for line in ended.err.splitlines()]
    assert (ended.status, found["code"], found["file"]) == (2, "E0901", None)
    assert "sm_90a" in found["help"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"fn f() { \xff }", "not UTF-8"), (b"fn\0", "not text")],
)
@pytest.mark.parametrize("command", ["check", "build"])
def test_a_file_that_is_no_text_is_an_error_at_its_place(tilec, command, content, said):
    Path("a.tile").write_bytes(content)
    ended = tilec(command, "a.tile")
    assert ended.status == 1
    assert "error[E0101]" in ended.err
    assert said in ended.err
    assert not Path("build").exists()


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", b"// only words\r\n"])
def test_a_file_without_kernels_is_no_error(tilec, content):
    Path("a.tile").write_bytes(content)
    assert tilec("check", "a.tile").status == 0
    ended = tilec("build", "a.tile")
    assert (ended.status, ended.out) == (0, "a.tile: no kernels, nothing to build\n")
    assert not Path("build").exists()


def test_a_fault_of_the_command_itself_is_70_with_a_report(tilec, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("tilec.cli.build.build", fail)
    Path("a.tile").write_text("")
    ended = tilec("build", "a.tile")
    assert ended.status == 70
    assert "internal compiler error: RuntimeError: unforeseen" in ended.err
    assert "Traceback" not in ended.err
    report = Path(ended.err.split("a report was saved: ")[1].strip()).read_text()
    assert "Traceback" in report
    assert __version__ in report


def test_an_interrupt_is_130(tilec, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tilec.cli.build.build", interrupt)
    Path("a.tile").write_text("")
    assert tilec("build", "a.tile").status == 130


def test_opt_runs_a_pipeline_and_prints_the_module(tilec):
    Path("a.mlir").write_text(
        "func.func @f(%x: f32) -> f32 {\n"
        "  %a = arith.addf %x, %x : f32\n  %b = arith.addf %x, %x : f32\n"
        "  %c = arith.mulf %a, %b : f32\n  return %c : f32\n}\n"
    )
    ended = tilec("opt", "a.mlir", "--passes", "cse,func.func(canonicalize)")
    assert ended.status == 0
    assert ended.out.count("arith.addf") == 1


def test_opt_says_where_a_module_is_wrong(tilec):
    Path("a.mlir").write_text("func.func @f() {\n  return %x\n}\n")
    ended = tilec("opt", "a.mlir", "--passes", "cse")
    assert ended.status == 1
    assert ended.err.startswith("error: a.mlir:2:")


def test_doctor_says_what_is_there(tilec):
    ended = tilec("doctor")
    assert ended.status == 0
    assert "ptxas" in ended.out
    assert "sm_90a" in ended.out


def test_nothing_heavy_is_loaded_for_help(tilec_process, monkeypatch):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    loaded = tilec_process("--help").err
    assert "click" in loaded
    for heavy in ("mlir", "lark", "islpy", "rich", "numpy"):
        assert f" {heavy}\n" not in loaded, heavy


def test_output_that_nobody_reads_is_no_error(tilec_process):
    from subprocess import PIPE, Popen
    from sys import executable

    process = Popen([executable, "-m", "tilec", "doctor"], stdout=PIPE, stderr=PIPE)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert errors == b""


MOVED_TWICE = """\
fn end<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {}

#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {
    end(z);
    end(z);
}
"""


def test_opt_runs_a_check_as_a_pass_on_a_module_with_locations(tilec):
    Path("a.tile").write_text(MOVED_TWICE, encoding="utf-8")
    Path("a.mlir").write_text(
        tilec("opt", "a.tile", "--passes", "", "--locations").out, encoding="utf-8"
    )
    for file in ("a.tile", "a.mlir"):
        ended = tilec("opt", file, "--passes", "tile-verify-grids,tile-verify-ownership")
        assert (ended.status, ended.out) == (1, "")
        assert ended.err == (
            "error: a.tile:6:9: E0401: `z` is used after it was moved: used here\n"
            "a.tile:5:9: note: moved here\n"
            "help: lend it instead: `&mut …`, to a helper that takes `&mut Part<…>`\n"
        )


def test_opt_takes_what_emit_tile_writes(tilec):
    Path("a.tile").write_text(MOVED_TWICE.replace("    end(z);\n", "", 1), encoding="utf-8")
    assert tilec("build", "a.tile", "--emit", "tile").status == 0
    ended = tilec("opt", "build/a.tile.mlir", "--passes", "tile-verify-ownership")
    assert (ended.status, ended.err) == (0, "")
    assert '"tile.move"' in ended.out


def test_opt_reports_a_program_that_the_front_end_refuses(tilec):
    Path("a.tile").write_text("fn f() { x }\n", encoding="utf-8")
    ended = tilec("opt", "a.tile", "--passes", "cse")
    assert (ended.status, ended.out) == (1, "")
    assert "error[E0201]" in ended.err


@pytest.mark.parametrize("argument", ["--\x1b[2J\u202e", "\x1b[2J"])
def test_a_usage_error_shows_what_it_was_given(tilec, argument):
    """A name that somebody gave a file becomes an option where a shell lists a folder."""
    ended = tilec(argument) if argument.startswith("\x1b") else tilec("check", argument)
    assert (ended.status, r"\x1b[2J" in ended.err) == (2, True)
    assert all(c.isprintable() or c == "\n" for c in ended.err)


@pytest.mark.parametrize("command", ["check", "build"])
def test_an_option_that_fits_no_kernel_is_said_before_anything_is(tilec, command):
    Path("a.tile").write_text("fn f(x: f32) -> f32 { x }\n")
    Path("b.tile").write_text("fn g(x: f32) -> f32 { x }\n")
    ended = tilec(command, "a.tile", "b.tile", "-D", "C=3")
    assert (ended.status, ended.out) == (2, "")
    assert "`-D C=3` fits no kernel of these files" in ended.err


def test_quiet_prints_errors_only(tilec, workplace):
    Path("twice.tile").write_text(page("W0803").wrong)
    assert "warning[W0803]" in tilec("check", "twice.tile").err
    ended = tilec("check", "-q", "twice.tile")
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    # A document holds what was found, whatever is printed.
    document = tilec("check", "-q", "--error-format", "sarif", "twice.tile").out
    assert "W0803" in document
    Path("twice.tile").write_text(page("E0801").wrong)
    assert "error[E0801]" in tilec("check", "-q", "twice.tile").err
