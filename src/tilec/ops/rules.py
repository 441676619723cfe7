"""What the compiler asks of each operation of the IR, ours and MLIR's.

A pass never names an operation: it asks `rules()[op.name]`. A question that only some can answer
has a default that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

from mlir import ir

from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.layout.costs import ARITHMETIC
from tilec.layout.nodes import Places as Places
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.build import make
from tilec.ops.lowering import Lowered, Lowering, NoGpuCodeError, TensorMap, lower_elementwise
from tilec.ops.pending import element_by_element, has_one_layout

if TYPE_CHECKING:
    from tilec.ops.linear import Linear

# A tile or a scalar is a NumPy array (`ops/formats.py`: of rank 0 for a scalar), a view a `View`.
Datum = Any


class Machine(Protocol):
    """The CPU execution of one program, as an operation sees it (`tilec.interpret`)."""

    program: tuple[int, ...]  # this program's index in the grid
    grid: tuple[int, ...]

    def run(self, block: ir.Block, arguments: Sequence[Datum]) -> list[Datum]:
        """Execute a block; gives what its terminator hands over."""

    def call(self, function: str, arguments: Sequence[Datum]) -> list[Datum]:
        """Execute a function of the module; gives its results."""

    def fail(self, op: ir.OpView, message: str) -> NoReturn:
        """End the execution: what the program claims at this operation does not hold."""


class Facts(Protocol):
    """What is known of integers of the IR (`tilec.transforms.find_access_facts`)."""

    def divisor(self, value: ir.Value) -> int:
        """A number that the value is a multiple of; 0 if it is zero."""

    def extent(self, view: ir.Value, axis: int) -> ir.Value | int | None:
        """As `OpRules.extent`, of the operation that makes the view."""

    def extent_divisor(self, view: ir.Value, axis: int) -> int:
        """What the extent of a view is a multiple of."""

    def start_divisor(self, view: ir.Value, axis: int) -> int:
        """What the first element of a view, counted in its tensor, is a multiple of."""

    def bits(self, value: ir.Value) -> int | None:
        """A number b such that 0 <= value < 2^b; None if it may be below zero, or none is known."""


@dataclass(frozen=True)
class Placing:
    """What decides layouts beside the operations: the block of threads, and how aligned memory is.

    Units:    `vector_bytes`: what every pointer and outer stride is a multiple of
    """

    warps: int
    vector_bytes: int

    def default(self, shape: tuple[int, ...]) -> Layout:
        """The layout of a tile that nothing asks anything of: rows over neighbouring lanes."""
        from tilec.layout import blocked

        return blocked(shape, self.warps, tuple(reversed(range(len(shape)))))


@dataclass(frozen=True)
class Carried:
    """Values of a control operation that are one variable: all of one type, so of one layout."""

    operands: tuple[tuple[ir.OpView, int], ...]  # (operation, operand number)
    values: tuple[ir.Value, ...]  # block arguments and results


@dataclass(frozen=True)
class AccessShape:
    """An access to global memory: a tile of `shape` at `indices` of a view, counted in `unit`s."""

    tile: ir.Value  # what is loaded or stored
    view: ir.Value
    indices: tuple[ir.Value, ...]
    shape: tuple[int, ...]
    unit: str


@dataclass(frozen=True)
class IndexedShape:
    """An access to global memory at elements that values of indices choose.

    Along each axis of the view, the access lies as one piece from `starts[axis]` on, or an index
    chooses for each element: `chosen[axis]`, a tile, or a scalar that is the same for all. Tiles
    are of one shape, which stretches to `shape`.
    """

    tile: ir.Value  # what is loaded, stored, or was there
    view: ir.Value
    starts: tuple[ir.Value | None, ...]
    chosen: tuple[ir.Value | None, ...]
    shape: tuple[int, ...]

    @property
    def lying(self) -> tuple[int, ...]:
        """The axes along which it lies as one piece."""
        return tuple(axis for axis, start in enumerate(self.starts) if start is not None)


# Divisors that follow from a value's being a number.
DivisorsWhere = Callable[[ir.Value, int], Sequence[tuple[ir.Value, int]]]

# A value (index) or number, and what it is to be divided by.
Divided = tuple["ir.Value | int", int]

# What launchers evaluate, as `tilec.artifact.expression` has it: numbers, names, and tuples of an
# operation and its operands.
HostExpression: TypeAlias = "bool | int | float | str | tuple[HostExpression, ...]"


@dataclass(frozen=True)
class Precondition:
    """What every launcher checks: a truth value, and its text in the source."""

    condition: ir.Value
    text: str


class Data(Enum):
    """Which elements of a tile are data, and no padding, where no tile of bool says it."""

    ALL = "all"
    UNKNOWN = "unknown"


# An element is *padding* where it, or something that it was computed from, was outside of a tensor.
DataOf = Callable[[ir.Value], "ir.Value | Data"]


@dataclass(frozen=True)
class Claim:
    """What checked builds trap on: a truth value, or a tile of them, that is to hold throughout.

    `text` says what holds; or, `is_written`, it is what the operation itself says.
    """

    condition: ir.Value
    text: str
    is_written: bool = False


# What `find_access_facts` writes on an operation whose `OpRules.granularity` is above 1.
GRANULARITY = "granularity"


class OpRules:
    """Answers for one operation; `name` is its full MLIR name (`tile.load`, `arith.addf`)."""

    name: str

    # Whether the result can be made in any layout that is asked for, at the price of making it
    # again.
    flexible: bool = False
    # Whether it ends a block, handing its operands to the operation around it.
    terminator: bool = False
    # Whether it is control flow: its regions are part of the program's flow (a combiner is not).
    control: bool = False
    # Whether its regions may run several times.
    loop: bool = False
    # For a truth value of two: what its first operand is where the second does not matter.
    decided_by: bool | None = None
    # Whether its results are the same wherever and whenever it is executed.
    constant: bool = False
    # Whether one instruction gives it but for a few units in the last place (`fast_math`).
    is_approximable: bool = False

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        """The results on the CPU: the meaning of the operation."""
        raise NotImplementedError(f"{self.name} has no meaning yet")

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        """The results for all programs at once: whatever `interpret` gives is among them."""
        return reasoning.opaque(op)

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        """The layouts of operands and results, given those that operands have or would like best.

        The default is that of element-wise work: one layout for all, any if none is known.
        """
        chosen = next((layout for layout in known if layout is not None), None)
        return Places((chosen,) * len(known), (chosen,) * len(op.results))

    def place_results(
        self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing
    ) -> tuple[Layout | None, ...]:
        """Of `place`, the layouts of results: for those who ask from one tile to the next."""
        return self.place(op, known, placing).results

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        """The operand layouts from which all results come out as `wanted`; None if they cannot.

        Asked only where `place` left the result open, or the operation is `flexible`.
        """
        return (wanted,) * len(op.operands)

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        """What one execution costs where tiles have these layouts (`tilec.layout.costs`).

        The default is that of element-wise work: an instruction for each register.
        """
        layouts = places.results or places.operands
        return ARITHMETIC * sum(layout.registers for layout in layouts if layout is not None)

    def warps(self, op: ir.OpView) -> int | None:
        """How many warps it is best done by, before layouts; None if that does not matter to it."""
        return None

    def shared_at_once(self, op: ir.OpView) -> Sequence[ir.Value]:
        """The tiles that may have to be in shared memory together, at most.

        The default is that of what has a combiner: all of them.
        """
        is_combining = len(op.regions) > 0 and not self.control
        return (*op.operands, *op.results) if is_combining else ()

    def carried(self, op: ir.OpView) -> tuple[Carried, ...]:
        """For control flow: which values are one variable."""
        return ()

    def grid(self, op: ir.OpView, operands: Sequence[Lowered]) -> Sequence[ir.Value] | None:
        """The extents of the grid (index), if this operation determines it."""
        return None

    def host_grid(self, op: ir.OpView, facts: Facts) -> Sequence[Divided] | None:
        """The same for launchers: each extent is a value divided by a number and rounded up."""
        return None

    def precondition(self, op: ir.OpView) -> Precondition | None:
        """What must hold before a launch, if this operation says so."""
        return None

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        """Result `number` as launchers compute it (`tilec.ops.host_expression`); None: they cannot.

        `host_of` gives that of operands.
        """
        return None

    def argument_host(self, op: ir.OpView, argument: ir.Value) -> HostExpression | None:
        """The same of an argument of one of its blocks."""
        return None

    def divisor(self, op: ir.OpView, facts: Facts) -> int:
        """What the one result, an integer, is always a multiple of (0: it is 0)."""
        return 1

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        """As `Facts.bits`, of the one result, an integer."""
        return None

    def counts(self, op: ir.OpView) -> bool:
        """Whether the one result, a tile, is 0, 1, 2, … along an axis, and the same elsewhere."""
        return False

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        """The one result, integers, as a linear function of scalars (`tilec.ops.linear`), given
        those that operands are; None if it is none. Results that wrap are as if they did not."""
        return None

    def true_where(
        self, op: ir.OpView, operands: Sequence[Linear | None]
    ) -> Sequence[Linear] | None:
        """Linear functions that are all 0 or more only where the one result, truth values, is true
        in each element; None: nothing is known. `operands` are as for `linear`."""
        return None

    def granularity(self, op: ir.OpView, facts: Facts) -> int:
        """Of how many neighbours along an axis each has the same result, a power of two: those
        from a multiple of it on."""
        return 1

    def argument_divisor(self, op: ir.OpView, argument: ir.Value, facts: Facts) -> int:
        """As `divisor`, of an argument of one of its blocks."""
        return 1

    def argument_bits(self, op: ir.OpView, argument: ir.Value, facts: Facts) -> int | None:
        """As `Facts.bits`, of an argument of one of its blocks."""
        return None

    def divisors_where(
        self, op: ir.OpView, number: int, divisors_where: DivisorsWhere
    ) -> Sequence[tuple[ir.Value, int]]:
        """Divisors of other values that follow where the one result is `number`: `n % 8 == 0`.

        `divisors_where` asks the same of another value.
        """
        return ()

    def extent(self, op: ir.OpView, axis: int, facts: Facts) -> ir.Value | int | None:
        """The extent of the view that it makes: a number, or the value (index); None if clipped."""
        return None

    def extent_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        """What the extent of the view that it makes is a multiple of."""
        return 1

    def start_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        """What the first element of the view it makes, counted in the tensor, is a multiple of."""
        return 1

    def viewed_axis(self, op: ir.OpView, axis: int) -> int:
        """The axis of the view it takes that this axis of the view it makes is."""
        return axis

    # Whether it gives its operand once that is there: in flight a tile cannot be converted, so
    # that a conversion stands behind it.
    is_wait: bool = False
    # Whether its result lies in shared memory, to be read in any layout where it is used.
    lies_in_shared: bool = False

    def reads_shared(self, use: ir.OpOperand) -> bool:
        """Whether it reads this operand where it needs it, if that lies in shared memory."""
        return False

    # Whether it may end the launch, by a call of what the driver has.
    ends_launch: bool = False
    # Whether its results depend on which program it is executed in.
    of_program: bool = False
    # Whether its tile may leave through shared memory, as `ops/send.py` has it.
    is_sendable: bool = False

    def leaves_in_pieces(self, op: ir.OpView) -> bool:
        """Whether it takes a tile so, registers of one box at a time."""
        return False

    def program_axes(self, op: ir.OpView, of_operands: frozenset[int]) -> frozenset[int] | None:
        """Along which axes of the grid neighbours may get other results; None: along any.

        `of_operands`: along which they may have other operands.
        """
        return None if self.of_program or self.control else of_operands

    # Whether the view that it makes is all of the view it takes, its axes in another order.
    is_view_of_all: bool = False

    def moved_axes(self, op: ir.OpView) -> tuple[int | None, ...] | None:
        """For each axis of the result, which axis of the operand it is (None: one of extent 1).

        None where it does more to the elements than to move axes.
        """
        return None

    def rounded(self, op: ir.OpView) -> ir.Type | None:
        """The element type that it rounds its operand to, if copies by hardware round likewise."""
        return None

    def multiplied(self, op: ir.OpView) -> tuple[str, str, str] | None:
        """For a matrix product: the element types of both factors and the sums, by the language."""
        return None

    def tensor_maps(self, op: ir.OpView) -> Sequence[TensorMap]:
        """What the launcher must describe to the hardware for it."""
        return ()

    def access(self, op: ir.OpView) -> AccessShape | None:
        """How it accesses global memory, if it does."""
        return None

    def indexed(self, op: ir.OpView) -> IndexedShape | None:
        """How it accesses global memory where values of indices say, if it does."""
        return None

    def orders_all(self, op: ir.OpView) -> bool:
        """Whether it acquires and releases: no access moves across it, to whatever tensor."""
        return False

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        """What is to hold where it executes, in checked builds; conditions are emitted before it.

        Elements that are padding (`data_of`) are asked nothing.
        """
        return ()

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        """Which elements of its results are data; emitted after it, asked where not all are.

        The default is that of element-wise work: those for which all operands have data.
        """
        masks = []
        for operand in filter(is_tile, op.operands):
            found = data_of(operand)
            if found is Data.ALL:
                continue
            if found is Data.UNKNOWN or shape_of(operand) != shape_of(op.results[0]):
                return Data.UNKNOWN
            masks.append(found)
        return conjunction(masks) if masks else Data.UNKNOWN

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        """The results on a GPU thread, emitted at the current insertion point and location."""
        raise NoGpuCodeError(op, f"`{self.name}` has no code for the GPU yet")

    def may_wait(self, op: ir.OpView) -> bool:
        """Whether its one result may be emitted where it is needed, a few registers at a time."""
        return False

    def pending(self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> Lowered:
        """That result, pending; or what it is, if it cannot wait after all."""
        return element_by_element(self, op, operands, lowering)


class ElementwiseRules(OpRules):
    """Element by element: tiles have one layout, and threads do the operation on fragments."""

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return lower_elementwise(op, operands, lowering)

    def may_wait(self, op: ir.OpView) -> bool:
        return has_one_layout(op)


def conjunction(masks: Sequence[ir.Value]) -> ir.Value:
    """Where all of these tiles of bool, one at least, are true."""
    return reduce(lambda left, right: make("arith.andi", left.type, left, right), masks)


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The extents of a tile."""
    return tuple(ir.RankedTensorType(value.type).shape)
