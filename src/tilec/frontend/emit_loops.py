"""Emission of `for`: every range of the language as an `scf.for` that counts in `index`.

`a..b` and `a..=b` with a constant step keep their own bounds, which is what proofs read best.
Anything else counts from zero to the number of turns, and the counter is computed from that. No
bound overflows, not at the end of its type either.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import scf

from tilec.frontend import typed
from tilec.frontend.element_constants import constants_of
from tilec.frontend.emitter import Emitter, emits_statement
from tilec.frontend.patterns import bound_values
from tilec.ops.build import constant, integer, make
from tilec.types import U64, USIZE, Element

# Steps up to here cannot carry a counter past the end of 64 bits, given bounds below 2^62.
_LARGEST_PLAIN_STEP = 1 << 32


@emits_statement(typed.For)
def for_(emitter: Emitter, node: typed.For) -> None:
    element = emitter.inference.known(node.element)
    start = _as_index(emitter.scalar(node.start), element)
    end = _as_index(emitter.scalar(node.end), element)
    count = _plain(emitter, node, start, end, element) or _counted(
        emitter, node, start, end, element
    )
    carried = emitter.carried(node.body)
    loop = scf.ForOp(count.lower, count.upper, count.step, emitter.flat(carried))
    with emitter.branch(loop.body) as inner:
        inner.rebind(carried, list(loop.inner_iter_args))
        counter = _from_index(count.counter(loop.induction_variable), element)
        inner.values.update(bound_values(node.pattern, counter))
        inner.expression(node.body)
        scf.yield_(inner.flat(carried))
    emitter.rebind(carried, list(loop.results))


@dataclass(frozen=True)
class _Count:
    """What an `scf.for` counts, and the counter of the language: first + turn · stride."""

    lower: ir.Value
    upper: ir.Value
    step: ir.Value
    first: ir.Value | None = None
    stride: ir.Value | None = None
    range: _Range | None = None

    def counter(self, turn: ir.Value) -> ir.Value:
        if self.stride is not None:
            turn = _arith("muli", turn, self.stride)
        counter = turn if self.first is None else _arith("addi", turn, self.first)
        return counter if self.range is None else self.range.marked(counter)


@dataclass(frozen=True)
class _Range:
    """Where a counter stays, compared with a sign: said where its arithmetic does not tell."""

    start: ir.Value
    end: ir.Value
    inclusive: bool

    def marked(self, counter: ir.Value) -> ir.Value:
        inclusive = ir.BoolAttr.get(self.inclusive)
        return make(
            "tile.in_range", counter.type, counter, self.start, self.end, inclusive=inclusive
        )


def _plain(
    emitter: Emitter, node: typed.For, start: ir.Value, end: ir.Value, element: Element
) -> _Count | None:
    """A range with its own bounds, or None where these could overflow."""
    step = _plain_step(node)
    if step is None or element == U64:
        return None
    if not node.inclusive:
        return _Count(start, end, _number(step))
    limits = constants_of(element)
    last = node.end.value if isinstance(node.end, typed.Literal) else None
    if element.bits < 64 or (last is not None and last < limits["MAX"]):
        return _Count(start, _arith("addi", end, _number(1)), _number(step))
    first = node.start.value if isinstance(node.start, typed.Literal) else None
    if first is not None and first > limits["MIN"]:
        # Counts from start - 1 up to the end itself: end + 1 might not be a number.
        lower = _arith("subi", start, _number(1))
        return _Count(lower, end, _number(step), first=_number(1))
    return None


def _plain_step(node: typed.For) -> int | None:
    match node.adapters:
        case ():
            return 1
        case (("step_by", typed.Literal(value=value)),):
            return int(value) if value <= _LARGEST_PLAIN_STEP else None
    return None


def _counted(
    emitter: Emitter, node: typed.For, start: ir.Value, end: ir.Value, element: Element
) -> _Count:
    """Any range, by its number of turns."""
    turns = _turns(start, end, node.inclusive, signed=element != U64)
    first, stride = start, _number(1)
    for name, argument in node.adapters:
        if name == "rev":
            last = _arith("muli", _arith("subi", turns, _number(1)), stride)
            first = _arith("addi", first, last)
            stride = _arith("subi", _number(0), stride)
            continue
        assert argument is not None, "`step_by` has a step"
        step = _arith("maxsi", emitter.scalar(argument), _number(1))
        full = _arith("divsi", _arith("subi", turns, _number(1)), step)
        some = _compare(turns, _number(0), "sgt")
        turns = _select(some, _arith("addi", full, _number(1)), _number(0))
        stride = _arith("muli", stride, step)
    # Counters are numbers of the range, and so is all that a product and a sum come by: with more
    # than one turn, a step is less than the range is long.
    within = None if element == U64 else _Range(start, end, node.inclusive)
    return _Count(_number(0), turns, _number(1), first, stride, within)


def _turns(start: ir.Value, end: ir.Value, inclusive: bool, *, signed: bool) -> ir.Value:
    """How many numbers are in a range; 2^63 turns and more do not end, and count as none."""
    less = ("sle" if inclusive else "slt") if signed else ("ule" if inclusive else "ult")
    some = _compare(start, end, less)
    difference = _arith("subi", end, start)
    if inclusive:
        difference = _arith("addi", difference, _number(1))
    return _select(some, difference, _number(0))


_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _compare(left: ir.Value, right: ir.Value, predicate: str) -> ir.Value:
    number = integer(_PREDICATES.index(predicate))
    return make("arith.cmpi", ir.IntegerType.get_signless(1), left, right, predicate=number)


def _select(condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
    return make("arith.select", yes.type, condition, yes, no)


def _arith(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return make(f"arith.{name}", left.type, left, right)


def _number(value: int) -> ir.Value:
    return constant(USIZE, value)


def _as_index(value: ir.Value, element: Element) -> ir.Value:
    if element == USIZE:
        return value
    name = "arith.index_cast" if element.is_signed else "arith.index_castui"
    return make(name, ir.IndexType.get(), value)


def _from_index(value: ir.Value, element: Element) -> ir.Value:
    """The counter in its own type, which it fits."""
    if element == USIZE:
        return value
    return make("arith.index_cast", ir.IntegerType.get_signless(element.bits), value)
