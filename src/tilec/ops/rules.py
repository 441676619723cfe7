"""What the compiler asks of each operation of the IR, ours and MLIR's.

A pass never names an operation: it asks `rules()[op.name]`. A question that only some can answer
has a default that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from mlir import ir

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


class OpRules:
    """Answers for one operation; `name` is its full MLIR name (`tile.load`, `arith.addf`)."""

    name: str

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        """The results on the CPU: the meaning of the operation."""
        raise NotImplementedError(f"{self.name} has no meaning yet")
