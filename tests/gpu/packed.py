"""Launches with their arguments and results in one file, for machines without the compiler: NumPy's
`.npz`, with the bits of every tensor before and after, and an index of what they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Launch:
    """One launch. `arguments` are in the order of the parameters: bits for tensors, numbers for
    scalars; `after` has the tensors that are written. Units: `ulps` as in `table.Entry`"""

    symbol: str
    arguments: Mapping[str, Any]
    elements: Mapping[str, str]  # of the tensors
    after: Mapping[str, np.ndarray]
    ulps: int

    def __str__(self) -> str:
        shapes = [
            f"{name}{list(value.shape)}" if name in self.elements else f"{name} = {value}"
            for name, value in self.arguments.items()
        ]
        return f"{self.symbol}({', '.join(shapes)})"


def write(path: Path, launches: Iterable[Launch]) -> None:
    """Packs launches."""
    index: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for number, launch in enumerate(launches):
        scalars = {n: v for n, v in launch.arguments.items() if n not in launch.elements}
        index.append(
            {
                "symbol": launch.symbol,
                "names": list(launch.arguments),
                "scalars": scalars,
                "elements": dict(launch.elements),
                "written": list(launch.after),
                "ulps": launch.ulps,
            }
        )
        for name in launch.elements:
            arrays[f"{number}.{name}"] = launch.arguments[name]
        for name, bits in launch.after.items():
            arrays[f"{number}.{name}.after"] = bits
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, index=np.array(json.dumps(index)), **arrays)


def symbols(path: Path) -> list[str]:
    """The symbol of each launch that was packed."""
    with np.load(path) as packed:
        return [entry["symbol"] for entry in json.loads(str(packed["index"]))]


def read(path: Path) -> Iterator[Launch]:
    """The launches that were packed."""
    with np.load(path) as packed:
        for number, entry in enumerate(json.loads(str(packed["index"]))):
            yield Launch(
                symbol=entry["symbol"],
                arguments={
                    name: packed[f"{number}.{name}"]
                    if name in entry["elements"]
                    else entry["scalars"][name]
                    for name in entry["names"]
                },
                elements=entry["elements"],
                after={name: packed[f"{number}.{name}.after"] for name in entry["written"]},
                ulps=entry["ulps"],
            )
