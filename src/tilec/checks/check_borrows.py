"""E0403: while a part or tensor is lent mutably it is not used otherwise.

A loan is what `tile.borrow` gives (for a call) or `tile.sub` (a smaller part). It lives to its last
use, that of what is made of it included. It is mutable if it may be written through: a borrow says
so, and a smaller part that is only read is lent to be read.

Algorithm: for each access (read, write, loan or move) of a view, and each loan made before of the
same view, of what it comes from or of what is made of it: if a use of the loan may still follow,
the two meet; they conflict unless both only read, or they are of smaller parts that lie apart.

Why it is sound: control flow is structured, so "may follow" is: later in program order and not in
another branch, or anywhere in a loop around the access that does not contain the loan. A view is
one value for each turn of the loop that it is made in, so that two that live at once are of one
turn. Smaller parts of one part lie apart if, along some axis, both indices are constants and the
ranges do not meet; clipping leaves ranges inside of these.

    refused                                    accepted
    swap(&mut z, &mut z)                       first(&mut z); second(&mut z)
    let s = z.sub(…); z.store(…); s.store(…)   let s = z.sub(…); s.store(…); z.store(…)
    let a = z.sub([i]); let b = z.sub([j]); …  let a = z.sub([0]); let b = z.sub([1]); …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from tilec.checks.apart import Apart
from tilec.checks.flow import is_repeated
from tilec.checks.places import UNNAMED, Sources, name_of, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.dialect import declarations
from tilec.ir.views import BORROW, CALL, LOANS, MOVE, SUB, Views, is_view
from tilec.ir.walk import functions, operations
from tilec.ops.registry import rules

PASS = "tile-verify-ownership"
INLINED = False


def check_borrows(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0403 for each access of a part that is lent mutably at that point."""
    views = Views(module)
    for function in functions(module):
        yield from _Function(function, views, sources).conflicts()


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


@dataclass(frozen=True, eq=False)
class _Access:
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


