"""A function as the problem of its layouts: values, nodes and groups, without the IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.layout.costs import ARITHMETIC
from tilec.layout.nodes import Node, Places, Problem, Value
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import Carried, OpRules, Placing, shape_of

# How often the body of a loop is taken to run.
_TURNS = 8.0


@dataclass(frozen=True)
class Found:
    """The problem, and what each of its nodes stands for."""

    problem: Problem
    origins: tuple[ir.OpView | Carried, ...]


def problem_of(function: ir.OpView, placing: Placing) -> Found:
    """The problem of a function without layouts."""
    reading = _Reading(placing)
    [block] = function.regions[0].blocks
    reading.read(block, 1.0)
    nodes = reading.nodes()
    origins = tuple(draft.origin for draft in reading.drafts)
    return Found(Problem(tuple(reading.values), nodes, placing.default), origins)


@dataclass(frozen=True)
class _Draft:
    """A node whose operands and group are not known yet; `is_uniform`: it is of one layout."""

    origin: ir.OpView | Carried
    results: tuple[int | None, ...]
    is_open: bool
    is_uniform: bool
    turns: float


class _Reading:
    def __init__(self, placing: Placing) -> None:
        self.placing = placing
        self.values: list[Value] = []
        self.drafts: list[_Draft] = []
        self._numbers: dict[ir.Value, int] = {}
        self._told: dict[
            tuple[ir.Type, float], Value
        ] = {}  # by type and turns: few among thousands
        self._maker: list[int] = []  # the node that makes each value
        # Tiles of which nobody wants a layout yet: constants, and what is made of them.
        self._indifferent: set[ir.Value] = set()

    def read(self, block: ir.Block, turns: float) -> None:
        """Note the operations of a block that runs so often."""
        for op in block.operations:
            rule = rules()[op.operation.name]
            if rule.control:
                self._read_control(op, rule, turns)
            elif not rule.terminator and any(map(is_tile, (*op.operands, *op.results))):
                self._read_operation(op, rule, turns)

    def _read_control(self, op: ir.OpView, rule: OpRules, turns: float) -> None:
        inside = turns * _TURNS if rule.loop else turns
        for group in rule.carried(op):
            if not is_tile(group.values[0]):
                continue
            for value in group.values:
                self._add_value(value, inside if isinstance(value.owner, ir.Block) else turns)
            self._add(group, group.values, turns, is_open=False, is_uniform=True)
        for region in op.regions:
            for inner in region.blocks:
                self.read(inner, inside)

    def _read_operation(self, op: ir.OpView, rule: OpRules, turns: float) -> None:
        tiles = [value for value in op.operands if is_tile(value)]
        is_uniform = type(rule).place is OpRules.place
        is_indifferent = self._indifferent.issuperset(tiles)
        results = [value for value in op.results if is_tile(value)]
        for result in results:
            self._add_value(result, turns)
        is_open = bool(results) and (rule.flexible or (is_uniform and is_indifferent))
        if is_open and is_indifferent and self._asks_cost_of_carried(op, rule):
            self._indifferent.update(op.results)
        self._add(op, list(op.results), turns, is_open=is_open, is_uniform=is_uniform)

    def _asks_cost_of_carried(self, op: ir.OpView, rule: OpRules) -> bool:
        places = rule.place(op, [None] * len(op.operands), self.placing)
        return all(layout is None for layout in places.results)

    def _add_value(self, value: ir.Value, turns: float) -> None:
        self._numbers[value] = len(self.values)
        self._maker.append(len(self.drafts))
        found = self._told.get((value.type, turns))
        if found is None:
            element = ir.RankedTensorType(value.type).element_type
            found = Value(shape_of(value), max(1, bit_width(element) // 8), turns)
            self._told[value.type, turns] = found
        self.values.append(found)

    def _add(
        self,
        origin: ir.OpView | Carried,
        results: Sequence[ir.Value],
        turns: float,
        *,
        is_open: bool,
        is_uniform: bool,
    ) -> None:
        numbers = tuple(map(self._numbers.get, results))
        self.drafts.append(_Draft(origin, numbers, is_open, is_uniform, turns))

    # ---- as nodes, when all values are known -------------------------------------------------

    def nodes(self) -> tuple[Node, ...]:
        """What was read, in order."""
        operands = [self._operands(draft.origin) for draft in self.drafts]
        groups = self._groups(operands)
        return tuple(
            _node(draft, numbers, group, self.placing)
            for draft, numbers, group in zip(self.drafts, operands, groups, strict=True)
        )

    def _operands(self, origin: ir.OpView | Carried) -> tuple[int | None, ...]:
        if isinstance(origin, Carried):
            values = [user.operands[number] for user, number in origin.operands]
        else:
            values = list(origin.operands)
        return tuple(map(self._numbers.get, values))

    def _groups(self, operands: Sequence[tuple[int | None, ...]]) -> list[int]:
        """A number for each node; nodes of one layout by nature have the same.

        Those are neighbours that work on elements of one size: where the size changes, so may the
        layout, for then it is the smaller ones that are converted.
        """
        groups = _Union(len(self.drafts))
        for number, draft in enumerate(self.drafts):
            own = next((n for n in (*draft.results, *operands[number]) if n is not None), None)
            if own is None or not self._is_of_group(draft):
                continue
            for value in operands[number]:
                if value is None or not self._is_of_group(self.drafts[self._maker[value]]):
                    continue
                told, mine = self.values[value], self.values[own]
                if (told.shape, told.element_bytes) == (mine.shape, mine.element_bytes):
                    groups.join(number, self._maker[value])
        return [groups.find(number) for number in range(len(self.drafts))]

    def _is_of_group(self, draft: _Draft) -> bool:
        return draft.is_uniform and not draft.is_open


def _node(draft: _Draft, operands: tuple[int | None, ...], group: int, placing: Placing) -> Node:
    origin, turns = draft.origin, draft.turns
    if isinstance(origin, Carried):
        place = _same_for_all(len(operands), len(draft.results))
        return Node(operands, draft.results, False, place, _no_one, _cost_of_carried, turns, group)
    rule, op = rules()[origin.operation.name], origin
    return Node(
        operands,
        draft.results,
        draft.is_open,
        lambda known: rule.place(op, known, placing),
        lambda layout: rule.serve(op, layout, placing),
        lambda places: rule.layout_cost(op, places, placing),
        turns,
        group,
        _is_permutation(op, rule),
    )


def _is_permutation(op: ir.OpView, rule: OpRules) -> bool:
    """Whether it gives the axes of a tile in another order, or others of extent 1 among them.

    A vector is left as it was: what column sums would gain by that has not been measured.
    """
    moved = rule.moved_axes(op)
    own = sorted(axis for axis in moved or () if axis is not None)
    return len(own) > 1 and own == list(range(len(own)))


def _same_for_all(operands: int, results: int) -> Callable[[Sequence[Layout | None]], Places]:
    def place(known: Sequence[Layout | None]) -> Places:
        one = next((layout for layout in known if layout is not None), None)
        return Places((one,) * operands, (one,) * results)

    return place


def _no_one(layout: Layout) -> None:
    """What is carried is in one layout, and made in no other."""


def _cost_of_carried(places: Places) -> float:
    return ARITHMETIC * sum(layout.registers for layout in places.results if layout is not None)


class _Union:
    """Numbers in sets that are joined (union-find)."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def find(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def join(self, one: int, other: int) -> None:
        self._parents[self.find(one)] = self.find(other)
