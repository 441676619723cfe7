"""What a turn of a loop takes: the cycles of each unit, and those of a program that is alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tilec.artifact.expression import Expression
from tilec.artifact.family import Part
from tilec.target.description import Rates

_MOST_CONDITIONS = 3  # tensors whose rows are told apart by where they begin


@dataclass
class Turn:
    """What one turn of a loop takes, or the program outside of its loops.

    Units:    cycles, but bytes from L2 and to it; `waits` pass while nothing else is done

    Copies go to rings of `depth` slots; 0: there are none. `crossing` is what more is copied where
    a condition holds: bytes of lines that are touched by two rows of a tile.
    """

    turns: Expression
    overlaps: bool = False
    tensor: float = 0
    shared: float = 0
    threads: float = 0
    copied_bytes: float = 0
    moved_bytes: int = 0
    waits: int = 0
    loads: bool = False
    depth: int = 0
    crossing: dict[Expression, float] = field(default_factory=dict)


def parts_of(turn: Turn, warps: int, rates: Rates) -> Iterator[Part]:
    """What a turn takes; and what it takes more, the more of its conditions hold.

    The more is copied, the more likely it is what all wait for: so what several conditions add
    together is what they add one by one, and more.
    """
    yield _part(turn, warps, rates)
    if not turn.overlaps:
        return
    conditions = sorted(turn.crossing, key=lambda one: -turn.crossing[one])[:_MOST_CONDITIONS]

    def alone(held: Sequence[Expression]) -> int:
        more = sum(turn.crossing[one] for one in held)
        return _part(
            replace(turn, copied_bytes=turn.copied_bytes + more), warps, rates
        ).alone_cycles

    added: dict[tuple[Expression, ...], int] = {(): alone(())}
    for count in range(1, len(conditions) + 1):
        for held in combinations(conditions, count):
            less = [known for known in added if set(known) < set(held)]
            added[held] = max(0, alone(held) - sum(added[known] for known in less))  # but rounding
            rate = rates.l2_bytes * rates.sustained_percent / 100
            memory = round(turn.crossing[held[0]] / rate) if count == 1 else 0
            turns = turn.turns
            for condition in held:
                turns = turns if condition is True else ("select", condition, turns, 0)
            if memory or added[held]:
                yield Part(turns, 0, 0, memory, 0, added[held])


def _part(turn: Turn, warps: int, rates: Rates) -> Part:
    memory = turn.moved_bytes / rates.l2_bytes
    tensor, copies = _tensor(turn, rates), _copies(turn, rates)
    # A warp issues every other cycle, at best.
    threads = turn.threads * max(1.0, 2 * rates.schedulers / warps)
    if turn.overlaps:
        ring = slot_cycles(turn, rates, rates.copy_latency)
        alone = max(_busiest(turn, rates), ring) + threads + memory + turn.waits
    else:
        waits = turn.waits + turn.loads * rates.load_latency
        alone = tensor + turn.shared + copies + memory + threads + waits
    cycles = (tensor, turn.shared, copies + memory, turn.threads, alone)
    return Part(turn.turns, *map(round, cycles))


def _tensor(turn: Turn, rates: Rates) -> float:
    return turn.tensor * 100 / rates.sustained_percent


def _copies(turn: Turn, rates: Rates) -> float:
    return turn.copied_bytes / rates.l2_bytes * 100 / rates.sustained_percent


def _busiest(turn: Turn, rates: Rates) -> float:
    """What a turn takes in which copies and products overlap, if nobody waits."""
    return max(_tensor(turn, rates), turn.shared, _copies(turn, rates))


def slot_cycles(turn: Turn, rates: Rates, latency: int) -> float:
    """How often one of the slots of a ring is full: each is filled, and then used."""
    return (latency + _busiest(turn, rates)) / turn.depth if turn.depth else 0
