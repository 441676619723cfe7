"""One launch of a pipeline at some shapes: its kernel's instance, and what fills its arguments.

The *bases* of a pipeline are the addresses of its tensors, in order, and last that of its
workspace. A pointer that a launch passes lies at a fixed distance from one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tilec.artifact.expression import Expression, Value, names_in
from tilec.artifact.pipeline import Pipeline, PipelineLaunch
from tilec.runtime.array import Array
from tilec.runtime.contract import computed
from tilec.runtime.entry import Cells, Entry
from tilec.runtime.errors import ContractError, TilecError
from tilec.runtime.fitted import Argument, LaunchPlan, ScalarSlot
from tilec.runtime.plan import Planner


class Place(NamedTuple):
    """A tensor that launches are given: its base, how far from it in bytes, and its shape."""

    base: int
    offset: int
    array: Array


class Passed(NamedTuple):
    """The cell that gets what the caller gives for scalar number `scalar` of the pipeline."""

    slot: int
    scalar: int


class Step:
    """A launch whose contract holds for these shapes, but for what addresses decide.

    `has_programs`: something is launched. `scalars` are passed as the caller gives them, `computed`
    follow from them.

    Raises:   ContractError, which names pipeline, line, kernel and argument
    """

    __slots__ = (
        "_constants",
        "_pipeline",
        "_pointers",
        "_tensors",
        "arguments",
        "computed",
        "fitted",
        "launch",
        "scalars",
    )

    def __init__(
        self,
        pipeline: Pipeline,
        launch: PipelineLaunch,
        planner: Planner,
        places: Mapping[str, Place],
        values: Mapping[str, Value],
    ) -> None:
        self._pipeline = pipeline
        self.launch = launch
        tensors = [places[a.tensor] for a in launch.arguments if a.tensor is not None]
        self._tensors = [(place.base, place.offset) for place in tensors]
        try:
            self.arguments: list[Argument] = [
                _turned(places[a.tensor].array, a.axes)
                if a.tensor is not None
                else _value(a.value, values)
                for a in launch.arguments
            ]
            self.fitted = planner.fitted(planner.key_of(self.arguments), self.arguments)
        except ContractError as error:
            raise self.refusal(error) from None
        try:
            self._sort_scalars(values)
        except ContractError as error:
            raise self.refusal(self.fitted.refusal(error)) from None
        self._pointers = [(slot, *self._tensors[number]) for slot, number in self.fitted.pointers]

    @property
    def has_programs(self) -> bool:
        return all(self.fitted.extents)

    def entry_at(self, bases: Sequence[int]) -> Entry:
        """The variant for tensors at these addresses.

        Raises:   ContractError
        """
        try:
            return self.fitted.entry_at(self._addresses(bases))
        except ContractError as error:
            raise self.refusal(error) from None

    def plan(self, bases: Sequence[int]) -> LaunchPlan:
        """What is launched where the tensors have these addresses.

        Raises:   ContractError
        """
        addresses = iter(self._addresses(bases))
        arguments = [
            one._replace(pointer=next(addresses)) if isinstance(one, Array) else one
            for one in self.arguments
        ]
        try:
            return self.fitted.plan(arguments)
        except ContractError as error:
            raise self.refusal(error) from None

    def cells(self, entry: Entry) -> Cells:
        """Cells with all that follows from shapes."""
        cells = entry.cells()
        for slot, bits in self._constants:
            cells[slot] = bits
        return cells

    def fill_pointers(self, cells: Cells, bases: Sequence[int]) -> None:
        for slot, base, offset in self._pointers:
            cells[slot] = bases[base] + offset

    def fill_scalars(
        self, cells: Cells, bits: Sequence[int], values: Mapping[str, Value] | None
    ) -> None:
        """Fills in the scalars: `bits` of what the caller gives for each, and what follows from it,
        for which `values` are needed.

        Raises:   ContractError if one is out of the range of its parameter
        """
        for slot, number in self.scalars:
            cells[slot] = bits[number]
        if values is None:
            return
        try:
            for scalar, expression in self.computed:
                cells[scalar.slot] = scalar.bits(computed(expression, values))
        except ContractError as error:
            raise self.refusal(self.fitted.refusal(error)) from None

    def refusal(self, error: ContractError) -> ContractError:
        """What went wrong, with pipeline and launch; the error names kernel and argument."""
        return ContractError(f"{self._name}: {error}")

    def failure(self, error: TilecError) -> TilecError:
        """The same of an error of any kind."""
        return type(error)(f"{self._name}: {error}")

    @property
    def _name(self) -> str:
        launch = self.launch
        given = ", ".join(f"{a.parameter} = {a.tensor}" for a in launch.arguments if a.tensor)
        return (
            f"`{self._pipeline.symbol}`: the launch of `{launch.kernel}` "
            f"in {launch.file}:{launch.line} ({given})"
        )

    def _addresses(self, bases: Sequence[int]) -> list[int]:
        return [bases[base] + offset for base, offset in self._tensors]

    def _sort_scalars(self, values: Mapping[str, Value]) -> None:
        """What each scalar of the kernel follows from: nothing, one of the caller's, several."""
        elements = {p.name: p.element for p in self._pipeline.parameters if not p.is_tensor}
        order = list(elements)
        self.scalars: list[Passed] = []
        self.computed: list[tuple[ScalarSlot, Expression]] = []
        self._constants: list[tuple[int, int]] = []
        for scalar in self.fitted.scalars:
            expression = self.launch.arguments[scalar.position].value
            assert expression is not None, "a scalar is given a value"
            if isinstance(expression, str) and elements.get(expression) == scalar.element:
                self.scalars.append(Passed(scalar.slot, order.index(expression)))
                continue
            bits = scalar.bits(computed(expression, values))  # a number of the slot's type, too
            if any(name in order for name in names_in(expression)):
                self.computed.append((scalar, expression))
            else:
                self._constants.append((scalar.slot, bits))


def _turned(array: Array, axes: tuple[int, ...]) -> Array:
    """The array as a launch is given it."""
    if not axes:
        return array
    return array._replace(
        shape=tuple(array.shape[axis] for axis in axes),
        strides=tuple(array.strides[axis] for axis in axes),
    )


def _value(expression: Expression | None, values: Mapping[str, Value]) -> Value:
    assert expression is not None, "what is no tensor has a value"
    return computed(expression, values)
