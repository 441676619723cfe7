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
from tilec.ir.views import ancestors, is_view, root
from tilec.ir.walk import functions, operations

PASS = "tile-verify-ownership"
INLINED = False

_LOANS = ("tile.borrow", "tile.sub")


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
    position: int
    last_use: int

    @property
    def result(self) -> ir.Value:
        return self.op.results[0]

    @property
    def lent(self) -> ir.Value:
        return self.op.operands[0]


class _Function:
    """One function: its operations in order, and the loans among them."""

    def __init__(self, function: ir.OpView, sources: Sources) -> None:
        self._sources = sources
        self._ops = list(operations(function))
        self._position = {op.operation: i for i, op in enumerate(self._ops)}
        # What is around each operation: one step out at a time, with the region it is in.
        self._outer: dict[ir.Operation, tuple[ir.Operation, int]] = {}
        for op in self._ops:
            for number, region in enumerate(op.regions):
                for block in region.blocks:
                    for inner in block.operations:
                        self._outer[inner.operation] = op.operation, number
        self._looped: set[ir.Operation] = set()
        for op in self._ops:
            outer = self._outer.get(op.operation)
            if outer and (_is_loop(outer[0]) or outer[0] in self._looped):
                self._looped.add(op.operation)
        loans = [self._loan(op) for op in self._ops if op.operation.name in _LOANS]
        self._loans: dict[ir.Value, list[_Loan]] = {}
        for loan in loans:
            self._loans.setdefault(root(loan.lent), []).append(loan)

    def conflicts(self) -> Iterator[Diagnostic]:
        if not self._loans:
            return
        for op in self._ops:
            for view, writes in _accesses(op):
                loan = self._conflicting(op, view, writes)
                if loan is not None:
                    yield self._finding(op, loan)
                    break

    def _loan(self, op: ir.OpView) -> _Loan:
        uses = tuple(_uses(op.results[0]))
        position = self._position[op.operation]
        last = max((self._position[use.operation] for use in uses), default=position)
        return _Loan(
            op, frozenset(ancestors(op.operands[0])), _is_mutable(op), uses, position, last
        )

    def _conflicting(self, op: ir.OpView, view: ir.Value, writes: bool) -> _Loan | None:
        whole = set(ancestors(view))
        position = self._position[op.operation]
        in_loop = op.operation in self._looped
        for loan in self._loans.get(root(view), ()):
            if loan.position >= position or (loan.last_use < position and not in_loop):
                continue
            # Through the loan itself anything goes; another way to the same part does not.
            overlaps = loan.lent in whole or view in loan.of
            if loan.result in whole or not overlaps or not (loan.mutable or writes):
                continue
            if self._through_sibling(whole, loan):
                continue
            if any(self._may_follow(use, op, loan) for use in loan.uses):
                return loan
        return None

    def _through_sibling(self, whole: set[ir.Value], loan: _Loan) -> bool:
        """Whether an access is by another loan of the same: where that was made, it was found."""
        siblings = (other.result for other in self._loans[root(loan.lent)] if other is not loan)
        return any(result in whole and result not in loan.of for result in siblings)

    def _may_follow(self, use: ir.OpView, op: ir.OpView, loan: _Loan) -> bool:
        if use.operation == op.operation:
            return False
        around_loan = {a for a, _ in self._around(loan.op)}
        regions = dict(self._around(op))
        shared = [(a, i, regions[a]) for a, i in self._around(use) if a in regions]
        if any(_is_loop(a) and a not in around_loan for a, _, _ in shared):
            return True
        if any(a.name == "scf.if" and i != j for a, i, j in shared):
            return False
        return self._position[use.operation] > self._position[op.operation]

    def _around(self, op: ir.OpView) -> Iterator[tuple[ir.Operation, int]]:
        """The operations around one, with the number of the region of each that it is in."""
        outer = self._outer.get(op.operation)
        while outer is not None:
            yield outer
            outer = self._outer.get(outer[0])

    def _finding(self, op: ir.OpView, loan: _Loan) -> Diagnostic:
        here, there = place_of(op, self._sources), place_of(loan.op, self._sources)
        name = name_of(loan.lent, self._sources)
        again = op.operation.name in _LOANS
        if loan.mutable and again and _is_mutable(op):
            message = f"{name} is borrowed mutably twice at once"
        else:
            how = "mutably" if loan.mutable else "to be read"
            message = f"{name} is {_verb(op)} while it is borrowed {how}"
        labels = [
            Label(here, "borrowed again" if again else f"{_verb(op)} here"),
            Label(there, "borrowed mutably" if loan.mutable else "borrowed to be read"),
        ]
        last = max(loan.uses, key=lambda use: self._position[use.operation])
        ends = place_of(last, self._sources)
        # A call that takes both says nothing more by being underlined as a whole.
        if not ends.start <= here.start < ends.end:
            labels.append(Label(ends, "the loan is used here"))
        return Diagnostic("E0403", message, tuple(labels))


def _verb(op: ir.OpView) -> str:
    if op.operation.name == "tile.move":
        return "moved"
    return "borrowed" if op.operation.name in _LOANS else "used"


def _is_mutable(loan: ir.OpView) -> bool:
    return loan.operation.name == "tile.sub" or bool(ir.BoolAttr(loan.attributes["mutable"]).value)


def _uses(loan: ir.Value) -> Iterator[ir.OpView]:
    """The operations that use a loan, or a view that is made of it."""
    waiting = [loan]
    while waiting:
        for use in waiting.pop().uses:
            yield use.owner
            waiting += [result for result in use.owner.results if is_view(result)]


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


def _is_loop(op: ir.Operation) -> bool:
    return op.name in ("scf.for", "scf.while")
