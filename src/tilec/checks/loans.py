"""The loans of a function, and what its operations do with views.

A loan is what `tile.borrow` gives (for a call) or `tile.sub` (a smaller part). It lives to its last
use, that of what is made of it included. It is mutable if it may be written through: a borrow says
so, and a smaller part that is only read is lent to be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from tilec.checks.flow import Flow, is_end
from tilec.ir.dialect import declarations
from tilec.ir.views import BORROW, CALL, LOANS, MOVE, SUB, Views, is_view


@dataclass(frozen=True, eq=False)
class Loan:
    """One loan; `uses` are in no order, `of` is the view that is lent and those it comes from."""

    op: ir.OpView
    of: frozenset[ir.Value]
    mutable: bool
    uses: tuple[ir.OpView, ...]
    position: int
    last_use: int

    @property
    def result(self) -> ir.Value:
        return self.op.results[0]

    @property
    def lent(self) -> ir.Value:
        return self.op.operands[0]


@dataclass(frozen=True, eq=False)
class Access:
    """An operation that reads, writes, lends or moves a view; `writes` if it may write."""

    op: ir.OpView
    view: ir.Value
    writes: bool

    @property
    def name(self) -> str:
        return str(self.op.operation.name)

    @property
    def reached(self) -> ir.Value:
        """The view that it is about: what it lends, if that is less than the view."""
        return self.op.results[0] if self.name == SUB else self.view


class Loans:
    """The loans of one function."""

    def __init__(self, flow: Flow, views: Views) -> None:
        self._flow = flow
        self._views = views
        self._written: dict[ir.Value, bool] = {}
        self._by_root: dict[ir.Value, list[Loan]] = {}
        for op in flow.ops:
            if op.operation.name in LOANS:
                loan = self._loan(op)
                for root in views.roots(loan.lent):
                    self._by_root.setdefault(root, []).append(loan)

    def of(self, view: ir.Value) -> list[Loan]:
        """The loans of anything that a view comes from, each once, in program order."""
        found = {loan: None for r in self._views.roots(view) for loan in self._by_root.get(r, ())}
        return sorted(found, key=lambda loan: loan.position)

    def accesses(self) -> Iterator[tuple[Access, ...]]:
        """What each operation does with views; of one that does something, in program order.

        What only asks for extents and indices (`tile.part_id`) does nothing.
        """
        if self._by_root:
            yield from filter(None, map(self._accesses, self._flow.ops))

    def _accesses(self, op: ir.OpView) -> tuple[Access, ...]:
        name = op.operation.name
        views = [operand for operand in op.operands if is_view(operand)]
        if name in LOANS:
            return (Access(op, views[0], self._may_write(op)),)
        if name == MOVE:
            return (Access(op, views[0], writes=True),)
        if name not in declarations():
            return ()
        declaration = declarations()[name]
        if not (declaration.reads or declaration.writes):
            return ()
        return tuple(Access(op, view, bool(declaration.writes)) for view in views)

    def _loan(self, op: ir.OpView) -> Loan:
        uses = tuple(self._uses(op.results[0]))
        position = self._flow.position(op)
        last = max(map(self._flow.position, uses), default=position)
        of = frozenset(self._views.ancestors(op.operands[0]))
        return Loan(op, of, self._may_write(op), uses, position, last)

    def _uses(self, loan: ir.Value) -> Iterator[ir.OpView]:
        """The operations that use a loan, or a view that is made of it."""
        waiting = [loan]
        while waiting:
            view = waiting.pop()
            for use in view.uses:
                yield use.owner
                made = (result for result in use.owner.results if is_view(result))
                waiting += [result for result in made if view in self._views.parents(result)]

    def _may_write(self, loan: ir.OpView) -> bool:
        """Whether a loan may be written through."""
        if loan.operation.name == BORROW:
            return bool(ir.BoolAttr(loan.attributes["mutable"]).value)
        return self._is_written(loan.results[0])

    def _is_written(self, view: ir.Value) -> bool:
        """Whether anything is done through a view that may write."""
        if view not in self._written:
            users = [use.owner for use in view.uses]
            self._written[view] = any(map(self._is_write, users)) or any(
                self._is_written(made) for user in users for made in _other_names(user)
            )
        return self._written[view]

    def _is_write(self, op: ir.OpView) -> bool:
        """Whether an operation may write its view, or gives it to one who may."""
        name = op.operation.name
        if name == BORROW:
            return self._may_write(op)
        if name in declarations():
            return bool(declarations()[name].writes)
        # Given to a helper or to the caller, who own it then.
        return name == CALL or is_end(op)


def _other_names(op: ir.OpView) -> Iterator[ir.Value]:
    """The views that an operation makes of its operand, but for those whose maker knows more."""
    if op.operation.name not in (BORROW, CALL):
        yield from (result for result in op.results if is_view(result))
