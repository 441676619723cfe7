"""E0403: while a part or tensor is lent mutably it is not used otherwise.

What loans are, how long they live and which are mutable: `loans.py`.

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

from mlir import ir

from tilec.checks.apart import Apart
from tilec.checks.flow import Flow, is_end
from tilec.checks.loans import Access, Loan, Loans
from tilec.checks.places import UNNAMED, Sources, name_of, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.views import CALL, LOANS, MOVE, SUB, Views
from tilec.ir.walk import functions

PASS = "tile-verify-ownership"
INLINED = False


def check_borrows(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0403 for each access of a part that is lent mutably at that point."""
    views = Views(module)
    for function in functions(module):
        yield from _Function(function, views, sources).findings()


class _Function:
    """The question, for one function."""

    def __init__(self, function: ir.OpView, views: Views, sources: Sources) -> None:
        self._views = views
        self._sources = sources
        self._apart = Apart(views)
        self._flow = Flow(function)
        self._loans = Loans(self._flow, views)

    def findings(self) -> Iterator[Diagnostic]:
        """One for each operation that is at fault."""
        for accesses in self._loans.accesses():
            for access in accesses:
                loan = self._conflicting(access)
                if loan is not None:
                    yield self._finding(access, loan)
                    break

    def _conflicting(self, access: Access) -> Loan | None:
        """The first loan that an access meets and may not."""
        whole = set(self._views.ancestors(access.view))
        place = self._same_place(access.view)
        position = self._flow.position(access.op)
        in_loop = self._flow.is_in_loop(access.op)
        for loan in self._loans.of(access.view):
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
            if any(self._flow.may_follow(use, access.op, loan.op) for use in loan.uses):
                return loan
        return None

    def _same_place(self, view: ir.Value) -> ir.Value:
        """The view that another is but a name for: what is lent by it is all that is lent there."""
        while not isinstance(view.owner, ir.Block) and view.owner.name not in (*LOANS, CALL):
            sources = list(self._views.parents(view))
            if len(sources) != 1:
                break
            [view] = sources
        return view

    def _through_sibling(self, whole: set[ir.Value], loan: Loan) -> bool:
        """Whether an access is by another loan of the same: where that was made, it was found."""
        siblings = (other.result for other in self._loans.of(loan.lent) if other is not loan)
        return any(result in whole and result not in loan.of for result in siblings)

    # ---- what is said ----------------------------------------------------------------------------

    def _finding(self, access: Access, loan: Loan) -> Diagnostic:
        here, there = place_of(access.op, self._sources), place_of(loan.op, self._sources)
        last = max(loan.uses, key=self._flow.position)
        ends = place_of(last, self._sources)
        # A call that takes both says nothing more by being underlined as a whole.
        in_one_call = ends.start <= here.start < ends.end
        labels = [
            Label(here, _done(access)),
            Label(there, "borrowed mutably" if loan.mutable else "borrowed to be read"),
        ]
        if not in_one_call:
            text = "given back here" if is_end(last) else "the loan is used here"
            labels.append(Label(ends, text))
        return Diagnostic(
            "E0403",
            f"{self._name(access, loan)} {_what(access, loan)}",
            tuple(labels),
            self._notes(access, loan),
            _way_out(access, loan, in_one_call=in_one_call),
        )

    def _name(self, access: Access, loan: Loan) -> str:
        """What is lent, by its own name or that of what it is a view of."""
        whole = self._same_place(loan.lent)
        # An access by another view is no access of the one that is lent.
        named = loan.lent if loan.lent in self._views.ancestors(access.view) else whole
        found = name_of(named, self._sources)
        return name_of(whole, self._sources) if found == UNNAMED else found

    def _notes(self, access: Access, loan: Loan) -> tuple[str, ...]:
        are_smaller = access.name == SUB and loan.op.operation.name == SUB
        if not are_smaller or self._apart.is_known(access.reached, loan.result):
            return ()
        return ("smaller parts are known to lie apart only by indices that are constants",)


def _what(access: Access, loan: Loan) -> str:
    """What is wrong, after the name of what is lent."""
    lent = "mutably" if loan.mutable else "to be read"
    if access.name in LOANS:
        if loan.mutable and access.writes:
            return "is borrowed mutably twice at once"
        again = "mutably" if access.writes else "to be read"
        return f"is borrowed {again} while it is borrowed {lent}"
    return f"is {_verb(access, loan)} while it is borrowed {lent}"


def _verb(access: Access, loan: Loan) -> str:
    if access.name == MOVE:
        return "moved"
    return "used" if loan.mutable else "written"


def _done(access: Access) -> str:
    """What stands at the place of the access."""
    if access.name == MOVE:
        return "moved here"
    return "borrowed again" if access.name in LOANS else "used here"


def _way_out(access: Access, loan: Loan, *, in_one_call: bool) -> str | None:
    """What to write instead, where that is likely right."""
    if in_one_call:
        is_value = access.name not in (*LOANS, MOVE)
        return "bind the value before the call: `let t = …;`" if is_value else None
    if loan.op.operation.name == SUB:
        return "use the smaller part for the last time before this"
    return None
