"""What `tilec build` does around the compiler, shown with a compiler of a few lines.

`abort` in a source aborts the process, `raise` raises, `refuse` is an error in the program; any
other source compiles to itself, with the files that it uses appended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from built_files import files_in

import tilec.driver
from tilec.compilation import Compiled
from tilec.diagnostics import Diagnostic, Label
from tilec.source import Span


def compile_text(sources, options, workers=1):
    with Path("compiled.log").open("a") as log:
        log.write(f"{sources.root.name}\n")
    text = sources.root.text
    if "abort" in text:
        os.abort()
    if "raise" in text:
        raise AssertionError("a broken invariant")
    if "refuse" in text:
        place = Span(sources.root.name, 0, 6)
        return Compiled(diagnostics=(Diagnostic("E0101", "refused", (Label(place, "here"),)),))
    whole = "".join(file.text for file in sources.files.values()).encode()
    stem = Path(sources.root.name).stem
    outputs = {f"{stem}.{target}.cubin": whole for target in options.targets}
    return Compiled({**outputs, f"{stem}.json": b"{}"}, (), tuple(sources.files))


@pytest.fixture(autouse=True)
def small_compiler(monkeypatch):
    monkeypatch.setattr(tilec.driver, "compile_sources", compile_text)


def write(**texts):
    for name, text in texts.items():
        Path(f"{name}.tile").write_text(text)


def compiled() -> list[str]:
    """The files that were compiled since the last look."""
    log = Path("compiled.log")
    names = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return sorted(names)


def test_writes_the_outputs_and_says_so(tilec):
    write(a="one", b="two")
    ended = tilec("build", "a.tile", "b.tile", "--target", "sm_90a,sm_80")
    assert ended.status == 0
    assert files_in(Path("build")) == [
        "a.json", "a.sm_80.cubin", "a.sm_90a.cubin", "b.json", "b.sm_80.cubin", "b.sm_90a.cubin",
    ]  # fmt: skip
    assert "a.tile: build/a.sm_90a.cubin build/a.sm_80.cubin build/a.json" in ended.out
    assert ended.err == ""


def test_what_is_unchanged_is_not_compiled_again(tilec):
    write(a="one", b="two")
    tilec("build", "a.tile", "b.tile")
    assert compiled() == ["a.tile", "b.tile"]
    write(b="three")
    ended = tilec("build", "a.tile", "b.tile")
    assert compiled() == ["b.tile"]
    assert "a.tile: unchanged" in ended.out
    assert Path("build/b.sm_90a.cubin").read_bytes() == b"three"


def test_a_changed_helper_changes_what_uses_it(tilec):
    write(a="use helper::f;", helper="one", b="two")
    tilec("build", "a.tile", "b.tile")
    compiled()
    write(helper="other")
    tilec("build", "a.tile", "b.tile")
    assert compiled() == ["a.tile"]
    assert Path("build/a.sm_90a.cubin").read_bytes() == b"use helper::f;other"


@pytest.mark.parametrize("options", [("-D", "B=2"), ("--target", "sm_80"), ("--instance", "a<2>")])
def test_other_options_are_another_build(tilec, options):
    write(a="one")
    tilec("build", "a.tile")
    compiled()
    tilec("build", "a.tile", *options)
    assert compiled() == ["a.tile"]


def test_outputs_that_were_deleted_come_back_without_a_compile(tilec):
    write(a="one")
    tilec("build", "a.tile")
    Path("build/a.json").unlink()
    Path("build/a.sm_90a.cubin").write_bytes(b"damaged")
    compiled()
    tilec("build", "a.tile")
    assert compiled() == []
    assert Path("build/a.json").read_bytes() == b"{}"
    assert Path("build/a.sm_90a.cubin").read_bytes() == b"one"


def test_no_cache_compiles_and_keeps_nothing(tilec, tmp_path):
    write(a="one")
    for _ in range(2):
        tilec("build", "--no-cache", "a.tile")
        assert compiled() == ["a.tile"]
    assert not (tmp_path / "cache").exists()


def test_errors_leave_what_was_built_before_and_nothing_half_written(tilec):
    write(a="one")
    tilec("build", "a.tile")
    write(a="refuse", b="refuse", c="three")
    ended = tilec("build", "a.tile", "b.tile", "c.tile")
    assert ended.status == 1
    assert ended.err.count("error[E0101]: refused") == 2
    assert Path("build/a.sm_90a.cubin").read_bytes() == b"one"
    assert files_in(Path("build")) == [
        "a.json", "a.sm_90a.cubin", "c.json", "c.sm_90a.cubin",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "reason"), [("abort", "SIGABRT"), ("raise", "AssertionError: a broken invariant")]
)
def test_a_crash_is_an_internal_error_of_one_file_with_a_report(tilec, word, reason):
    write(a="one", b=f"{word} // text", c="refuse")
    ended = tilec("build", "a.tile", "b.tile", "c.tile")
    assert ended.status == 70
    assert "internal compiler error in `b.tile`" in ended.err
    assert reason in ended.err
    assert "Traceback" not in ended.err
    assert "error[E0101]" in ended.err
    assert files_in(Path("build")) == ["a.json", "a.sm_90a.cubin"]
    report = Path(ended.err.split("a report was saved: ")[1].split("\n")[0]).read_text()
    assert f"==== b.tile\n{word} // text" in report
    assert "compile_text" in report


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGXCPU])
@pytest.mark.parametrize(
    ("command", "job"),
    [
        (["build", "b.tile", "a.tile"], "tilec.driver.compile_sources"),
        (["check", "b.tile"], "tilec.driver.check_sources"),
        (["opt", "b.tile", "--passes", "cse"], "tilec.rewriting.run_passes_on_program"),
        (["run", "b.tile", "--kernel", "k", "--cpu"], "tilec.execution.execute"),
    ],
)
def test_a_process_that_the_system_ends_is_no_fault_of_the_compiler(
    tilec, monkeypatch, number, command, job
):
    def ended(sources, *arguments, **options):
        if sources.root.name == "b.tile":
            os.kill(os.getpid(), number)
        return compile_text(sources, *arguments, **options)

    monkeypatch.setattr(job, ended)
    write(a="one", b="two")
    done = tilec(*command)
    assert done.status == 2
    assert f"`b.tile`: the process that worked on it was killed by {number.name}" in done.err
    assert "memory" in done.err and "internal" not in done.err
    built = ["a.json", "a.sm_90a.cubin"] if "build" in command else []
    assert files_in(Path("build")) == built


def test_a_crash_in_json_is_one_object_a_line(tilec):
    write(a="abort")
    ended = tilec("build", "a.tile", "--error-format=json")
    [found] = [json.loads(line) for line in ended.err.splitlines()]
    assert found["severity"] == "error"
    assert "internal compiler error" in found["message"]
    assert ended.status == 70


def test_dep_is_a_rule_for_make(tilec):
    write(a="use helper::f;", helper="")
    ended = tilec("build", "./a.tile", "-o", "my out", "--emit", "dep")
    assert ended.status == 0
    rule = Path("my out/a.d").read_text()
    assert rule == (
        "my\\ out/a.sm_90a.cubin my\\ out/a.json: ./a.tile ./helper.tile\n./helper.tile:\n"
    )


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["--emit", "dep"], "a.sm_90a.cubin"),
        (["--emit", "dep,header"], "a.h"),
        (["--emit", "rust,dep"], "a.rs"),
        (["--emit", "dep", "--fatbin", "--target", "sm_80,sm_90a"], "a.fatbin"),
        (["--emit", "dep,header", "--fatbin"], "a.h"),
    ],
)
def test_what_was_asked_for_is_the_first_target(tilec, monkeypatch, arguments, first):
    """Ninja takes no notice of a rule whose first target is not that of its own."""

    def compile_all(sources, options, workers=1):
        targets = [f"a.{target}.cubin" for target in options.targets]
        emitted = [
            name for word, name in (("header", "a.h"), ("rust", "a.rs")) if word in options.emit
        ]
        names = [*targets, *(["a.fatbin"] if options.fatbin else []), *emitted, "a.json"]
        return Compiled(dict.fromkeys(names, b"1"), (), tuple(sources.files))

    monkeypatch.setattr("tilec.driver.compile_sources", compile_all)
    write(a="one")
    assert tilec("build", "a.tile", *arguments).status == 0
    targets, _, _ = Path("build/a.d").read_text().partition(": ")
    assert targets.split()[0] == f"build/{first}"
    assert len(targets.split()) == len(files_in(Path("build"))) - 1


ODD_NAMES = [
    "a b", "a$b", "a#b", "a:b", "a%b", "a|b", "a*b", "a[b", "é", "a'b", "a,b", "a&b", "~a", "a\\b",
    r"\ a\\ b", r"a\#\:\\:b", r"a\%\|\\%%b", r"\$a$", "a\u2028b", "a\x85b", " a ",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_make_finds_a_file_of_any_name_by_its_rule(tilec, name):
    """What make itself says: up to date, not after an edit, and asking again after a removal."""
    Path("in").mkdir()
    folder = f"in/{name}"
    Path(folder).mkdir()
    Path(folder, "a.tile").write_text("use helper::f;")
    Path(folder, "helper.tile").write_text("")
    assert tilec("build", f"{folder}/a.tile", "-o", f"out {name}", "--emit", "dep").status == 0
    rules = Path(f"out {name}", "a.d").read_text(encoding="utf-8")
    # A recipe for the target of the rules, of which only the first has any.
    first, _, rest = rules.partition("\n")
    Path("rules").write_text(f"{first} ; @echo made\n{rest}", encoding="utf-8")
    cubin = f"out {name}/a.sm_90a.cubin"
    assert _made(cubin) == ""
    for read in ("a.tile", "helper.tile"):
        later = Path(cubin).stat().st_mtime + 10
        before = Path(folder, read).stat().st_mtime
        os.utime(Path(folder, read), (later, later))
        assert _made(cubin) == "made\n", read
        os.utime(Path(folder, read), (before, before))
    assert _made(cubin) == ""
    Path(folder, "helper.tile").unlink()
    assert _made(cubin) == "made\n"


def _made(target: str) -> str:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    apart = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    command = ["make", "-s", "-f", "rules", target]
    done = subprocess.run(command, env=apart, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return "" if "is up to date" in done.stdout else done.stdout


UNNAMEABLE = [";", "=", "\t", "\n", "\r", "\x0b", "\x0c", "\x01", "\x7f", r"\*", r"?\\", r"\a["]


@pytest.mark.parametrize("mark", UNNAMEABLE)
def test_a_name_that_make_has_no_spelling_for_is_refused(tilec, mark):
    Path(f"a{mark}b.tile").write_text("")
    Path(f"c{mark}d").mkdir()
    write(a="one")
    for arguments in ([f"a{mark}b.tile"], ["a.tile", "-o", f"c{mark}d"]):
        Path(arguments[0]).write_text("one")
        ended = tilec("build", *arguments, "--emit", "dep")
        assert (ended.status, "make cannot name" in ended.err) == (2, True)
        assert files_in(Path("build")) == files_in(Path(f"c{mark}d")) == []


def test_an_option_that_no_kernel_takes_writes_nothing(tilec, monkeypatch):
    """Else the next `make` would find all outputs there, and go on."""

    def compile_some(sources, options, workers=1):
        takes = "takes" in sources.root.text
        compiled = compile_text(sources, options, workers)
        return replace(compiled, unmatched=() if takes else ("-D B=1", "--instance k<T=f32>"))

    monkeypatch.setattr("tilec.driver.compile_sources", compile_some)
    write(a="one", b="takes", c="refuse")
    for _ in range(2):  # the second time from the cache
        ended = tilec("build", "a.tile", "-D", "B=1", "--instance", "k<T=f32>")
        assert ended.status == 2
        assert "`--instance k<T=f32>`, `-D B=1` fit no kernel of these files" in ended.err
        assert (ended.out, files_in(Path("build"))) == ("", [])
    ended = tilec("build", "a.tile", "b.tile", "-D", "B=1")
    assert (ended.status, ended.err) == (0, "")
    assert [Path(line.split(" ")[1]).name for line in ended.out.splitlines()] == [
        "a.sm_90a.cubin", "b.sm_90a.cubin",
    ]  # fmt: skip
    write(a="one more")
    ended = tilec("build", "a.tile", "c.tile", "-D", "B=1")
    assert (ended.status, "fit" in ended.err) == (1, False)
    assert Path("build/a.sm_90a.cubin").read_bytes() == b"one more"


def test_an_option_that_fits_no_kernel_is_said_before_any_file_is_ok(tilec):
    Path("a.tile").write_text("fn f(x: f32) -> f32 { x }\n")
    Path("b.tile").write_text("fn g(x: f32) -> f32 { x }\n")
    ended = tilec("check", "a.tile", "b.tile", "-D", "C=3")
    assert (ended.status, ended.out) == (2, "")
    assert "`-D C=3` fits no kernel of these files" in ended.err


def test_two_files_that_would_write_the_same_are_refused(tilec):
    Path("other").mkdir()
    write(a="one")
    Path("other/a.tile").write_text("two")
    ended = tilec("build", "a.tile", "other/a.tile")
    assert ended.status == 2
    assert "would write the same files" in ended.err
    assert not Path("build").exists()


def test_two_files_whose_headers_would_be_one_are_refused(tilec):
    write(math="one", math_="two")
    ended = tilec("build", "math.tile", "math_.tile", "--emit", "header")
    assert ended.status == 2
    assert "`math.tile` and `math_.tile` would write the same files" in ended.err
    assert tilec("build", "math.tile", "math_.tile", "--emit", "rust").status == 0


@pytest.mark.parametrize("other", ["a_b", "a-b_torch"])
def test_two_files_whose_modules_would_be_one_are_refused(tilec, other):
    write(**{"a-b": "one", other: "two"})
    ended = tilec("build", "a-b.tile", f"{other}.tile", "--emit", "rust,python")
    assert ended.status == 2
    assert f"`a-b.tile` and `{other}.tile` would write the same files" in ended.err
    assert not Path("build").exists()
    assert tilec("build", "a-b.tile", f"{other}.tile").status == 0  # without modules none is


def test_the_same_file_twice_is_built_once(tilec):
    write(a="one")
    assert tilec("build", "a.tile", "a.tile").status == 0
    assert compiled() == ["a.tile"]


def test_files_are_reported_in_the_order_given(tilec):
    names = [f"f{number}" for number in range(6)]
    write(**dict.fromkeys(names, "refuse"))
    ended = tilec("build", *(f"{name}.tile" for name in reversed(names)), "-j", "4")
    places = [line.split()[1] for line in ended.err.splitlines() if line.startswith(" -->")]
    assert places == [f"{name}.tile:1:1" for name in reversed(names)]


def test_quiet_says_nothing(tilec):
    write(a="one")
    ended = tilec("build", "-q", "a.tile")
    assert (ended.status, ended.out, ended.err) == (0, "", "")


def test_a_target_by_the_facts_of_another_says_so(tilec):
    write(a="one")
    ended = tilec("build", "a.tile", "--target", "sm_87")
    assert ended.status == 0
    assert "note: target `sm_87` is built by the facts of sm_86" in ended.err


def test_timings_are_told_per_file_and_in_total(tilec):
    write(a="one", b="two")
    ended = tilec("build", "a.tile", "b.tile", "--timings")
    heads = [line for line in ended.out.splitlines() if "processor time" in line]
    assert [head.partition(": ")[2] for head in heads] == [
        "a.tile",
        "b.tile",
        "in total, 2 files compiled",
    ]
    # Nothing was compiled, so only the command itself takes time.
    again = tilec("build", "a.tile", "b.tile", "--timings").out
    assert "in total, 0 files compiled" in again
    assert again.count("processor time") == 1


def test_timings_are_written_for_what_was_compiled(tilec):
    write(a="one", b="two")
    tilec("build", "a.tile", "b.tile", "--timings")
    table = json.loads(Path("build/a.timings.json").read_text())
    assert table["file"] == "a.tile"
    for unit in ("cpu_s", "wall_s"):
        whole = sum(stage[unit] for stage in table["stages"].values())
        assert table[unit] == pytest.approx(whole, abs=1e-3)
    Path("build/a.timings.json").unlink()
    Path("build/b.timings.json").write_text("those of the build before")
    write(b="else")
    tilec("build", "a.tile", "b.tile", "--timings")
    assert not Path("build/a.timings.json").exists()
    assert json.loads(Path("build/b.timings.json").read_text())["file"] == "b.tile"


def test_timings_are_written_only_if_asked_for(tilec):
    write(a="one")
    tilec("build", "a.tile")
    assert not list(Path("build").glob("*timings*"))


def test_timings_as_json_are_one_object_a_line(tilec):
    write(a="one", b="two")
    ended = tilec("build", "a.tile", "b.tile", "--timings", "--error-format=json")
    tables = [json.loads(line) for line in ended.out.splitlines() if line.startswith("{")]
    files = [table["timings"]["file"] for table in tables]
    assert files == ["a.tile", "b.tile", None]
    for table in tables:
        told = table["timings"]
        assert told["cpu_s"] == pytest.approx(sum(told["stages"].values()), abs=1e-3)
