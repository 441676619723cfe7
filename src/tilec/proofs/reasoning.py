"""A kernel executed abstractly: all programs, sizes and turns of loops at once.

It gives every access as a relation (`access.py`) and what is known of the unknowns in them
(`knowledge.py`). What each operation means is said beside the operation (`OpRules.abstract`).

Numbers are exact: an integer that a type may not hold, or that comes from memory or floats, is an
*opaque* unknown, of which only the range of its type is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from mlir import ir

from tilec.artifact.abi import COUNT_LIMIT, ELEMENT_LIMIT
from tilec.compilation import DEFAULT_PROOF_BUDGET
from tilec.integers.budget import Budget, Phase
from tilec.integers.formula import (
    FORMULAS,
    TRUE,
    Formula,
    at_least,
    both,
    comparisons_in,
    either,
    equal,
    less,
    mapped,
    negated,
    within,
)
from tilec.integers.number import Number, always
from tilec.integers.polynomial import ONE, ZERO, Polynomial, Unknown, number, variable
from tilec.ir.dialect import declarations
from tilec.ops.abstract import Abstract, AbstractView
from tilec.ops.registry import rules
from tilec.proofs.access import Access
from tilec.proofs.arithmetic import INDEX, interval_of
from tilec.proofs.knowledge import Fact
from tilec.proofs.loops import Loops

# A condition of more comparisons has a name.
_LONGEST = 32


@dataclass(frozen=True, eq=False)
class Cut:
    """A tensor that is cut in parts of `block`, by an operation; extents are those of its axes."""

    op: ir.OpView
    extents: tuple[Polynomial, ...]
    block: tuple[int, ...]


@dataclass
class Reasoning(Loops):
    """The abstract execution of one kernel, helpers inlined."""

    budget: Budget = field(default_factory=lambda: Budget(DEFAULT_PROOF_BUDGET))
    function: ir.OpView | None = None
    cuts: list[Cut] = field(default_factory=list)
    dims: dict[str, Unknown] = field(default_factory=dict)
    scalars: dict[str, Unknown] = field(default_factory=dict)
    programs_of: list[Polynomial] = field(default_factory=list)
    ids: dict[int, Unknown] = field(default_factory=dict)
    is_grid_followed: bool = True  # whether facts say which programs run
    _values: dict[ir.Value, Abstract] = field(default_factory=dict)
    _uniform: set[ir.Value] = field(default_factory=set)

    @staticmethod
    def of(
        function: ir.OpView,
        budget: Budget | None = None,
        required: Callable[[Reasoning], Sequence[Formula]] = lambda _: (),
    ) -> Reasoning:
        """Execute a kernel, with what is required of its arguments beside what it says itself.

        What is asked then, and later, is within the budget.
        """
        found = Reasoning(budget=budget or Budget(DEFAULT_PROOF_BUDGET), function=function)
        [entry] = function.regions[0].blocks
        arguments = found._arguments(function)
        found.knowledge.facts += [Fact(f, "requires") for f in required(found) if f != TRUE]
        with found.budget.phase(Phase.EXECUTION):
            found.run(entry, arguments, [], function)
        return found

    def value_of(self, value: ir.Value) -> Abstract:
        """What is known of a value of the kernel."""
        return self._values[value]

    # ---- what comes in ---------------------------------------------------------------------------

    def _arguments(self, function: ir.OpView) -> list[Abstract]:
        slots = [
            ir.DictAttr(ir.DictAttr(attributes)["tile.slot"])
            for attributes in ir.ArrayAttr(function.attributes["arg_attrs"])
        ]
        arguments = function.regions[0].blocks[0].arguments
        self._uniform.update(arguments)
        return [self._argument(*pair) for pair in zip(slots, arguments, strict=True)]

    def _argument(self, slot: ir.DictAttr, argument: ir.Value) -> Abstract:
        name = ir.StringAttr(slot["name"]).value
        match ir.StringAttr(slot["kind"]).value:
            case "pointer":
                own = ir.DictAttr(ir.MemRefType(argument.type).memory_space)["own"]
                return AbstractView(name, ir.StringAttr(own).value, (), (), (), (), ())
            case "extent":
                unknown = self.knowledge.unknown(name, (0, COUNT_LIMIT), uniform=True)
                self.dims[name] = unknown
                return always(variable(unknown))
            case "scalar":
                return self._scalar(name, ir.StringAttr(slot["element"]).value, argument.type)
        return always(variable(self.knowledge.unknown(name, INDEX, uniform=True)))

    def _scalar(self, name: str, element: str, kind: ir.Type) -> Abstract:
        if element == "bool":
            unknown = self.knowledge.unknown(name, (0, 1), uniform=True)
            self.scalars[name] = unknown
            return equal(variable(unknown), 1)
        interval = interval_of(kind)
        if interval is None:
            return None
        if element[0] == "u" and element != "usize":
            size = interval[1] - interval[0] + 1
            unknown = self.knowledge.unknown(name, (0, size - 1), uniform=True)
            self.scalars[name] = unknown
            return self.signed(always(variable(unknown)), kind)
        low = 0 if element == "usize" else interval[0]  # launchers refuse negative ones
        unknown = self.knowledge.unknown(name, (low, interval[1]), uniform=True)
        self.scalars[name] = unknown
        return always(variable(unknown))

    def tensor(self, base: AbstractView, extents: Sequence[Polynomial]) -> AbstractView:
        axes = tuple(range(len(extents)))
        self._limit_products(extents, ELEMENT_LIMIT)
        return AbstractView(
            base.tensor,
            base.own,
            axes,
            tuple(extents),
            (ZERO,) * len(axes),
            ((),) * len(axes),
            ((),) * len(axes),
        )

    def _limit_products(self, extents: Sequence[Polynomial], limit: int) -> None:
        """Launchers refuse what is larger, and so any product of some of these."""
        sized = [extent for extent in extents if not extent.is_constant]
        for count in range(2, len(sized) + 1):
            for some in combinations(sized, count):
                self.knowledge.limits.append(at_least(number(limit), prod(some, start=ONE)))

    # ---- the grid --------------------------------------------------------------------------------

    def program(self, axis: int) -> Polynomial:
        if self.programs_of and axis >= len(self.programs_of):
            return ZERO
        if axis not in self.ids:
            name = f"program_id()[{axis}]"
            self.ids[axis] = self.knowledge.unknown(name, (0, COUNT_LIMIT - 1), uniform=False)
        return variable(self.ids[axis])

    def programs(self, axis: int) -> Polynomial:
        return self.programs_of[axis] if axis < len(self.programs_of) else ONE

    def set_grid(self, extents: Sequence[Number]) -> None:
        self.programs_of = [self._grid_extent(extent) for extent in extents]
        self._limit_products(self.programs_of, COUNT_LIMIT)
        for axis, extent in enumerate(self.programs_of):
            runs = self._of_launcher(less(self.program(axis), extent))
            self.is_grid_followed &= runs != TRUE
            self._know(runs, "grid")

    def _grid_extent(self, extent: Number) -> Polynomial:
        """Launchers refuse more programs than the limit, and without any nothing runs."""
        found = self.exact(self.single(extent))
        self._know(self._of_launcher(within(found, 1, COUNT_LIMIT)), "grid")
        return found

    def _of_launcher(self, formula: Formula) -> Formula:
        """A condition as a launcher has it, which computes with `usize` without wrapping.

        Nothing, where what may wrap is in it otherwise than added and multiplied.
        """
        exact = mapped(formula, self.exact)
        meant = self.knowledge.context([exact], (), wide=False, only=True)
        follows = all(self._of_wrapped.keys().isdisjoint(f.unknowns) for f in meant)
        return exact if follows else TRUE

    def is_cut(self, view: AbstractView, block: Sequence[int], op: ir.OpView) -> None:
        extents = tuple(view.extents[axis] for axis in view.axes)
        self.cuts.append(Cut(op, extents, tuple(block)))
        for axis, (extent, size) in enumerate(zip(extents, block, strict=True)):
            self._know(less(self.program(axis).scaled(size), extent), "grid")

    def tiles(self, extent: Polynomial, size: int, op: ir.OpView) -> Polynomial:
        """How many tiles of a size cover an extent."""
        return self.single(self.quotient(always(extent), always(size), "ceiling", op))

    def assume(self, formula: Formula, op: ir.OpView) -> None:
        self._know(self._of_launcher(formula), "requires", op)

    def know_here(self, formula: Formula, op: ir.OpView) -> None:
        if formula != TRUE:
            self._path = (*self._path, Fact(formula, "loop", op))

    def _know(self, formula: Formula, why: str, op: ir.OpView | None = None) -> None:
        if formula != TRUE and not self._only_looking:
            self.knowledge.facts.append(Fact(formula, why, op))

    # ---- execution -------------------------------------------------------------------------------

    def run(
        self,
        block: ir.Block,
        arguments: Sequence[Abstract],
        facts: Sequence[Formula],
        op: ir.OpView,
    ) -> list[Abstract]:
        why = "loop" if rules()[op.operation.name].loop else "if"
        around = self._path
        self._path = (*around, *(Fact(f, why, op) for f in facts if f != TRUE))
        self._values.update(zip(block.arguments, arguments, strict=True))
        results: list[Abstract] = []
        for inner in block.operations:
            results = self._execute(inner)
        self._path = around
        return results

    def _execute(self, op: ir.OpView) -> list[Abstract]:
        rule = rules()[op.operation.name]
        self._note_access(op)
        operands = [self._values.get(value) for value in op.operands]
        results = list(rule.abstract(op, operands, self))
        if not rule.terminator:
            for value, result in zip(op.results, results, strict=True):
                self._values[value] = self._named(result)
                if self._is_pure_of_uniform(op):
                    self._uniform.add(value)
        return results

    def _named(self, value: Abstract) -> Abstract:
        """What is long has a name: what is made of several would double with each of them."""
        if isinstance(value, Number):
            return self.few(value)
        if not isinstance(value, FORMULAS) or comparisons_in(value) <= _LONGEST:
            return value
        uniform = all(u.uniform for u in value.unknowns)
        unknown = self.knowledge.unknown("whether it holds", (0, 1), uniform=uniform)
        holds = equal(variable(unknown), 1)
        self.knowledge.define(
            unknown, either(both(holds, value), both(negated(holds), negated(value)))
        )
        return holds

    def _note_access(self, op: ir.OpView) -> None:
        if self._only_looking:
            return
        found = self._access(op)
        if found is not None:
            self.accesses.append(found)

    def _access(self, op: ir.OpView) -> Access | None:
        declared = declarations().get(op.operation.name)
        if declared is None or not (declared.reads or declared.writes):
            return None
        writes = bool(declared.writes)
        [view] = [v for v in map(self._values.get, op.operands) if isinstance(v, AbstractView)]
        shape = rules()[op.operation.name].access(op)
        if shape is None:
            # Indices choose among the elements of an axis; without axes there is one element.
            return Access(op, view, None if view.extents else (), (), writes, self._path)
        starts, sizes = list(view.starts), [1] * len(view.extents)
        for place, index in enumerate(shape.indices):
            axis, size = view.axes[place], shape.shape[place]
            scale = size if shape.unit == "tile" else 1
            value = self._values[index]
            assert isinstance(value, Number), "an index is a number"
            starts[axis] = view.starts[axis] + self.single(value).scaled(scale)
            sizes[axis] = size
        return Access(op, view, tuple(starts), tuple(sizes), writes, self._path)

    def unwrapped(self, number: Number, ops: Sequence[ir.OpView]) -> Polynomial:
        found = self.single(number)
        wrapping = {u: v for u, v in self._computed.items() if u.about in ops}
        while not wrapping.keys().isdisjoint(found.unknowns):
            found = found.replaced(wrapping)
        return found

    # ---- what is not followed --------------------------------------------------------------------

    def unknown(self, name: str, low: int, high: int, *, uniform: bool) -> Polynomial:
        return variable(self.knowledge.unknown(name, (low, high), uniform=uniform))

    def opaque(self, op: ir.OpView) -> list[Abstract]:
        return [self._opaque_value(result.type, op) for result in op.results]

    def _opaque_value(self, kind: ir.Type, op: ir.OpView) -> Abstract:
        if str(kind) == "i1":
            return equal(variable(self._opaque((0, 1), op)), 1)
        interval = interval_of(kind)
        return None if interval is None else always(variable(self._opaque(interval, op)))

    def _opaque(
        self, interval: tuple[int, int] | None, op: ir.OpView, name: str | None = None
    ) -> Unknown:
        assert interval is not None, "an integer has a range"
        uniform = self._is_pure_of_uniform(op)
        loop = "changes a variable in a way that is not followed"
        otherwise = loop if rules()[op.operation.name].loop else "is beyond the analysis"
        return self.knowledge.unknown(
            name or otherwise, interval, uniform=uniform, opaque=True, about=op
        )

    def _is_pure_of_uniform(self, op: ir.OpView) -> bool:
        """Whether an operation gives the same in every program."""
        if len(op.regions) or not all(map(self._is_uniform, op.operands)):
            return False
        views = (self._values.get(v) for v in op.operands)
        return all(v.own == "shared" for v in views if isinstance(v, AbstractView))

    def _is_uniform(self, value: ir.Value) -> bool:
        known = self._values.get(value)
        if isinstance(known, (Number, *FORMULAS)):
            return all(u.uniform for u in known.unknowns)
        return isinstance(known, AbstractView) or value in self._uniform

    # ---- control flow ----------------------------------------------------------------------------

    def joined(self, condition: Formula, yes: Abstract, no: Abstract, result: ir.Value) -> Abstract:
        if isinstance(yes, Number) and isinstance(no, Number):
            return self.choose(condition, yes, no)
        if isinstance(yes, FORMULAS) and isinstance(no, FORMULAS):
            return either(both(condition, yes), both(negated(condition), no))
        return None
