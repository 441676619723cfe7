"""Let a checked build trap on what the language defines, but hardly anyone means.

Before:   kernels as the front end emitted them, helpers inlined, no layouts
After:    `tile.trap_unless` stands before each operation that claims something (`OpRules.claims`):
          `assert!`, integer divisions, accesses that a program vouches for or the proofs left open

Algorithm:
1. Find the *padded* tiles: what is loaded may have elements that were outside of the tensor, and
   what is computed from it too.
2. Ask each operation of the program's flow for its claims. Divisions ask which elements of a padded
   tile are data (`OpRules.data`): the rest divides zeros, and nobody looks at it.
3. `b != 0 && a / b > 1` may be one operation without a branch. Where a scalar is used for nothing
   but the right side of such an operation, its claims stand before that, on the condition that the
   left side does not decide.

A right program does not trap: where it is unknown which elements are data (a tile that a loop
carries), nothing is claimed. Combiners of reductions are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.places import span_of
from tilec.ir.types import is_tile
from tilec.ir.walk import functions, operations
from tilec.ops.build import make
from tilec.ops.registry import rules
from tilec.ops.rules import Claim, Data, ElementwiseRules
from tilec.source import SourceFile
from tilec.transforms.effects import blocks_of

_LONGEST = 80  # characters of a source text that a message quotes


def insert_traps(module: ir.Module, sources: Mapping[str, SourceFile] | None = None) -> None:
    """Rewrites the module in place. Messages quote the sources that are given."""
    for function in functions(module):
        data = _DataFinder(function)
        for op in list(_flow(function)):
            place, deciding = _short_circuit(op)
            with op.location, ir.InsertionPoint(place):
                for claim in rules()[op.operation.name].claims(op, data.of):
                    text = _message(claim, op.location, sources or {})
                    ir.Operation.create(
                        "tile.trap_unless",
                        operands=[_unless(deciding, claim.condition)],
                        attributes={"text": ir.StringAttr.get(text)},
                    )


def _flow(op: ir.OpView) -> Iterator[ir.OpView]:
    """The operations of the program's flow: no combiners."""
    for block in blocks_of(op):
        for inner in block.operations:
            yield inner
            if rules()[inner.operation.name].control:
                yield from _flow(inner)


# ---- short circuits ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Deciding:
    """A left side, and what it is where the right side does not matter."""

    left: ir.Value
    number: bool


def _short_circuit(op: ir.OpView) -> tuple[ir.OpView, list[_Deciding]]:
    """Where it is known whether the results matter, and what decides that, from inside out."""
    place, deciding = op, []
    while (user := _only_right_of(place)) is not None:
        number = rules()[user.operation.name].decided_by
        assert number is not None, "it was chosen for that"
        deciding.append(_Deciding(user.operands[0], number))
        place = user
    return place, deciding


def _only_right_of(op: ir.OpView) -> ir.OpView | None:
    """The operation whose right side is all that a scalar's value is for, if there is one."""
    found: ir.OpView | None = None
    waiting = [result for result in op.results if _is_followed(op)]
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.opview
            if not _is_followed(user):
                return None
            is_decided = rules()[user.operation.name].decided_by is not None
            if not is_decided or use.operand_number != 1 or str(user.results[0].type) != "i1":
                waiting += user.results
            elif found is not None and found != user:
                return None
            else:
                found = user
    return found


def _is_followed(op: ir.OpView) -> bool:
    """Whether it is arithmetic on scalars."""
    is_arithmetic = isinstance(rules()[op.operation.name], ElementwiseRules)
    return is_arithmetic and not any(map(is_tile, op.results))


def _unless(deciding: list[_Deciding], condition: ir.Value) -> ir.Value:
    """The condition, or true where a left side decides."""
    for one in deciding:
        true = make("arith.constant", one.left.type, value=ir.BoolAttr.get(True))
        decides = one.left if one.number else make("arith.xori", true.type, one.left, true)
        condition = make("arith.ori", condition.type, condition, decides)
    return condition


# ---- messages ------------------------------------------------------------------------------------


def _message(claim: Claim, location: ir.Location, sources: Mapping[str, SourceFile]) -> str:
    """The claim, after the text of the operation; that alone if it says the claim."""
    span = span_of(location, dict(sources))
    if span is None:
        return claim.text
    quoted = _on_one_line(sources[span.file].text[span.start : span.end])
    return quoted.removesuffix(";") if claim.is_written else f"{quoted}: {claim.text}"


def _on_one_line(text: str) -> str:
    words = " ".join(text.split()).replace("( ", "(").replace(" )", ")")
    return words if len(words) <= _LONGEST else words[:_LONGEST] + "…"


# ---- padding -------------------------------------------------------------------------------------


class _DataFinder:
    """Which elements of a tile are data and no padding."""

    def __init__(self, function: ir.OpView) -> None:
        self.padded = _padded(function)
        self.known: dict[ir.Value, ir.Value | Data] = {}

    def of(self, value: ir.Value) -> ir.Value | Data:
        """A tile of bool, which is emitted right after the value is made, once."""
        if value not in self.padded:
            return Data.ALL
        if isinstance(value.owner, ir.Block):
            return Data.UNKNOWN
        if value not in self.known:
            self.known[value] = self._find(value.owner.opview)
        return self.known[value]

    def _find(self, op: ir.OpView) -> ir.Value | Data:
        rule = rules()[op.operation.name]
        if rule.control:
            return Data.UNKNOWN
        with op.location, ir.InsertionPoint.after(op.operation):
            return rule.data(op, self.of)


def _padded(function: ir.OpView) -> set[ir.Value]:
    """The tiles that may have elements from outside of a tensor."""
    found: set[ir.Value] = set()
    while True:
        before = len(found)
        for op in operations(function):
            found.update(_padded_by(op, found))
        if len(found) == before:
            return found


def _padded_by(op: ir.OpView, padded: set[ir.Value]) -> Iterator[ir.Value]:
    rule = rules()[op.operation.name]
    if rule.control:
        for group in rule.carried(op):
            if any(user.operands[number] in padded for user, number in group.operands):
                yield from filter(is_tile, group.values)
    elif _pads(op) or not padded.isdisjoint(op.operands):
        yield from filter(is_tile, op.results)


def _pads(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    if declared is None or "unchecked" in op.attributes:
        return False
    return bool(declared.reads or declared.updates)
