"""On which devices a target's machine code runs, and which of several is for a device."""

from __future__ import annotations

import re
from collections.abc import Iterable


def capability_of(target: str) -> tuple[int, int, str]:
    """`sm_90a` as its two numbers and its letter; (0, 0, "") runs nowhere."""
    match = re.fullmatch(r"sm_([0-9]{2,4})([af]?)", target)
    if match is None:
        return 0, 0, ""
    number, specific = match.groups()
    return int(number) // 10, int(number) % 10, specific


def runs_on(target: str, major: int, minor: int) -> bool:
    """Whether a cubin for a target such as `sm_80` or `sm_90a` runs on a compute capability.

    Plain targets run on later minor revisions of their major one, `f` targets too; `a` targets on
    exactly their own (CUDA C++ Programming Guide, "Compute Capability").
    """
    built_major, built_minor, specific = capability_of(target)
    if not built_major:
        return False
    if specific == "a":
        return (built_major, built_minor) == (major, minor)
    return built_major == major and built_minor <= minor


def preference(target: str) -> tuple[int, int, int]:
    """Sorts targets: where several run on a device, the nearest to it is taken."""
    major, minor, specific = capability_of(target)
    return (-major, -minor, 0 if specific else 1)


def nearest(targets: Iterable[str], major: int, minor: int) -> str | None:
    """The target to take on a device of this compute capability; None if none runs there."""
    running = (target for target in targets if runs_on(target, major, minor))
    return min(running, key=preference, default=None)
