"""How a kernel of the programs of this folder is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Array = Any
Arrays = SimpleNamespace  # by name: arguments, as arrays and numbers, and constant generics
Reference = Callable[[Arrays], Mapping[str, Array]]


@dataclass(frozen=True)
class Entry:
    """How one kernel, in each of its instances, is tried.

    `dims` are the sets of extents; `data` names the kind of data of an argument where it is not
    `wide`; `scalars` are the scalar arguments. `reference` gives what the kernel writes, and is
    None where the CPU execution alone says it. Units: `ulps` are numbers of the result's type by
    which results on the GPU may be off; integers are always exact
    """

    reference: Reference | None = None
    dims: tuple[Mapping[str, int], ...] = ({"N": 1000},)
    data: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    ulps: int = 0
