"""Integer divisions as they are written, read back from what the front end made of them.

It makes divisors harmless before it divides, and chooses what a division by 0 or -1 gives behind it
(`ops/division.py`). From these guards follow the divisor as it is written, what checked builds ask
of it, and what launchers divide by.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ops.build import compared, known_integer, make
from tilec.ops.rules import Claim, Data, DataOf, OpRules, conjunction


class Guarded(OpRules):
    """A division behind a `_Divisor`: what it replaces is what checked builds trap on."""

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        a, safe = op.operands
        divisor, guarded = _guards(safe)
        data = _data_of_both(a, divisor, data_of)
        found = []
        if 0 in guarded:
            nonzero = compared("ne", divisor, _same_everywhere(divisor, 0))
            found.append(("the divisor is not 0", nonzero))
        if -1 in guarded:
            least = -(1 << (_width(a) - 1))
            fits = [
                compared("ne", divisor, _same_everywhere(divisor, -1)),
                compared("ne", a, _same_everywhere(a, least)),
            ]
            found.append(("the quotient fits its type", _either(*fits)))
        if data is Data.UNKNOWN:
            return []
        if isinstance(data, ir.Value):
            padding = make("arith.xori", data.type, data, _same_everywhere(data, 1))
            found = [(text, _either(holds, padding)) for text, holds in found]
        return [Claim(holds, text) for text, holds in found]


def guarded_division(choice: ir.OpView) -> tuple[ir.Operation, ir.Value] | None:
    """The division whose result this `select` guards, and its divisor as it is written.

    One condition chooses both the harmless divisor and the result, as no program's own `select`
    does. None for any other `select`.
    """
    condition, _, otherwise = choice.operands
    division = otherwise.owner
    while not isinstance(division, ir.Block) and division.name == "arith.select":
        division = division.operands[2].owner
    if isinstance(division, ir.Block) or len(division.operands) != 2:
        return None
    safe = division.operands[1]
    divisor, guarded = _guards(safe)
    inner = safe
    while guarded and inner != divisor:
        if inner.owner.operands[0] == condition:
            return division, divisor
        inner = inner.owner.operands[2]
    return None


def _guards(safe: ir.Value) -> tuple[ir.Value, set[int]]:
    """The divisor as it is written, and which of 0 and -1 are replaced: what `_Divisor` made."""
    condition = _condition_of_guard(safe)
    if condition is None:
        return safe, set()
    divisor = condition.operands[0]
    guarded, inner = set(), safe
    while inner != divisor:
        condition = _condition_of_guard(inner)
        if condition is None or condition.operands[0] != divisor:
            return safe, set()  # a `select` of the program's own
        number = known_integer(condition.operands[1])
        assert number is not None, "a guard compares with a constant"
        guarded.add(number)
        inner = inner.owner.operands[2]
    return divisor, guarded


def _condition_of_guard(value: ir.Value) -> ir.Operation | None:
    """The comparison with 0 or -1 of a `select` that replaces the value by 1."""
    choice = value.owner
    if isinstance(choice, ir.Block) or choice.name != "arith.select":
        return None
    condition = choice.operands[0].owner
    if known_integer(choice.operands[1]) != 1 or isinstance(condition, ir.Block):
        return None
    if condition.name != "arith.cmpi" or known_integer(condition.operands[1]) not in (0, -1):
        return None
    return condition


def _data_of_both(a: ir.Value, b: ir.Value, data_of: DataOf) -> ir.Value | Data:
    """Which elements of a quotient come from data alone."""
    found = [data_of(value) for value in (a, b) if is_tile(value)]
    masks = [mask for mask in found if not isinstance(mask, Data)]
    if Data.UNKNOWN in found:
        return Data.UNKNOWN
    return conjunction(masks) if masks else Data.ALL


def _either(left: ir.Value, right: ir.Value) -> ir.Value:
    return make("arith.ori", left.type, left, right)


def _same_everywhere(value: ir.Value, number: int) -> ir.Value:
    """A scalar or tile like the value, full of a number."""
    kind = value.type
    element = ir.RankedTensorType(kind).element_type if is_tile(value) else kind
    attribute = ir.IntegerAttr.get(element, -1 if str(element) == "i1" else number)
    if is_tile(value):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return make("arith.constant", kind, value=attribute)


def _width(value: ir.Value) -> int:
    element = ir.RankedTensorType(value.type).element_type if is_tile(value) else value.type
    return 64 if isinstance(element, ir.IndexType) else int(ir.IntegerType(element).width)
