"""How long each stage of a compile takes.

    with recording() as spent:
        with stage("parse"):
            ...
    spent["parse"].cpu_s

A stage inside another one is not counted for that one again, so the times of all stages add up to
the time of the whole. Outside of `recording` a stage costs nothing and is not kept.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# What no stage covers.
OTHER = "other"


@dataclass(frozen=True)
class Spent:
    """Units:    seconds: of processors, those of finished child processes too; of the clock"""

    cpu_s: float = 0.0
    wall_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.cpu_s + other.cpu_s, self.wall_s + other.wall_s)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.cpu_s - other.cpu_s, self.wall_s - other.wall_s)


def total(tables: Iterable[Mapping[str, Spent]]) -> dict[str, Spent]:
    """The sum of several tables, stage by stage, in the order in which stages are met."""
    summed: dict[str, Spent] = {}
    for table in tables:
        for name, spent in table.items():
            summed[name] = summed.get(name, Spent()) + spent
    return summed


@contextmanager
def recording() -> Iterator[dict[str, Spent]]:
    """A table of what the stages in here take, by name; whole when this is left."""
    kept = _Recording({}, [])
    token = _current.set(kept)
    try:
        with stage(OTHER):
            yield kept.spent
    finally:
        _current.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """What is done in here is the stage of this name, except what is another stage's."""
    kept = _current.get()
    if kept is None:
        yield
        return
    kept.spent.setdefault(name, Spent())  # in the order in which stages begin
    kept.inside.append(Spent())
    start = _now()
    try:
        yield
    finally:
        whole = _now() - start
        kept.spent[name] += whole - kept.inside.pop()
        if kept.inside:
            kept.inside[-1] += whole


def add_spent(table: Mapping[str, Spent]) -> None:
    """Count what stages of a finished child process took, not as the stage that waited for it.

    The wall time of a child is nobody's: the one that waited has that.
    """
    kept = _current.get()
    if kept is None:
        return
    for name, spent in table.items():
        cpu = Spent(spent.cpu_s)
        kept.spent[name] = kept.spent.get(name, Spent()) + cpu
        kept.inside[-1] += cpu


@dataclass
class _Recording:
    spent: dict[str, Spent]
    inside: list[Spent]  # of each open stage, what stages in it have taken


_current: ContextVar[_Recording | None] = ContextVar("_current", default=None)


def _now() -> Spent:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() + children.ru_utime + children.ru_stime
    return Spent(cpu, time.perf_counter())
