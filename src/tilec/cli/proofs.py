"""What `tilec check --report` prints: each access and what was proved of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from tilec.artifact.manifest import Access
from tilec.compilation import KernelReport
from tilec.printable import json_text

_VERDICTS = ("proved", "launch-checked", "in-kernel", "unchecked")


def report_lines(file: str, report: KernelReport) -> Iterator[str]:
    """The report of one instance, for reading."""
    counts = {v: sum(a.verdict == v for a in report.accesses) for v in _VERDICTS}
    shown = ", ".join(f"{n} {v}" for v, n in counts.items() if n or v != "unchecked")
    yield f"{file}: {report.symbol}: {shown}"
    rows = [_row(access) for access in report.accesses]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    for coverage in report.coverage:
        writes = report.shortfalls.get(coverage.tensor, "in full")
        reads = ", and reads it" if coverage.reads_first else ""
        yield f"  writes {coverage.tensor} {writes}{reads}"


def report_json(file: str, report: KernelReport) -> str:
    """The same as one line of JSON."""
    return json_text({"file": file, **asdict(report)}, in_ascii=False)


def _row(access: Access) -> tuple[str, ...]:
    reason = " and ".join(access.conditions or access.facts)
    word = {"proved": "by ", "launch-checked": "if "}.get(access.verdict, "") if reason else ""
    place = f"{access.line}:{access.column}"
    return place, access.what, access.tensor, access.verdict, word + reason
