"""One difference of two builds, and what it asks of callers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

# "breaking": calls that were right are refused, do something else, or do not compile any more.
# "recompile": calls through launchers that are made anew, and through `tilec.runtime`, are as they
# were; what was compiled into a program is not: emitted launchers, and launches written by hand.
# "compatible": whoever calls need not know.
Kind = Literal["breaking", "recompile", "compatible"]

Found: TypeAlias = Iterator[tuple[Kind, str]]


@dataclass(frozen=True)
class Change:
    """`about` is the symbol or name of what changed; empty for the file as a whole."""

    kind: Kind
    about: str
    message: str
