"""The value that every stage uses to say what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tilec.source import Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Label:
    """What is so at one place of the source."""

    span: Span
    text: str = ""


@dataclass(frozen=True)
class Diagnostic:
    """One finding. `labels[0]` is the primary place; the others follow in program order.

    Guarantees: `code` has a page in `tilec/diagnostics/pages` (a test compares the two).
    """

    code: str
    message: str
    labels: tuple[Label, ...]
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = Severity.ERROR

    @property
    def span(self) -> Span:
        return self.labels[0].span


class CompileError(Exception):
    """A stage cannot go on; carries everything that it found."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics
