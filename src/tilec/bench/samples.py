"""From samples to what is reported: medians, spread, and ratios of samples of one round."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, quantiles

OURS, COPY = "tilec", "copy"


@dataclass(frozen=True)
class Contender:
    """What one contender took, or why it did not.

    `error` is the largest difference of its result from the exact one, by the tolerance: at most 1
    is right. `failure` says why there are no samples.

    Units:    microseconds a call, one sample a round, in order
    """

    name: str
    samples: tuple[float, ...] = ()
    error: float | None = None
    failure: str | None = None
    method: str = ""

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
    """All contenders on one case, sampled in the same rounds.

    Units:    bytes are those that a call must read and write at least; `floor_us` is what these,
              at the rate of a large copy, or the operations take at least, whichever takes longer
    """

    benchmark: str
    case: str
    floor_bytes: int
    floor_us: float
    bound: str  # "memory" or "compute": which of the two is the floor
    contenders: tuple[Contender, ...]
    set_count: int = 1
    used: tuple[str, ...] = ()  # the symbols of our machine code

    def named(self, name: str) -> Contender | None:
        """A contender that was sampled."""
        return next((c for c in self.contenders if c.name == name and c.samples), None)

    @property
    def ours(self) -> Contender | None:
        return self.named(OURS)

    @property
    def rivals(self) -> tuple[Contender, ...]:
        """Those that were sampled, the fastest first."""
        found = [c for c in self.contenders if c.name not in (OURS, COPY) and c.samples]
        return tuple(sorted(found, key=lambda c: c.median_us))

    @property
    def failures(self) -> tuple[Contender, ...]:
        return tuple(c for c in self.contenders if c.failure is not None)

    def ratio(self, name: str) -> float | None:
        """Median over the rounds of another's time by ours: above 1, ours is faster."""
        other, ours = self.named(name), self.ours
        if other is None or ours is None:
            return None
        return median(o / own for o, own in zip(other.samples, ours.samples, strict=True))

    @property
    def best_ratio(self) -> float | None:
        """The ratio to the fastest rival."""
        return self.ratio(self.rivals[0].name) if self.rivals else None

    def of_floor(self, contender: Contender) -> float:
        """The fraction of the speed of light: 1 is as fast as can be."""
        return self.floor_us / contender.median_us

    def rate_gbs(self, contender: Contender) -> float:
        """Needed bytes by time, in GB/s."""
        return self.floor_bytes / contender.median_us / 1e3
