"""What a command meets outside of its files: streams, signals, disks, a home that is not there."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from built_files import files_in

from tilec.cli.output import say

TILEC = [sys.executable, "-m", "tilec"]
COPY = """
#[kernel]
pub fn copy<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>) {
    z.store(x.load_like(&z));
}
"""
# Long to compile, since each is unrolled and of its own size.
LONG = "".join(
    f"""
#[kernel]
pub fn k{i}<M: Dim, N: Dim, K: Dim>(
    c: Part<&mut Tensor<f32, M, N>, 64, 64>,
    a: &Tensor<bf16, M, K>,
    b: &Tensor<bf16, K, N>,
) {{
    let mut acc = Tile::<f32, 64, 64>::full({i}.0);
    for k in 0..K.div_ceil(64) {{
        acc = dot(a.load::<64, 64>([c.id(0), k]), b.load::<64, 64>([k, c.id(1)]), acc);
    }}
    c.store(acc);
}}
"""
    for i in range(40)
)


@pytest.fixture(autouse=True)
def programs(workplace):
    Path("copy.tile").write_text(COPY)
    Path("wrong.tile").write_text("fn f() { x }\n")
    np.save("x.npy", np.zeros(3, np.float32))


def run(*arguments, shell_end="", **options):
    """A command as a shell starts it, with what stands behind it there."""
    words = " ".join(f"'{word}'" for word in [*TILEC, *arguments])
    return subprocess.run(
        ["bash", "-c", f"{words} {shell_end}"],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


SAYING = [
    ("check", "copy.tile"),
    ("check", "copy.tile", "--report"),
    ("check", "wrong.tile", "--error-format=sarif"),
    ("build", "copy.tile"),
    ("explain", "E0401"),
    ("explain", "list"),
    ("doctor",),
    ("opt", "copy.tile", "--passes", "cse"),
    ("run", "copy.tile", "--kernel", "copy", "--cpu", "--arg", "x=x.npy"),
    ("--help",),
    ("--version",),
    ("build", "--help"),
]


@pytest.mark.parametrize("arguments", SAYING, ids=" ".join)
def test_output_that_cannot_be_written_is_said(arguments):
    ended = run(*arguments, shell_end="> /dev/full")
    assert ended.returncode == 2
    assert "no space left on device" in ended.stderr
    assert "internal compiler error" not in ended.stderr


@pytest.mark.parametrize("arguments", SAYING, ids=" ".join)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_status(arguments, closed):
    ended = run(*arguments, shell_end=closed)
    assert ended.returncode == int("wrong.tile" in arguments), ended.stderr
    assert "error" not in ended.stderr.replace("error[E0201]", "")


@pytest.mark.parametrize("stream", ["2> /dev/full", "2>&1 | head -c 0; exit ${PIPESTATUS[0]}"])
def test_errors_that_nobody_can_read_leave_the_status(stream):
    assert run("check", "wrong.tile", shell_end=stream).returncode == 1
    assert run("check", "none.tile", shell_end=stream).returncode == 2
    assert run("check", shell_end=stream).returncode == 2


def test_who_stops_reading_stops_no_build():
    """The first line goes to nobody; all files are written, and the last one's error counts."""
    for name in "abc":
        Path(f"{name}.tile").write_text(COPY)
    end = "-j 1 | head -c 0; exit ${PIPESTATUS[0]}"
    assert run("build", "a.tile", "b.tile", "c.tile", shell_end=end).returncode == 0
    assert {f"{name}.json" for name in "abc"} <= set(files_in(Path("build")))
    assert run("check", "--report", "a.tile", "wrong.tile", shell_end=end).returncode == 1


def test_text_that_an_encoding_lacks_is_printed_as_an_escape():
    ended = run("explain", "E0402", env={**os.environ, "PYTHONIOENCODING": "iso-8859-1"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\\u2026" in ended.stdout


@pytest.mark.parametrize("name", [b"\xff.tile", b"a\xe9b.tile"])
def test_a_name_that_is_no_text_is_refused(name):
    Path(os.fsdecode(name)).write_text(COPY)
    for arguments in (["build", name], ["check", "copy.tile", name]):
        done = subprocess.run([*TILEC, *arguments], capture_output=True, check=False)
        assert (done.returncode, b"its name is not UTF-8" in done.stderr) == (2, True)


def test_opt_reads_standard_input_as_it_reads_files():
    text = "module { // é\r\n}\r\n".encode()
    for given, status, said in ((text, 0, b"module"), (b"\xff", 2, b"`-` is not UTF-8")):
        done = subprocess.run(
            [*TILEC, "opt", "-", "--passes", "cse"], input=given, capture_output=True, check=False
        )
        assert (done.returncode, said in done.stdout + done.stderr) == (status, True)


def test_who_has_no_home_builds_without_a_cache(monkeypatch, tilec):
    def no_home(*arguments):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", no_home)
    monkeypatch.setattr("pathlib.Path.expanduser", no_home)
    for name in ("TILEC_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    ended = tilec("build", "copy.tile")
    assert (ended.status, ended.err) == (0, "")
    assert "TILEC_CACHE=DIR names one" in tilec("doctor").out
    monkeypatch.setattr("tilec.cli.build.build", lambda request: 1 / 0)
    ended = tilec("build", "copy.tile")
    assert (ended.status, "ZeroDivisionError" in ended.err) == (70, True)
    assert tempfile.gettempdir() in ended.err


@pytest.mark.parametrize(
    "number",
    [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.EFBIG],
)
@pytest.mark.parametrize(
    "place", ["tilec.driver.compile_sources", "tilec.buildsystem.build.key_of"]
)
def test_what_a_machine_has_no_more_of_is_no_fault_of_the_compiler(
    tilec, monkeypatch, number, place
):
    def refused(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, refused)
    ended = tilec("build", "copy.tile")
    assert ended.status == 2
    assert os.strerror(number).lower() in ended.err
    assert "internal" not in ended.err
    assert not Path("build").exists()


def test_any_other_refusal_is_the_compilers_own(tilec, monkeypatch):
    def refused(*arguments):
        raise FileNotFoundError(errno.ENOENT, "no such file", "x")

    monkeypatch.setattr("tilec.driver.compile_sources", refused)
    assert tilec("build", "copy.tile").status == 70


def test_say_raises_once_and_is_then_silent(tilec, monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(Exception, match="cannot write to standard output"):
            say("lost")
        say("lost as well")


@pytest.mark.parametrize("to_all", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_build_that_is_told_to_end_leaves_nothing(number, to_all, tmp_path):
    """Neither a process nor a file; of one that is killed, no process."""
    for name in "ab":
        Path(f"{name}.tile").write_text(LONG)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [*TILEC, "build", "a.tile", "b.tile", "--no-cache"],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        preexec_fn=heed_all_signals,
    )
    wait_until(lambda: len(session(process.pid)) > 2)
    (os.killpg if to_all else os.kill)(process.pid, number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert said.strip() == ("interrupted" if number == signal.SIGINT else "")
    wait_until(lambda: not session(process.pid))
    assert not Path("build").exists()
    if number != signal.SIGKILL:
        assert list(temporary.iterdir()) == []


def heed_all_signals() -> None:
    """Who runs the tests in the background may ignore some, and what is ignored is inherited."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def session(leader: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def wait_until(holds) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
