"""Rules whose meaning is one function of whole arrays: nearly all of arith and math."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.ops.formats import Array, rounded, unsigned, wide
from tilec.ops.rules import Datum, Machine, OpRules


@dataclass(frozen=True)
class Elementwise(OpRules):
    """Element by element, by a function of the operands as they are."""

    name: str
    function: Callable[..., Array]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [self.function(*operands)]


@dataclass(frozen=True)
class Unsigned(OpRules):
    """Element by element, by a function of the operands as unsigned numbers."""

    name: str
    function: Callable[..., Array]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        result = np.asarray(self.function(*map(unsigned, operands)))
        return [result.view(operands[0].dtype)]


@dataclass(frozen=True)
class Rounded(OpRules):
    """Float by float: the function of the numbers in float64, rounded once to the result's type.

    Right to the last bit where `function` is exact or correctly rounded in float64 and the type is
    f32 or narrower; else within the accuracy that the operation states.
    """

    name: str
    function: Callable[..., Array]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [rounded(self.function(*map(wide, operands)), op.results[0].type)]
