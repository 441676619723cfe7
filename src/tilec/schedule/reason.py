"""What a schedule says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Something that was decided, and why."""

    what: str
    why: str
