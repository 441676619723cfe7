"""What the programs of `programs/` say of themselves, in comments that start with `//~`.

Behind the code of a line, as in rustc's UI tests:

    //~ E0501                        the line where the primary label of a refusal starts
    //~ E0501 undecided              refused, but no race that small sizes show
    //~ proved                       the verdict on every access of the line; these two may also be
    //~ launch-checked: N % 4 == 0   "in-kernel"; the condition may be left out

On a line of its own, before a kernel, for the observed runs (`touches.py`):

    //~ sizes N = 257, k = 2         extents and scalars to try first; the others are tried as ever
    //~ small N                      an extent to keep at 4 or less
    //~ never launched               no launch fits its contract

A kernel is refused if and only if its name ends in `_refused`; its accepted twin has the name
without that, or `x_and_so_on` for `x_so_on_refused`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
FILES = tuple(sorted(PROGRAMS.glob("*.tile")))

_MARK = re.compile(r"//~ (.*)$")
_REFUSAL = re.compile(r"(E\d{4})( undecided)?")
_VERDICT = re.compile(r"(proved|launch-checked|in-kernel)(?:: (.+))?")
_SIZES = re.compile(r"sizes ((?:\w+ = -?\d+(?:, )?)+)")
_SMALL = re.compile(r"small (\w+(?:, \w+)*)")
NEVER = "never launched"
RACES = ("E0501", "E0502")
_KERNEL = re.compile(r"pub fn (\w+)")


@dataclass(frozen=True)
class Refusal:
    code: str
    line: int
    undecided: bool = False


@dataclass(frozen=True)
class Verdict:
    line: int
    verdict: str
    condition: str | None


@dataclass(frozen=True)
class Kernel:
    """One kernel of a file with its marks; lines count from 1."""

    name: str
    refusals: tuple[Refusal, ...]
    verdicts: tuple[Verdict, ...]
    sizes: tuple[dict[str, int], ...]
    small: frozenset[str]
    never_launched: bool
    line: int  # of `pub fn`; what stands below up to the next one belongs to it

    @property
    def is_refused(self) -> bool:
        return bool(self.refusals)


def kernels_of(path: Path) -> tuple[Kernel, ...]:
    """The kernels of a file in source order.

    Marks belong to the kernel whose `pub fn` is the last above them; those of helpers, which stand
    below the kernel that calls them, belong to that kernel.
    """
    found: list[Kernel] = []
    name: str | None = None
    begun = 0
    refusals: list[Refusal] = []
    verdicts: list[Verdict] = []
    ahead: list[str] = []
    now: list[str] = []

    def close() -> None:
        if name is not None:
            sizes = tuple(_sizes(text) for text in now if text.startswith("sizes"))
            small = frozenset(n for text in now for n in _small(text))
            never = NEVER in now
            marks = tuple(refusals), tuple(verdicts)
            found.append(Kernel(name, *marks, sizes, small, never, begun))

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = _MARK.search(line)
        if mark and line.startswith("//~"):
            ahead.append(mark[1])
        elif mark:
            _read(mark[1], number, refusals, verdicts)
        if kernel := _KERNEL.match(line):
            close()
            name, begun, refusals, verdicts = kernel[1], number, [], []
            now, ahead = ahead, []
    close()
    return tuple(found)


def _read(text: str, line: int, refusals: list[Refusal], verdicts: list[Verdict]) -> None:
    if refusal := _REFUSAL.fullmatch(text):
        refusals.append(Refusal(refusal[1], line, refusal[2] is not None))
        return
    verdict = _VERDICT.fullmatch(text)
    assert verdict, f"line {line}: no such mark: {text}"
    verdicts.append(Verdict(line, verdict[1], verdict[2]))


def _sizes(text: str) -> dict[str, int]:
    found = _SIZES.fullmatch(text)
    assert found, f"no such mark: {text}"
    pairs = (pair.split(" = ") for pair in found[1].split(", "))
    return {name: int(value) for name, value in pairs}


def _small(text: str) -> list[str]:
    found = _SMALL.fullmatch(text)
    assert found or text == NEVER or text.startswith("sizes"), f"no such mark: {text}"
    return found[1].split(", ") if found else []


def without(path: Path, names: Collection[str]) -> str:
    """The text of a file in which some kernels are blank lines, with what is theirs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for kernel in kernels_of(path):
        if kernel.name not in names:
            continue
        start = kernel.line - 1
        while lines[start - 1].startswith(("#[", "//")):
            start -= 1
        end = lines.index("}", start) + 1
        lines[start:end] = [""] * (end - start)
    return "\n".join(lines) + "\n"
