"""What each launch of a pipeline does with the tensors that it is given.

A kernel is known by its summary (`proofs/coverage.py`), for the numbers that the launch gives.
Where any of several instances may be launched, what all of them do is certain, and what any of them
does is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tilec.artifact.signature import Coverage
from tilec.pipelines.traced import Given, TracedLaunch


class Summaries(Protocol):
    """What is known of kernels, by the symbols of their instances."""

    def coverage(self, symbol: str, launch: TracedLaunch) -> Sequence[Coverage]:
        """What an instance does with each tensor that it may write."""

    def shortfall(self, symbol: str, parameter: str, launch: TracedLaunch) -> str | None:
        """Why it is not known that an instance writes all of a tensor; None where it is."""


@dataclass(frozen=True)
class Effect:
    """What one launch does with one tensor.

    `reads`: the values that were there may matter; `writes`: some element may be written; `fills`:
    every element is written, whatever the arguments.
    """

    tensor: str
    reads: bool
    writes: bool
    fills: bool
    given: Given


def effects_of(launch: TracedLaunch, summaries: Summaries) -> dict[str, Effect]:
    """The effects of a launch by tensor.

    Assumes:  a tensor that is given twice is read only
    """
    found: dict[str, Effect] = {}
    for given in launch.given:
        if given.tensor is not None:
            found.setdefault(given.tensor, _effect(launch, given, given.tensor, summaries))
    return found


def _effect(launch: TracedLaunch, given: Given, tensor: str, summaries: Summaries) -> Effect:
    if not given.may_write:
        return Effect(tensor, True, False, False, given)
    if given.own == "atomic":
        return Effect(tensor, True, True, False, given)
    told = [
        one
        for symbol in launch.instances
        for one in summaries.coverage(symbol, launch)
        if one.tensor == given.argument.parameter
    ]
    assert len(told) == len(launch.instances), "a kernel tells of all that it may write"
    fills = all(one.writes_all for one in told)
    return Effect(tensor, any(one.reads_first for one in told), True, fills, given)
