"""What the documentation tells its readers to do, done: files, commands, outputs.

In a page, a block whose first line names a file is that file. A `sh` block is run line by line, and
ends with status 0 or the one it says (`sh,1`); a named `python` block is run too, on a driver that
needs no GPU (`python,listing` is only read). A `text` block right after either is all that was
printed. In it a line `…` stands for any lines, and `…` in a line for anything; such a block is kept
by hand.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs_blocks import ROOT, Block, blocks

from tilec.cli.entry import run_command_line

PAGES = (
    ROOT / "README.md",
    *(
        ROOT / "docs" / name
        for name in ("tour.md", "design.md", "bench.md", "inspect.md", "tuning.md", "pipelines.md")
    ),
)
_STALE = "run `make bless` and read the difference"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, a cache of its own, and the driver without a GPU."""
    import tilec.runtime
    import tilec.runtime.driver  # loaded now, since loading it later would undo the next lines
    from tests.gpu.host_driver import HostDriver

    folder = tmp_path / "work"
    folder.mkdir()
    # Where that driver looks for the sources of a cubin.
    (folder / "kernels").symlink_to(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEC_CACHE", str(tmp_path / "cache"))
    driver = HostDriver(folder)
    monkeypatch.setattr(tilec.runtime, "driver", driver)
    yield folder
    driver.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_page_does_what_it_says(
    page: Path, folder: Path, capfd: pytest.CaptureFixture[str], bless: bool
) -> None:
    for block, expected in _with_output(page):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        capfd.readouterr()
        printed = _done(block, capfd)
        if expected is None or _matches(printed, expected.text):
            continue
        by_hand = "…" in expected.text
        assert bless and not by_hand, f"{expected}: {'wrong' if by_hand else _STALE}\n{printed}"
        _rewrite(expected, printed)


def _with_output(page: Path) -> Iterator[tuple[Block, Block | None]]:
    found = list(blocks(page))
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.kind != "text":
            yield block, after if after is not None and after.kind == "text" else None


def _done(block: Block, capfd: pytest.CaptureFixture[str]) -> str:
    """What running a block prints; nothing for one that is only a file."""
    if block.kind == "python" and "listing" not in block.words:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert block.file is not None, f"{block} is not run"
            runpy.run_path(block.file)
        return printed.getvalue()
    if block.kind == "sh":
        expected = int(block.words[0]) if block.words else 0
        lines = [shlex.split(line, comments=True) for line in block.text.splitlines()]
        for number, line in enumerate(lines, 1):
            status = _run(line, block)
            assert status == (expected if number == len(lines) else 0), f"{block}: {line}"
        return "".join(capfd.readouterr())
    return ""


def _run(line: list[str], block: Block) -> int:
    match line:
        case ["make", _]:
            return 0
        case ["cat", file]:
            print(Path(file).read_text(encoding="utf-8").rstrip("\n"))
            return 0
        case ["grep", "-E", pattern, file]:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
            print(*(found for found in lines if re.search(pattern, found)), sep="\n")
            return 0
        case ["tilec", *arguments]:
            return run_command_line(arguments)
        case ["python", "-c", text]:
            exec(compile(text, str(block), "exec"), {})
            return 0
    raise AssertionError(f"{block}: the tests cannot run {line}")


def _matches(printed: str, expected: str) -> bool:
    lines = (
        r"(?:.*\n)*" if line.strip() == "…" else f"{re.escape(line).replace('…', '.*')}\n"
        for line in expected.rstrip("\n").split("\n")
    )
    return re.fullmatch("".join(lines), printed.rstrip("\n") + "\n") is not None


def _rewrite(block: Block, printed: str) -> None:
    lines = block.page.read_text(encoding="utf-8").split("\n")
    # A rewritten block above may have moved this one: it is found by its content.
    old = ["```text", *block.text.splitlines(), "```"]
    starts = [i for i in range(len(lines)) if lines[i : i + len(old)] == old]
    assert starts, f"{block} was not found"
    lines[starts[0] : starts[0] + len(old)] = ["```text", *printed.rstrip("\n").split("\n"), "```"]
    block.page.write_text("\n".join(lines), encoding="utf-8")
