"""The programs of `programs/`: each is accepted, or refused for what its marks say.

What the marks say is held twice against something: against the compiler, and against what the
programs touch when they run (`touches.py`), so that no expectation is a guess.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.on_cpu import compiled
from tests.proofs.marks import FILES, RACES, Kernel, Verdict, kernels_of, without
from tests.proofs.touches import Seen, observe
from tilec.compilation import Compiled, Options
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

# What the verifier does not reach, by file and kernel: accepted by the language, refused by it
# ("cannot be decided"), or proved by the language and masked. It must shrink: a kernel that is
# listed and needs not be is a failure too.
REFUSED_WITHOUT_NEED: set[tuple[str, str]] = set()
MASKED_WITHOUT_NEED = {("scalars", "tile_offset")}

files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def check(name: str, text: str) -> Compiled:
    root = SourceFile(name, text)
    return check_sources(Sources(root, {name: root}, {}, {}), Options(report=True))


@files
def test_the_compiler_refuses_exactly_what_is_marked(path: Path) -> None:
    kernels = kernels_of(path)
    marked = {(r.code, r.line) for kernel in kernels for r in kernel.refusals}
    # That the others are accepted is seen where their verdicts are.
    accepted = {k.name for k in kernels} - refused_of(path)
    source = SourceFile(str(path), without(path, accepted))
    diagnostics = check(source.name, source.text).diagnostics
    found = {(d.code, source.position(d.span.start)[0] + 1) for d in diagnostics}
    assert marked <= found, "accepted, or refused at another place"
    extra = {(path.stem, _kernel_at(kernels, line)) for _, line in found - marked}
    assert extra == {(f, k) for f, k in REFUSED_WITHOUT_NEED if f == path.stem}


def refused_of(path: Path) -> set[str]:
    return {
        kernel.name
        for kernel in kernels_of(path)
        if kernel.is_refused or (path.stem, kernel.name) in REFUSED_WITHOUT_NEED
    }


def _kernel_at(kernels: tuple[Kernel, ...], line: int) -> str:
    return kernels[bisect_right([kernel.line for kernel in kernels], line) - 1].name


@files
def test_the_compiler_gives_the_verdicts_that_are_marked(path: Path) -> None:
    kernels, refused = kernels_of(path), refused_of(path)
    # What is refused has no report.
    compiled = check(str(path), without(path, refused))
    assert compiled.diagnostics == ()
    found = [
        (access.line, access.verdict, " and ".join(access.conditions) or None)
        for report in compiled.reports
        for access in report.accesses
    ]
    for kernel in kernels:
        if kernel.name not in refused:
            wrong = wrong_verdicts(kernel.verdicts, found)
            assert bool(wrong) is ((path.stem, kernel.name) in MASKED_WITHOUT_NEED), wrong


def wrong_verdicts(
    marked: Iterable[Verdict], found: Iterable[tuple[int, str, str | None]]
) -> list[str]:
    """What a report of accesses, as (line, verdict, condition), says otherwise than the marks.

    Every access of a marked line must have the verdict of the mark, and its condition if it
    names one; other lines are not pinned.
    """
    accesses = list(found)
    wrong = []
    for mark in marked:
        here = {(v, c) for line, v, c in accesses if line == mark.line}
        if not here:
            wrong.append(f"line {mark.line}: no access is reported")
        for verdict, condition in sorted(here, key=str):
            if verdict != mark.verdict:
                wrong.append(f"line {mark.line}: expected {mark.verdict}, got {verdict}")
            elif mark.condition is not None and condition != mark.condition:
                wrong.append(f"line {mark.line}: expected `{mark.condition}`, got `{condition}`")
    return wrong


def test_verdicts_are_compared_by_line() -> None:
    marked = [Verdict(3, "proved", None), Verdict(4, "launch-checked", "N % 4 == 0")]
    right = [(3, "proved", None), (3, "proved", None), (4, "launch-checked", "N % 4 == 0")]
    assert wrong_verdicts(marked, [*right, (5, "in-kernel", None)]) == []
    assert wrong_verdicts(marked, right[:2]) == ["line 4: no access is reported"]
    other = [(3, "in-kernel", None), (4, "launch-checked", "N == 4")]
    assert wrong_verdicts(marked, other) == [
        "line 3: expected proved, got in-kernel",
        "line 4: expected `N % 4 == 0`, got `N == 4`",
    ]


@files
def test_what_runs_agrees_with_the_marks(path: Path) -> None:
    source = SourceFile(str(path), path.read_text(encoding="utf-8"))
    faults = []
    with compiled(path) as program:
        instances = defaultdict(list)
        for symbol, function in program.kernels.items():
            instances[symbol.partition("__")[0]].append(function)
        kernels = kernels_of(path)
        assert {kernel.name for kernel in kernels} == set(instances)
        for kernel in kernels:
            seen = observe(instances[kernel.name], kernel, source)
            faults += [f"{kernel.name}: {fault}" for fault in _faults(kernel, seen)]
    assert not faults, "\n".join(faults)


def _faults(kernel: Kernel, seen: Seen) -> Iterable[str]:
    """Where the marks of a kernel and its runs contradict each other."""
    if kernel.never_launched is bool(seen.launches):
        yield f"{seen.launches} launches fit its contract"
    races = {(r.code, r.line) for r in kernel.refusals if r.code in RACES}
    for code, line in sorted(seen.races - races):
        yield f"line {line}: a race that is not marked {code}"
    for refusal in kernel.refusals:
        if refusal.code == "E0601":
            access = seen.accesses.get(refusal.line)
            if access is None or access.inside:
                yield f"line {refusal.line}: not always outside: {access}"
        elif refusal.code == "E0604":
            if seen.accesses:
                yield f"line {refusal.line}: there are programs: {seen.accesses}"
        elif not refusal.undecided and (refusal.code, refusal.line) not in seen.races:
            yield f"line {refusal.line}: no race was seen"
    outside = {r.line for r in kernel.refusals if r.code == "E0601"}
    for line, access in sorted(seen.accesses.items()):
        if line not in outside and not access.inside:
            yield f"line {line}: never inside: {access}"
    for verdict in kernel.verdicts:
        access = seen.accesses.get(verdict.line)
        if access is None:
            yield f"line {verdict.line}: not seen"
        elif (verdict.verdict == "proved") == bool(access.outside):
            yield f"line {verdict.line}: {verdict.verdict}, but {access}"


def test_refused_kernels_have_the_name_of_their_twin() -> None:
    names = [(path.stem, kernel) for path in FILES for kernel in kernels_of(path)]
    accepted = {(stem, k.name) for stem, k in names if not k.is_refused}
    for stem, kernel in names:
        assert kernel.is_refused == kernel.name.endswith("_refused"), (stem, kernel.name)
        if kernel.is_refused:
            assert (stem, _twin(kernel.name, {n for s, n in accepted if s == stem})) in accepted, (
                f"{stem}: `{kernel.name}` has no twin"
            )


def _twin(refused: str, accepted: set[str]) -> str:
    """The accepted kernel whose name begins the refused one's: the longest."""
    stem = refused.removesuffix("_refused")
    return max((n for n in accepted if stem == n or stem.startswith(f"{n}_")), key=len, default="")


def test_no_code_has_few_programs() -> None:
    refused = Counter(
        r.code for path in FILES for kernel in kernels_of(path) for r in kernel.refusals
    )
    assert refused["E0501"] >= 50
    assert refused["E0502"] >= 15
    assert refused["E0601"] >= 15
