"""What is wrong with a function that has roles."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir


@dataclass(frozen=True)
class Problem:
    """An operation that is wrong where it stands, and the one that makes it so, if there is one."""

    what: str
    op: ir.OpView
    cause: ir.OpView | None = None

    def __str__(self) -> str:
        because = "" if self.cause is None else f", because of {_shown(self.cause)}"
        return f"{self.what}: {_shown(self.op)}{because}"


def _shown(op: ir.OpView) -> str:
    """The operation without what is inside of it."""
    return f"{str(op).splitlines()[0]} at {op.location}"
