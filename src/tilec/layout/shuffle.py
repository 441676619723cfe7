"""Conversion within warps: lanes read each other's registers.

A shuffle instruction offers one register of each lane and lets each lane read from one lane of its
choice. Lanes that want different registers of one lane, or put what they read into different
registers, are brought in line by exchanging registers under a condition on the lane, before and
after.

Algorithm: find, for each bit of the target's lane, a place (source register, source lane) and a
target register such that lane l reads in round 0 what its register `scatter(l)` wants, and no two
lanes want different registers of one lane. That is a linear map whose lane part has no more kernel
than itself, built bit by bit. If each warp has the same elements in both layouts, every bit can get
a lane part that is independent of those before it, in whatever way those were chosen: let c be the
lane parts of any solution and M the lane parts that differ by registers of the target alone; then c
and M together span all lanes, by dimensions, and so no choice of fewer than five closes the last.
Round k then serves register `scatter(l) ^ k` by adding a constant to both.
Source:  "Linear Layouts", on warp shuffles, has the case without copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.layout.layout import LANE_BITS, LANES, Layout
from tilec.layout.linear_map import LinearMap, Reduced, combine


@dataclass(frozen=True)
class Swap:
    """Where `parity(lane & lane_mask) ^ parity(warp & warp_mask)` is 1, `v[r] = v[r ^ xor]`.

    All registers at once: a thread for which it holds swaps register pairs, others keep theirs.
    """

    lane_mask: int
    warp_mask: int
    register_xor: int


@dataclass(frozen=True)
class Round:
    """Each lane offers `register` and reads from lane `base ^ lane_xor` (`Shuffle.lane_of`)."""

    register: int
    lane_xor: int


@dataclass(frozen=True)
class Shuffle:
    """A conversion within warps, in four steps.

    1. `gather`: swaps of the source's registers, in order.
    2. `rounds[i]`: a shuffle in indexed mode of a gathered register; its result is value i. If
       `is_move` says so, every lane reads its own register and no instruction is needed.
    3. `placement[r]`: which value goes into register r of the target.
    4. `scatter`: swaps of the target's registers, in order.

    The lane that lane l of warp w reads from is the XOR of `lane[i]` over the set bits of l, of
    `warp[i]` over those of w, and of the round's own constant.
    """

    gather: tuple[Swap, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]
    rounds: tuple[Round, ...]
    placement: tuple[int, ...]
    scatter: tuple[Swap, ...]

    def lane_of(self, step: Round, lane: int, warp: int) -> int:
        return combine(self.lane, lane) ^ combine(self.warp, warp) ^ step.lane_xor

    def is_move(self, step: Round) -> bool:
        own = all(image == 1 << bit for bit, image in enumerate(self.lane))
        return own and not any(self.warp) and step.lane_xor == 0

    @property
    def instructions(self) -> int:
        """How many shuffles of one element each thread executes."""
        return sum(not self.is_move(step) for step in self.rounds)

    @property
    def selects(self) -> int:
        """How many selects of one element the swaps take; those that nobody reads are not made."""
        needed = {step.register for step in self.rounds}
        count = len(self.scatter) * len(self.placement)
        for swap in reversed(self.gather):
            count += len(needed)
            needed |= {register ^ swap.register_xor for register in needed}
        return count


@dataclass(frozen=True)
class _Place:
    """A source lane and register, and the target register that is served from there."""

    lane: int
    register: int
    scatter: int = 0

    @property
    def source(self) -> int:
        return self.register << LANE_BITS | self.lane

    def __xor__(self, other: _Place) -> _Place:
        return _Place(
            self.lane ^ other.lane, self.register ^ other.register, self.scatter ^ other.scatter
        )


def shuffle_plans(source: Layout, target: Layout) -> Iterator[Shuffle]:
    """Plans that convert `source` to `target` without leaving a warp.

    None if data must leave, two if each warp has the same elements in both layouts. If a warp has
    more in the source than it needs, there may be none: too few lanes have what is needed. The
    first lets data stay in its lane where it can, at the price of more swaps; the second moves it
    between lanes rather than between registers.

    Assumes:  equal shapes and numbers of warps
    """
    problem = _Problem(source, target)
    rounds, warps = problem.rounds(), problem.warps()
    if rounds is None or warps is None:
        return
    for stay in (True, False):
        lanes = problem.lanes(stay)
        if lanes is not None:
            yield _assemble(source, target, lanes, rounds, warps)


class _Problem:
    """The linear equations between the places of a block in source and target."""

    def __init__(self, source: Layout, target: Layout) -> None:
        self._register = [source.flat(vector) for vector in source.register]
        self._lane = [source.flat(vector) for vector in source.lane]
        self._source_warp = [source.flat(vector) for vector in source.warp]
        self._target_register = [target.flat(vector) for vector in target.register]
        self._target_lane = [target.flat(vector) for vector in target.lane]
        self._target_warp = [target.flat(vector) for vector in target.warp]
        self._count = len(self._register)

    def rounds(self) -> list[_Place] | None:
        """For each bit of the target register, a place that differs by its vector; own lane first.

        None if some register holds what no lane of the warp has.
        """
        reach = Reduced((*self._register, *self._lane))
        places = []
        for vector in self._target_register:
            solution = reach.solve(vector)
            if solution is None:
                return None
            register = solution & ((1 << self._count) - 1)
            places.append(_Place(solution >> self._count, register))
        return places

    def warps(self) -> list[_Place] | None:
        """For each bit of the warp, a place that differs as the target differs from the source."""
        reach = Reduced((*self._lane, *self._register))
        places = []
        lanes = zip(self._source_warp, self._target_warp, strict=True)
        for difference in (one ^ other for one, other in lanes):
            solution = reach.solve(difference)
            if solution is None:
                return None
            places.append(_Place(solution & (LANES - 1), solution >> LANE_BITS))
        return places if all(self._in_warp(vector) for vector in self._target_lane) else None

    def _in_warp(self, vector: int) -> bool:
        return vector in Reduced((*self._lane, *self._register))

    def lanes(self, stay: bool) -> list[_Place] | None:
        """For each bit of the target lane, the place that it reads in round 0.

        None if some lane would have to offer several registers in one round.
        """
        reach = Reduced((*self._lane, *self._register, *self._target_register))
        relations = [self._place(relation) for relation in reach.kernel]
        natural = [self._place(_known(reach.solve(vector))) for vector in self._target_lane]
        chosen: list[_Place] = []
        for bit in range(LANE_BITS):
            candidates = [*self._own_lane(bit, stay), natural[bit]]
            candidates += [natural[bit] ^ relation for relation in relations]
            place = next((place for place in candidates if _fits(chosen, place)), None)
            if place is None:
                return None
            chosen.append(place)
        return chosen

    def _own_lane(self, bit: int, stay: bool) -> Iterator[_Place]:
        """The place in the reading lane itself, if it has the element."""
        difference = self._lane[bit] ^ self._target_lane[bit]
        if difference and not stay:
            return
        solution = Reduced((*self._register, *self._target_register)).solve(difference)
        if solution is not None:
            register = solution & ((1 << self._count) - 1)
            yield _Place(1 << bit, register, solution >> self._count)

    def _place(self, solution: int) -> _Place:
        register = solution >> LANE_BITS & ((1 << self._count) - 1)
        return _Place(solution & (LANES - 1), register, solution >> LANE_BITS >> self._count)


def _known(solution: int | None) -> int:
    assert solution is not None, "the data of a warp was checked to stay in it"
    return solution


def _fits(chosen: Sequence[_Place], place: _Place) -> bool:
    """Whether no lane has to offer two registers at once if this place is read as well."""
    if place.lane not in Reduced(other.lane for other in chosen):
        return True
    return place.source in Reduced(other.source for other in chosen)


def _assemble(
    source: Layout, target: Layout, lanes: list[_Place], rounds: list[_Place], warps: list[_Place]
) -> Shuffle:
    offered = _offered_register(lanes)
    gather_lane = [offered(1 << bit) for bit in range(LANE_BITS)]
    gather_warp = [offered(place.lane) ^ place.register for place in warps]
    values: dict[Round, int] = {}
    placement = []
    for repeat in range(source.registers >> len(source.register)):
        for bits in range(1 << len(rounds)):
            lane = combine([place.lane for place in rounds], bits)
            register = combine([place.register for place in rounds], bits) ^ offered(lane)
            step = Round(repeat << len(source.register) | register, lane)
            placement.append(values.setdefault(step, len(values)))
    assert len(placement) == target.registers, "equal shapes have equal repeats"
    return Shuffle(
        gather=_swaps(gather_lane, gather_warp),
        lane=tuple(place.lane for place in lanes),
        warp=tuple(place.lane for place in warps),
        rounds=tuple(values),
        placement=tuple(placement),
        scatter=_swaps([place.scatter for place in lanes], [0] * len(warps)),
    )


def _offered_register(lanes: Sequence[_Place]) -> LinearMap:
    """Which register a source lane offers in round 0; register 0 where nobody reads."""
    vectors = [*(place.lane for place in lanes), *(1 << bit for bit in range(LANE_BITS))]
    basis = Reduced(vectors)
    registers = [place.register for place in lanes]
    columns = []
    for bit in range(LANE_BITS):
        used = _known(basis.solve(1 << bit))
        columns.append(combine(registers, used & ((1 << len(registers)) - 1)))
    return LinearMap(tuple(columns), max(map(int.bit_length, columns), default=0))


def _swaps(lane: Sequence[int], warp: Sequence[int]) -> tuple[Swap, ...]:
    """The fewest swaps that XOR the register number with a linear function of the thread."""
    columns = (*lane, *warp)
    basis = Reduced(columns)
    used = [_known(basis.solve(column)) for column in columns]
    swaps = []
    for pivot in basis.pivots:
        mask = sum(1 << i for i, combination in enumerate(used) if combination >> pivot & 1)
        swaps.append(Swap(mask & ((1 << len(lane)) - 1), mask >> len(lane), columns[pivot]))
    return tuple(swaps)
