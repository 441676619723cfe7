"""Say which thread holds which element: a layout for every tile, and where it changes.

Before:   one function, helpers inlined, tiles without encodings
After:    every tensor has an encoding (`tilec.ops.encoding`); `tile.layout` stands where a layout
          changes

Algorithm:
1. The function becomes a `Problem` without an IR (`layout_problem.py`), whose constraints and costs
   are those of the operations (`OpRules.place`, `serve`, `layout_cost`), and
   `tilec.layout.inference` finds the cheapest layouts.
2. Every operation that is executed once asks for its operands. An open value is made at its own
   place in the layout asked for (`OpRules.serve`), once for each layout; a fixed one is converted
   right after it was made, so outside any loop that it does not depend on.
3. Open originals that nobody uses any more are erased.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.layout.inference import infer_layouts
from tilec.layout.nodes import Places
from tilec.ops.encoding import give_layout, with_layout
from tilec.ops.registry import rules
from tilec.ops.rules import Carried, OpRules, Placing, shape_of
from tilec.transforms.layout_problem import problem_of


def place_layouts(function: ir.OpView, placing: Placing) -> None:
    """Rewrites the function in place; needs a current context and location."""
    found = problem_of(function, placing)
    solution = infer_layouts(found.problem)
    places: dict[ir.Operation, Places] = {}
    layouts: dict[ir.Value, Layout] = {}
    liked: dict[ir.Operation, Layout] = {}
    for number, origin in enumerate(found.origins):
        if isinstance(origin, Carried):
            [layout, *_] = solution.places[number].results
            assert layout is not None, "what is carried is a tile"
            layouts.update(dict.fromkeys(origin.values, layout))
        elif number in solution.places:
            places[origin.operation] = solution.places[number]
        else:
            liked[origin.operation] = solution.liked[number]
    _Rewriting(placing, places, layouts, liked).run(function)


class _Rewriting:
    """What was decided, by operation: of fixed ones, of what is carried, of open ones."""

    def __init__(
        self,
        placing: Placing,
        places: dict[ir.Operation, Places],
        layouts: dict[ir.Value, Layout],
        liked: dict[ir.Operation, Layout],
    ) -> None:
        self.placing = placing
        self.places = places
        self.liked = liked
        self.layouts = layouts
        self.made: dict[tuple[ir.Value, Layout], ir.Value] = {}
        self.open: list[ir.OpView] = []

    def run(self, function: ir.OpView) -> None:
        [block] = function.regions[0].blocks
        self._rewrite(block)
        for op in reversed(self.open):
            if not any(True for result in op.results for _ in result.uses):
                op.operation.erase()

    def _rewrite(self, block: ir.Block) -> None:
        for op in list(block.operations):
            if _rule(op).control:
                self._rewrite_control(op)
            elif op.operation in self.liked:
                self.open.append(op)
            elif op.operation in self.places:
                self._rewrite_fixed(op, self.places[op.operation])

    def _rewrite_control(self, op: ir.OpView) -> None:
        groups = [g for g in _rule(op).carried(op) if is_tile(g.values[0])]
        for group in groups:
            layout = self.layouts[group.values[0]]
            for value in group.values:
                value.set_type(with_layout(value.type, layout))
            self._ask_for(group, layout, lambda user: user == op)
        for region in op.regions:
            for inner in region.blocks:
                self._rewrite(inner)
        for group in groups:
            self._ask_for(group, self.layouts[group.values[0]], lambda user: user != op)

    def _ask_for(
        self, group: Carried, layout: Layout, is_asked: Callable[[ir.OpView], bool]
    ) -> None:
        for user, number in group.operands:
            if is_asked(user):
                user.operands[number] = self._value_in(user.operands[number], layout)

    def _rewrite_fixed(self, op: ir.OpView, places: Places) -> None:
        if _rule(op).is_wait:
            layout = self.layouts.get(op.operands[0])
            places = places if layout is None else Places((layout,), (layout,))
        self._ask(op, places.operands)
        for result, layout in zip(op.results, places.results, strict=True):
            if is_tile(result):
                assert layout is not None, "every tile has a layout"
                self.layouts[result] = layout
                give_layout(result, layout)

    def _ask(self, op: ir.OpView, wanted: tuple[Layout | None, ...]) -> None:
        for number, (value, layout) in enumerate(zip(list(op.operands), wanted, strict=True)):
            if is_tile(value):
                chosen = layout or self.placing.default(shape_of(value))
                op.operands[number] = self._value_in(value, chosen)

    def _value_in(self, value: ir.Value, layout: Layout) -> ir.Value:
        """The value in this layout."""
        has = self.layouts.get(value)
        if has == layout:
            return value
        key = (value, layout)
        if key not in self.made:
            is_fixed = has is not None
            self.made[key] = self._convert(value, layout) if is_fixed else self._make(value, layout)
        return self.made[key]

    def _make(self, value: ir.Value, layout: Layout) -> ir.Value:
        """An open value, made in this layout; if its operation cannot, converted to it."""
        op = value.owner.opview
        operands = _rule(op).serve(op, layout, self.placing)
        if operands is None:
            best = self.liked[op.operation]
            assert best != layout, f"{op.name} cannot be made in the layout that it asked for"
            return self._convert(self._value_in(value, best), layout)
        copy = op.operation.clone(ip=ir.InsertionPoint(op)).opview
        self._ask(copy, operands)
        for result, made in zip(op.results, copy.results, strict=True):
            give_layout(made, layout)
            self.made[result, layout] = made
        return self.made[value, layout]

    def _convert(self, value: ir.Value, layout: Layout) -> ir.Value:
        with _after(value), value.location:
            done = ir.Operation.create(
                "tile.layout", results=[with_layout(value.type, layout)], operands=[value]
            )
        return done.results[0]


def _rule(op: ir.OpView) -> OpRules:
    return rules()[op.operation.name]


def _after(value: ir.Value) -> ir.InsertionPoint:
    """Right after the value came to be: behind its operation, or at the start of its block."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)
