"""How the front end says no: one diagnostic as an exception, and "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

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


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The help for a misspelt name, if a known one is close."""
    close = get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else None
