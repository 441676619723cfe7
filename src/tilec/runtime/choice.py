"""Which member of a family is launched, among those that take the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tilec.artifact.family import Family
from tilec.runtime.errors import NoDevice
from tilec.runtime.fitted import Fitted


class Machine(Protocol):
    """What choices and grids ask of a device; None is the current one."""

    def sm_count(self, device: int | None) -> int: ...

    def card(self, device: int | None) -> str: ...


class NoMachine:
    """For plans that need no device."""

    def sm_count(self, device: int | None) -> int:
        raise NoDevice(
            "the grid of a persistent kernel, and the member of a family, "
            "follow from the device that runs it"
        )

    def card(self, device: int | None) -> str:
        raise NoDevice("the member of a family follows from the device that runs it")


class LazyMachine:
    """Asks a driver that is there only once it is needed."""

    def __init__(self, driver: Callable[[], Machine]) -> None:
        self._driver = driver

    def sm_count(self, device: int | None) -> int:
        return self._driver().sm_count(device)

    def card(self, device: int | None) -> str:
        return self._driver().card(device)


def choose(family: Family, fitting: Sequence[Fitted], device: int | None, on: Machine) -> Fitted:
    """The member that was the fastest at these extents on this card, if that was measured and it
    takes the arguments; else the one for which the model of costs has the fewest cycles.

    The earlier of two that are equal. Where some costs are not known, the first member.

    Assumes:  `fitting` are members in the order of the family, and there is one
    """
    if len(fitting) == 1:
        return fitting[0]
    if family.tables:
        measured = family.measured(on.card(device)).get(fitting[0].shape(family.dims))
        for one in fitting:
            if one.kernel.symbol == measured:
                return one
    multiprocessors = on.sm_count(device)
    cycles = [one.cycles(multiprocessors) for one in fitting]
    known = [number for number in cycles if number is not None]
    if len(known) < len(cycles):
        return fitting[0]
    return fitting[known.index(min(known))]