class _Function:
    """One function: its operations in order, and the loans among them."""

    def __init__(self, function: ir.OpView, views: Views, sources: Sources) -> None:
        self._views = views
        self._sources = sources
        self._apart = Apart(views)
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
            if outer and (is_repeated(outer[0]) or outer[0] in self._looped):
                self._looped.add(op.operation)
        self._writers: dict[ir.Value, bool] = {}
        self._loans: dict[ir.Value, list[_Loan]] = {}
        for loan in [self._loan(op) for op in self._ops if op.operation.name in LOANS]:
            for root in views.roots(loan.lent):
                self._loans.setdefault(root, []).append(loan)

    def conflicts(self) -> Iterator[Diagnostic]:
        if not self._loans:
            return
        for op in self._ops:
            for access in self._accesses(op):
                loan = self._conflicting(access)
                if loan is not None:
                    yield self._finding(access, loan)
                    break

    def _loan(self, op: ir.OpView) -> _Loan:
        uses = tuple(self._uses(op.results[0]))
        position = self._position[op.operation]
        last = max((self._position[use.operation] for use in uses), default=position)
        of = frozenset(self._views.ancestors(op.operands[0]))
        return _Loan(op, of, self._may_write(op), uses, position, last)

    def _uses(self, loan: ir.Value) -> Iterator[ir.OpView]:
        """The operations that use a loan, or a view that is made of it."""
        waiting = [loan]
        while waiting:
            view = waiting.pop()
            for use in view.uses:
                yield use.owner
                waiting += self._made_of(view, use.owner)

    def _made_of(self, view: ir.Value, op: ir.OpView) -> Iterator[ir.Value]:
        return (r for r in op.results if is_view(r) and view in self._views.parents(r))

    # ---- what an operation does with a view ------------------------------------------------------

    def _accesses(self, op: ir.OpView) -> Iterator[_Access]:
        """The views that an operation reads, writes, lends or moves.

        What only asks for extents and indices (`tile.part_id`) accesses nothing.
        """
        name = op.operation.name
        views = [operand for operand in op.operands if is_view(operand)]
        if name in LOANS:
            yield _Access(op, views[0], self._may_write(op))
        elif name == MOVE:
            yield _Access(op, views[0], writes=True)
        elif name in declarations():
            declaration = declarations()[name]
            if declaration.reads or declaration.writes:
                for view in views:
                    yield _Access(op, view, bool(declaration.writes))

    def _may_write(self, loan: ir.OpView) -> bool:
        """Whether a loan may be written through."""
        if loan.operation.name == BORROW:
            return bool(ir.BoolAttr(loan.attributes["mutable"]).value)
        result = loan.results[0]
        if result not in self._writers:
            self._writers[result] = any(
                self._is_write(use.owner) or any(map(self._is_written, self._made(use.owner)))
                for use in result.uses
            )
        return self._writers[result]

    def _is_written(self, view: ir.Value) -> bool:
        """Whether anything is done through a view that may write."""
        return any(
            self._is_write(use.owner) or any(map(self._is_written, self._made(use.owner)))
            for use in view.uses
        )

    def _made(self, op: ir.OpView) -> Iterator[ir.Value]:
        # What is lent by a borrow is known by the borrow; a call's result is written by the call.
        if op.operation.name not in (BORROW, CALL):
            yield from (result for result in op.results if is_view(result))

    def _is_write(self, op: ir.OpView) -> bool:
        """Whether an operation may write its view, or gives it to one who may."""
        name = op.operation.name
        if name == BORROW:
            return self._may_write(op)
        if name in declarations():
            return bool(declarations()[name].writes)
        # Given to a helper or to the caller, who own it then.
        return name == CALL or _is_end(op)

    # ---- conflicts -------------------------------------------------------------------------------

    def _conflicting(self, access: _Access) -> _Loan | None:
        whole = set(self._views.ancestors(access.view))
        place = self._same_place(access.view)
        position = self._position[access.op.operation]
        in_loop = access.op.operation in self._looped
        for loan in self._loans_of(access.view):
            if loan.position >= position or (loan.last_use < position and not in_loop):
                continue
            if not (loan.mutable or access.writes):
                continue
            # Through the loan itself anything goes; another way to the same part does not.
            overlaps = self._same_place(loan.lent) in whole or place in loan.of
            if loan.result in whole or not overlaps:
                continue
            if self._through_sibling(whole, loan) or self._apart(access.reached, loan.result):
                continue
            if any(self._may_follow(use, access.op, loan) for use in loan.uses):
                return loan
        return None

    def _loans_of(self, view: ir.Value) -> list[_Loan]:
        """The loans of anything that a view comes from, each once, in program order."""
        found = {loan: None for r in self._views.roots(view) for loan in self._loans.get(r, ())}
        return sorted(found, key=lambda loan: loan.position)

    def _same_place(self, view: ir.Value) -> ir.Value:
        """The view that another is but a name for: what is lent by it is all that is lent there."""
        while not isinstance(view.owner, ir.Block) and view.owner.name not in (*LOANS, CALL):
            sources = list(self._views.parents(view))
            if len(sources) != 1:
                break
            [view] = sources
        return view

    def _through_sibling(self, whole: set[ir.Value], loan: _Loan) -> bool:
        """Whether an access is by another loan of the same: where that was made, it was found."""
        siblings = (other.result for other in self._loans_of(loan.lent) if other is not loan)
        return any(result in whole and result not in loan.of for result in siblings)

    def _may_follow(self, use: ir.OpView, op: ir.OpView, loan: _Loan) -> bool:
        if use.operation == op.operation:
            return False
        around_loan = {a for a, _ in self._around(loan.op)}
        regions = dict(self._around(op))
        shared = [(a, i, regions[a]) for a, i in self._around(use) if a in regions]
        if any(is_repeated(a) and a not in around_loan for a, _, _ in shared):
            return True
        if any(not is_repeated(a) and i != j for a, i, j in shared):
            return False
        return self._position[use.operation] > self._position[op.operation]

    def _around(self, op: ir.OpView) -> Iterator[tuple[ir.Operation, int]]:
        """The operations around one, with the number of the region of each that it is in."""
        outer = self._outer.get(op.operation)
        while outer is not None:
            yield outer
            outer = self._outer.get(outer[0])

    # ---- what is said ----------------------------------------------------------------------------

    def _finding(self, access: _Access, loan: _Loan) -> Diagnostic:
        here, there = place_of(access.op, self._sources), place_of(loan.op, self._sources)
        last = max(loan.uses, key=lambda use: self._position[use.operation])
        ends = place_of(last, self._sources)
        # A call that takes both says nothing more by being underlined as a whole.
        in_one_call = ends.start <= here.start < ends.end
        labels = [
            Label(here, _done(access)),
            Label(there, "borrowed mutably" if loan.mutable else "borrowed to be read"),
        ]
        if not in_one_call:
            text = "given back here" if _is_end(last) else "the loan is used here"
            labels.append(Label(ends, text))
        return Diagnostic(
            "E0403",
            f"{self._name(access, loan)} {_what(access, loan)}",
            tuple(labels),
            self._notes(access, loan),
            _way_out(access, loan, in_one_call=in_one_call),
        )

    def _name(self, access: _Access, loan: _Loan) -> str:
        """What is lent, by its own name or that of what it is a view of."""
        whole = self._same_place(loan.lent)
        # An access by another view is no access of the one that is lent.
        named = loan.lent if loan.lent in self._views.ancestors(access.view) else whole
        found = name_of(named, self._sources)
        return name_of(whole, self._sources) if found == UNNAMED else found

    def _notes(self, access: _Access, loan: _Loan) -> tuple[str, ...]:
        are_smaller = access.name == SUB and loan.op.operation.name == SUB
        if not are_smaller or self._apart.is_known(access.reached, loan.result):
            return ()
        return ("smaller parts are known to lie apart only by indices that are constants",)


def _is_end(op: ir.OpView) -> bool:
    """Whether it ends the function and hands its operands to the caller."""
    name = op.operation.name
    return name in rules() and rules()[name].terminator


def _what(access: _Access, loan: _Loan) -> str:
    """What is wrong, after the name of what is lent."""
    lent = "mutably" if loan.mutable else "to be read"
    if access.name in LOANS:
        if loan.mutable and access.writes:
            return "is borrowed mutably twice at once"
        again = "mutably" if access.writes else "to be read"
        return f"is borrowed {again} while it is borrowed {lent}"
    return f"is {_verb(access, loan)} while it is borrowed {lent}"


def _verb(access: _Access, loan: _Loan) -> str:
    if access.name == MOVE:
        return "moved"
    return "used" if loan.mutable else "written"


def _done(access: _Access) -> str:
    """What stands at the place of the access."""
    if access.name == MOVE:
        return "moved here"
    return "borrowed again" if access.name in LOANS else "used here"


def _way_out(access: _Access, loan: _Loan, *, in_one_call: bool) -> str | None:
    """What to write instead, where that is likely right."""
    if in_one_call:
        is_value = access.name not in (*LOANS, MOVE)
        return "bind the value before the call: `let t = …;`" if is_value else None
    if loan.op.operation.name == SUB:
        return "use the smaller part for the last time before this"
    return None
