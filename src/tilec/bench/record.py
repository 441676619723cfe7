"""What a run leaves: one JSON file for each benchmark, with every sample."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tilec.bench.samples import Comparison, Contender
from tilec.whole_files import write_whole


def record(comparisons: Sequence[Comparison], environment: Mapping[str, object]) -> object:
    """The JSON of a benchmark: where it ran, and for each case every sample and what they say."""
    return {
        "environment": dict(environment),
        "cases": [
            {
                **asdict(comparison),
                "summary": {c.name: _summary(comparison, c) for c in comparison.contenders},
            }
            for comparison in comparisons
        ],
    }


def _summary(comparison: Comparison, contender: Contender) -> object:
    if not contender.samples:
        return None
    return {
        "median_us": contender.median_us,
        "spread_us": contender.spread_us,
        "rate_gbs": comparison.rate_gbs(contender),
        "of_floor": comparison.of_floor(contender),
        "time_by_ours": comparison.ratio(contender.name),
    }


def save(
    folder: Path, comparisons: Sequence[Comparison], environment: Mapping[str, object]
) -> Path:
    """Writes `<benchmark>-<card>.json`; all comparisons are of one benchmark."""
    card = str(environment["card"]).replace(" ", "-").lower()
    path = folder / f"{comparisons[0].benchmark}-{card}.json"
    write_whole(path, (json.dumps(record(comparisons, environment), indent=1) + "\n").encode())
    return path
