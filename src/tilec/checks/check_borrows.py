"""E0403: while a part is lent mutably it is not used otherwise.

A loan is what `tile.borrow` gives (for a call) or `tile.sub` (a smaller part); it lives to its last
use, that of what is made of it included.

Algorithm: for each access (read, write, loan or move) of a view, and each loan made before of the
same view or of what it comes from: if a use of the loan may still follow, the two meet; they
conflict unless both only read.

Why it is sound: control flow is structured, so "may follow" is: later in program order and not in
another branch, or anywhere in a loop around the access that does not contain the loan.

    refused                                    accepted
    swap(&mut z, &mut z)                       first(&mut z); second(&mut z)
    let s = z.sub(…); z.store(…); s.store(…)   let s = z.sub(…); s.store(…); z.store(…)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from tilec.checks.places import Sources, name_of, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.dialect import declarations
from tilec.ir.views import ancestors, is_view
from tilec.ir.walk import functions, operations


def check_borrows(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0403 for each access of a part that is lent mutably at that point."""
    for function in functions(module):
        yield from _Function(function, sources).conflicts()


@dataclass(frozen=True, eq=False)
class _Loan:
    op: ir.OpView
    of: frozenset[ir.Value]  # the view that is lent, and those it comes from
    mutable: bool
    uses: tuple[ir.OpView, ...]


class _Function:
    """One function: its operations in order, and the loans among them."""

    def __init__(self, function: ir.OpView, sources: Sources) -> None:
        self._sources = sources
        self._ops = list(operations(function))
        self._position = {op.operation: i for i, op in enumerate(self._ops)}
        self._loans = [loan for op in self._ops for loan in self._loan(op)]

    def conflicts(self) -> Iterator[Diagnostic]:
        for op in self._ops:
            for view, writes in _accesses(op):
                loan = self._conflicting(op, view, writes)
                if loan is not None:
                    yield self._finding(op, view, loan)
                    break

    def _loan(self, op: ir.OpView) -> Iterator[_Loan]:
        name = op.operation.name
        if name not in ("tile.borrow", "tile.sub"):
            return
        mutable = name == "tile.sub" or ir.BoolAttr(op.attributes["mutable"]).value
        lent = op.operands[0]
        uses = tuple(
            other
            for other in self._ops
            if any(op.results[0] in ancestors(v) for v in other.operands if is_view(v))
        )
        yield _Loan(op, frozenset(ancestors(lent)), mutable, uses)

    def _conflicting(self, op: ir.OpView, view: ir.Value, writes: bool) -> _Loan | None:
        whole = set(ancestors(view))
        for loan in self._loans:
            if self._position[loan.op.operation] >= self._position[op.operation]:
                continue
            # Through the loan itself anything goes; another way to the same part does not.
            through = loan.op.results[0] in whole
            overlaps = loan.op.operands[0] in whole or view in loan.of
            if through or not overlaps or not (loan.mutable or writes):
                continue
            if self._through_sibling(whole, loan):
                continue
            if any(self._may_follow(use, op, loan) for use in loan.uses):
                return loan
        return None

    def _through_sibling(self, whole: set[ir.Value], loan: _Loan) -> bool:
        """Whether an access is by another loan of the same: where that was made, it was found."""
        results = (other.op.results[0] for other in self._loans if other is not loan)
        return any(result in whole and result not in loan.of for result in results)

    def _may_follow(self, use: ir.OpView, op: ir.OpView, loan: _Loan) -> bool:
        if use.operation == op.operation:
            return False
        around_use, around_op = _around(use), _around(op)
        around_loan = {a for a, _ in _around(loan.op)}
        shared = [(a, i, j) for a, i in around_use for b, j in around_op if a == b]
        if any(_is_loop(a) and a not in around_loan for a, _, _ in shared):
            return True
        if any(a.name == "scf.if" and i != j for a, i, j in shared):
            return False
        return self._position[use.operation] > self._position[op.operation]

    def _finding(self, op: ir.OpView, view: ir.Value, loan: _Loan) -> Diagnostic:
        here, there = place_of(op, self._sources), place_of(loan.op, self._sources)
        name = name_of(loan.op.operands[0], self._sources)
        how = "mutably" if loan.mutable else "to be read"
        twice = loan.mutable and op.operation.name in ("tile.borrow", "tile.sub")
        message = (
            f"{name} is borrowed mutably twice at once"
            if twice
            else (f"{name} is used while it is borrowed {how}")
        )
        last = max(loan.uses, key=lambda use: self._position[use.operation])
        labels = [
            Label(here, "borrowed again" if twice else "used here"),
            Label(there, f"borrowed {how}"),
        ]
        ends = place_of(last, self._sources)
        if ends not in (here, there):
            labels.append(Label(ends, "the loan is used here"))
        return Diagnostic("E0403", message, tuple(labels))


def _accesses(op: ir.OpView) -> Iterator[tuple[ir.Value, bool]]:
    """The views that an operation reads, writes, lends or moves, and whether it may write.

    What only asks for extents and indices (`tile.part_id`) accesses nothing.
    """
    name = op.operation.name
    views = [operand for operand in op.operands if is_view(operand)]
    if name == "tile.borrow":
        yield views[0], ir.BoolAttr(op.attributes["mutable"]).value
    elif name in ("tile.sub", "tile.move"):
        yield views[0], True
    elif name in declarations():
        declaration = declarations()[name]
        if declaration.reads or declaration.writes:
            for view in views:
                yield view, bool(declaration.writes)


def _around(op: ir.OpView) -> list[tuple[ir.Operation, int]]:
    """The operations around one, with the number of the region of each that it is in."""
    found: list[tuple[ir.Operation, int]] = []
    block = op.operation.block
    while block is not None:
        owner = block.owner.operation
        if owner.name in ("func.func", "builtin.module"):
            break
        regions = [i for i, region in enumerate(owner.regions) if block in list(region.blocks)]
        found.append((owner, regions[0]))
        block = owner.block
    return found


def _is_loop(op: ir.Operation) -> bool:
    return op.name in ("scf.for", "scf.while")
