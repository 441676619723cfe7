"""What becomes of each loop around products of the corpus (`tests/programs/dot_*.tile`).

`corpus_schedules.txt` says so, kernel by kernel: the products that are overlapped with copies, what
is loaded before them, and for all others, the reason. `make bless` rewrites it: what leaves the
fast path shows in the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lowered import ALIGNED, program

from tests.programs.cases import FOLDER
from tilec.artifact.schedule_report import ScheduleReport

PAGE = Path(__file__).with_name("corpus_schedules.txt")
TARGETS = ("sm_90a", "sm_80")
_TOLD = ("no ", "software pipeline of ", "another order of ")


def test_each_loop_is_as_fast_as_it_was_or_says_why_not(bless: bool) -> None:
    told = "".join(f"{line}\n" for name in _names() for line in _of_program(name))
    if bless:
        PAGE.write_text(told, encoding="utf-8")
    assert told == PAGE.read_text(encoding="utf-8"), "run `make bless` and read the difference"


def _names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("dot_*.tile"))


def _of_program(name: str) -> Iterator[str]:
    text = (FOLDER / f"{name}.tile").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for target in TARGETS:
        with program(text, target=target, name=f"{name}.tile") as threads:
            for symbol in threads.instances:
                report = threads.lowered(symbol, ALIGNED)[0].schedule
                assert report.products or report.choices, f"{symbol}: no word of its products"
                found.setdefault(symbol, []).extend(_lines(target, report))
    yield f"# {name}.tile"
    for symbol, lines in found.items():
        yield from ("", symbol, *lines)
    yield ""


def _lines(target: str, report: ScheduleReport) -> Iterator[str]:
    if report.roles:
        roles = ", ".join(f"{one.name} {one.warps}" for one in report.roles)
        yield f"  {target}: {roles}"
    for channel in report.channels:
        tiles = ", ".join(f"{t.tensor} {'x'.join(map(str, t.shape))}" for t in channel.tiles)
        yield f"  {target}: copied by {channel.fill}: {tiles}"
    for product in report.products:
        yield f"  {target}: {product.count} x {product.instruction}"
    for choice in report.choices:
        if choice.what.startswith(_TOLD) or choice.what.endswith("before the products"):
            yield f"  {target}: {choice.what}: {choice.why}"
