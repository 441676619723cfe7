"""Results and descriptions as Markdown tables, a line at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.bench.description import Benchmark, Case
from tilec.bench.samples import COPY, OURS, Comparison

_NONE = "–"


def head(rivals: Sequence[str]) -> str:
    """The head of a table of results."""
    columns = ["case", "µs", "GB/s", "of copy", "of floor", *rivals, "best rival"]
    return _row(columns) + "\n" + _row(["---", *["---:"] * (len(columns) - 1)])


def line(comparison: Comparison, rivals: Sequence[str]) -> str:
    """One case. Under a rival, and under the best: its time by ours; above 1, ours is faster."""
    ours = comparison.ours
    figures = [_NONE] * 4
    if ours is not None:
        figures = [
            f"{ours.median_us:.2f}",
            f"{comparison.rate_gbs(ours):.0f}",
            _ratio(comparison.ratio(COPY)),
            _ratio(comparison.of_floor(ours)),
        ]
    ratios = [_ratio(comparison.ratio(name)) for name in rivals]
    name = f"{comparison.benchmark} {comparison.case}"
    return _row([name, *figures, *ratios, _ratio(comparison.best_ratio)])


def failures(comparison: Comparison) -> Iterator[str]:
    """Who did not take part in a case, and why; and what ours being absent leaves unsaid."""
    name = f"{comparison.benchmark} {comparison.case}"
    for contender in comparison.failures:
        yield f"{name}: {contender.name}: {contender.failure}"
    if comparison.ours is None:
        for rival in comparison.rivals:
            rate = f"{rival.median_us:.2f} µs, {comparison.rate_gbs(rival):.0f} GB/s"
            yield f"{name}: {rival.name} takes {rate}"


def is_wrong(comparison: Comparison) -> bool:
    """Whether our kernels failed a case."""
    return any(contender.name == OURS for contender in comparison.failures)


def listed(benchmark: Benchmark) -> str:
    """A benchmark with its cases and what each must move."""
    rivals = ", ".join(rival.name for rival in benchmark.rivals) or "none"
    cases = (f"  {case.name}: {_size(case)}" for case in benchmark.cases)
    return "\n".join([f"{benchmark.name} (rivals: {rivals})", *cases])


def _size(case: Case) -> str:
    moved = f"{case.floor_bytes / 1e6:.1f} MB"
    if case.operations is None:
        return moved
    return f"{moved}, {case.operations.count / 1e9:.1f} G operations ({case.operations.unit})"


def _ratio(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
