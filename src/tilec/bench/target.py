"""Which cubins are for a GPU."""

from __future__ import annotations


def target_of(capability: tuple[int, int]) -> str:
    """The target that tilec builds for a compute capability, with all that is special to it.

    Source:   PTX ISA, `.target`: architectures with suffix `a` begin at sm_90
    """
    major, minor = capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"
