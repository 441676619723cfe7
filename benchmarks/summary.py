"""From samples to what is reported: medians, spread, ratios of paired samples, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Contender:
    """What one contender took. Units: microseconds a call, one sample a round, in order."""

    name: str
    samples: tuple[float, ...]
    error: float | None = None  # of the tolerance; at most 1 is right; None: nothing to check

    @property
    def median_us(self) -> float:
        return median(self.samples)

    @property
    def spread_us(self) -> float:
        """Interquartile range."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = quantiles(self.samples, n=4)
        return high - low


@dataclass(frozen=True)
class Comparison:
    """Contenders on one case, sampled in the same rounds: the first is ours.

    Units:    `traffic_bytes` are those that a call must read and write at least
    """

    case: str
    traffic_bytes: int
    contenders: tuple[Contender, ...]
    method: str

    def ratio(self, name: str) -> float:
        """Median over the rounds of another contender's time by ours: above 1, ours is faster."""
        ours = self.contenders[0].samples
        [other] = [c.samples for c in self.contenders if c.name == name]
        return median(theirs / own for theirs, own in zip(other, ours, strict=True))

    def rate_gbs(self, contender: Contender) -> float:
        """Needed bytes by time, in GB/s."""
        return self.traffic_bytes / contender.median_us / 1e3


def record(comparisons: Sequence[Comparison], environment: Mapping[str, object]) -> object:
    """The JSON of a run: where, and every sample."""
    return {
        "environment": dict(environment),
        "cases": [
            {
                **asdict(comparison),
                "summary": {
                    c.name: {
                        "median_us": c.median_us,
                        "spread_us": c.spread_us,
                        "rate_gbs": comparison.rate_gbs(c),
                        "time_by_ours": comparison.ratio(c.name),
                    }
                    for c in comparison.contenders
                },
            }
            for comparison in comparisons
        ],
    }


def table(comparisons: Sequence[Comparison]) -> str:
    """A Markdown table, one line a contender and case."""
    lines = [
        "| case | contender | µs (median) | IQR | GB/s | time / ours |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for comparison in comparisons:
        for c in comparison.contenders:
            lines.append(
                f"| {comparison.case} | {c.name} | {c.median_us:.2f} | {c.spread_us:.2f} "
                f"| {comparison.rate_gbs(c):.0f} | {comparison.ratio(c.name):.3f} |"
            )
    return "\n".join(lines)
