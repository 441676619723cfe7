"""What `#[hint(…)]` of a kernel or an instance asks the compiler for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hints:
    """Each hint by its name; None, or the default, where nothing is asked for.

    `cluster` is a number of blocks, or blocks along each axis of the grid.
    """

    fast_math: bool = False
    stages: int | None = None
    warps: int | None = None
    cluster: int | tuple[int, ...] | None = None
    persistent: bool = True
    ping_pong: bool | None = None
    swizzle: int | None = None
    split: int = 1

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Hints:
        """Those of a description, by name."""
        found = dict(written)
        cluster = found.get("cluster")
        if cluster is not None and not isinstance(cluster, int):
            found["cluster"] = tuple(cluster)
        return cls(**found)
