"""How the front end says no: one diagnostic as an exception."""

from __future__ import annotations

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.source import Span


def refusal(
    code: str,
    message: str,
    span: Span,
    text: str = "",
    *others: Label,
    notes: tuple[str, ...] = (),
    help: str | None = None,
) -> CompileError:
    """One error to raise; `text` is what the primary label says, `others` the further places."""
    return CompileError(Diagnostic(code, message, (Label(span, text), *others), notes, help))


class AlreadyReportedError(CompileError):
    """What stands here rests on something that was refused before: there is nothing to add."""

    def __init__(self) -> None:
        super().__init__()
