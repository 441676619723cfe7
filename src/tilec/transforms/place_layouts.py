"""Give every tile a layout, and convert where two operations want different ones.

Before:   one function, helpers inlined, tiles without encodings
After:    every tensor has an encoding (`tilec.ops.encoding`); `tile.layout` stands where a layout
          changes

Algorithm:
1. Forwards, each operation says what it wants, given the layouts of its operands
   (`OpRules.place`). A result is *fixed*, or *open*: constants, `iota`, broadcasts and loads can be
   made in whatever layout is asked for. What a loop or branch carries is fixed: by what the body
   makes of it, else by its initial value.
2. Every operation with fixed results, or none, asks for its operands. An open value is made at its
   own place in the layout asked for (`OpRules.serve`), once for each layout; a fixed one is
   converted right after it was made, so outside any loop that it does not depend on.
3. Open originals that nobody uses any more are erased.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.layout import Layout
from tilec.ops.encoding import give_layout, with_layout
from tilec.ops.registry import rules
from tilec.ops.rules import Carried, OpRules, Placing, is_tile, shape_of


def place_layouts(function: ir.OpView, placing: Placing) -> None:
    """Rewrites the function in place; needs a current context and location."""
    _Placement(placing).run(function)


@dataclass(frozen=True)
class _State:
    """What is known of one value: its layout, or the one it would like best if it is open."""

    layout: Layout | None
    fixed: bool


class _Placement:
    def __init__(self, placing: Placing) -> None:
        self.placing = placing
        self.states: dict[ir.Value, _State] = {}
        self.made: dict[tuple[ir.Value, Layout], ir.Value] = {}
        self.open: list[ir.OpView] = []

    def run(self, function: ir.OpView) -> None:
        [block] = function.regions[0].blocks
        self._find(block)
        self._rewrite(block)
        for op in reversed(self.open):
            if not any(True for result in op.results for _ in result.uses):
                op.operation.erase()

    # ---- 1. what is wanted ---------------------------------------------------------------------

    def _find(self, block: ir.Block) -> None:
        for op in block.operations:
            rule = _rule(op)
            groups = rule.carried(op)
            if rule.control:
                self._find_carried(op, groups)
                continue
            places = rule.place(op, [self._known(v) for v in op.operands], self.placing)
            for result, layout in zip(op.results, places.results, strict=True):
                if is_tile(result):
                    fixed = layout is not None and not rule.flexible
                    self.states[result] = _State(layout, fixed)

    def _find_carried(self, op: ir.OpView, groups: tuple[Carried, ...]) -> None:
        tiles = [g for g in groups if is_tile(g.values[0])]
        for group in tiles:
            hints = [self._known(user.operands[n]) for user, n in group.operands if user == op]
            hint = next((h for h in hints if h is not None), None)
            self._set(group, _State(hint, fixed=False))
        self._find_regions(op)
        chosen = [self._choice(op, group) for group in tiles]
        for group, layout in zip(tiles, chosen, strict=True):
            self._set(group, _State(layout, fixed=True))
        self._find_regions(op)

    def _find_regions(self, op: ir.OpView) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._find(block)

    def _choice(self, op: ir.OpView, group: Carried) -> Layout:
        """What the body makes of the variable, if it says; else what comes in; else the default."""
        inside = [self._known(user.operands[n]) for user, n in group.operands if user != op]
        outside = [self._known(user.operands[n]) for user, n in group.operands if user == op]
        for layout in (*inside, *outside):
            if layout is not None:
                return layout
        return self.placing.default(shape_of(group.values[0]))

    def _set(self, group: Carried, state: _State) -> None:
        for value in group.values:
            self.states[value] = state

    def _known(self, value: ir.Value) -> Layout | None:
        state = self.states.get(value)
        return state.layout if state else None

    # ---- 2. asking for it ----------------------------------------------------------------------

    def _rewrite(self, block: ir.Block) -> None:
        for op in list(block.operations):
            if _rule(op).control:
                self._rewrite_control(op)
            elif any(not self.states[r].fixed for r in op.results if is_tile(r)):
                self.open.append(op)
            else:
                self._rewrite_fixed(op)

    def _rewrite_control(self, op: ir.OpView) -> None:
        groups = [g for g in _rule(op).carried(op) if is_tile(g.values[0])]
        for group in groups:
            layout = self.states[group.values[0]].layout
            assert layout is not None, "what is carried was fixed in step 1"
            for value in group.values:
                value.set_type(with_layout(value.type, layout))
            for user, number in group.operands:
                if user == op:
                    user.operands[number] = self._value_in(user.operands[number], layout)
        for region in op.regions:
            for inner in region.blocks:
                self._rewrite(inner)
        for group in groups:
            layout = self.states[group.values[0]].layout
            assert layout is not None, "what is carried was fixed in step 1"
            for user, number in group.operands:
                if user != op:
                    user.operands[number] = self._value_in(user.operands[number], layout)

    def _rewrite_fixed(self, op: ir.OpView) -> None:
        if not any(is_tile(v) for v in (*op.operands, *op.results)) or _rule(op).terminator:
            return
        places = _rule(op).place(op, [self._known(v) for v in op.operands], self.placing)
        self._ask(op, places.operands)
        for result, layout in zip(op.results, places.results, strict=True):
            if is_tile(result) and layout is not None:
                give_layout(result, layout)

    def _ask(self, op: ir.OpView, wanted: tuple[Layout | None, ...]) -> None:
        for number, (value, layout) in enumerate(zip(list(op.operands), wanted, strict=True)):
            if is_tile(value):
                chosen = layout or self.placing.default(shape_of(value))
                op.operands[number] = self._value_in(value, chosen)

    def _value_in(self, value: ir.Value, layout: Layout) -> ir.Value:
        """The value in this layout."""
        state = self.states[value]
        if state.fixed and state.layout == layout:
            return value
        key = (value, layout)
        if key not in self.made:
            self.made[key] = (
                self._convert(value, layout) if state.fixed else self._make(value, layout)
            )
        return self.made[key]

    def _make(self, value: ir.Value, layout: Layout) -> ir.Value:
        """An open value, made in this layout; if its operation cannot, converted to it."""
        op = value.owner.opview
        operands = _rule(op).serve(op, layout, self.placing)
        if operands is None:
            best = self.states[value].layout or self.placing.default(shape_of(value))
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
