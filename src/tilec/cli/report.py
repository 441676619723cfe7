"""What commands say: diagnostics and errors on standard error, results on standard output.

As SARIF, diagnostics are one document, which is all that there is on standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import click

from tilec import __version__
from tilec.buildsystem.crash import save_report
from tilec.cli.output import say, say_aside, say_styled
from tilec.diagnostics.colour import wants_colour
from tilec.diagnostics.diagnostic import Diagnostic
from tilec.diagnostics.setup_error import SetupError
from tilec.diagnostics.to_json import to_json
from tilec.printable import json_text, printable, printable_lines
from tilec.source import SourceFile

_CLEAR = "\r\x1b[2K"  # the line of a terminal
Format = Literal["text", "json", "sarif"]


@dataclass
class Reporter:
    """One command's voice, as its options want it."""

    format: Format = "text"
    quiet: bool = False
    # What the document will hold.
    findings: list[tuple[Diagnostic, Mapping[str, SourceFile]]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def json(self) -> bool:
        return self.format == "json"

    @property
    def sarif(self) -> bool:
        return self.format == "sarif"

    def finish(self) -> None:
        """The end of the command: prints the document, if there is to be one."""
        if self.sarif:
            # Here, since other commands need none of it.
            from tilec.diagnostics.to_sarif import to_sarif

            folder = str(Path.cwd())
            say(to_sarif(self.findings, self.failures, version=__version__, folder=folder))

    def line(self, text: str) -> None:
        """A result that `--quiet` leaves out."""
        if not self.quiet and not self.sarif:
            self._clear()
            say(text)

    def note(self, text: str) -> None:
        """A remark about the request."""
        if not self.quiet and not self.json:
            self._clear()
            say_aside(f"note: {_indented(text)}")

    def progress(self, finished: int, total: int, name: str) -> None:
        """How far the command is: on terminals only, on one line that later output replaces."""
        if self._has_progress and total > 1:
            say_styled(f"{_CLEAR}[{finished}/{total}] {printable(name)}", nl=False)

    def diagnostics(
        self, diagnostics: Iterable[Diagnostic], files: Mapping[str, SourceFile]
    ) -> None:
        """What is wrong with a program."""
        # Here, since machines that only run cubins have no rich, which it needs.
        from tilec.diagnostics.render import render

        self._clear()
        for diagnostic in diagnostics:
            if self.sarif:
                self.findings.append((diagnostic, files))
            elif self.json:
                say_aside(to_json(diagnostic, files))
            else:
                shown = render(diagnostic, files, colour=_colour())
                say_styled(shown, color=_colour())

    def setup_error(self, error: SetupError) -> None:
        """What is wrong outside of the program."""
        message = error.message if self.json else _indented(error.message)
        self._error(error.code, message, error.help)

    def error(self, text: str) -> None:
        """An error that has no code: it is not about a `.tile` program."""
        self._error(None, text, None)

    def warning(self, text: str) -> None:
        """As `error`, of what does not stop the command."""
        self._error(None, text, None, severity="warning")

    def internal_error(
        self, reason: str, details: str, files: Iterable[SourceFile] = (), about: str | None = None
    ) -> None:
        """A fault of the compiler: saves a report and says where it is."""
        path = save_report(reason, details, files)
        saved = f"a report was saved: {path}" if path else "no report could be saved"
        first_line = reason.splitlines()[0] if reason else "unknown"
        subject = f" in `{about}`" if about else ""
        self._error(None, f"internal compiler error{subject}: {first_line}", saved, "note")

    def _error(
        self,
        code: str | None,
        message: str,
        remark: str | None,
        kind: str = "help",
        severity: str = "error",
    ) -> None:
        self._clear()
        self.failures.append(message)
        if self.json:
            say_aside(_json_without_place(code, message, remark, kind, severity))
            return
        head = f"{severity}[{code}]" if code else severity
        strong = "red" if severity == "error" else "yellow"
        shown = f"{click.style(head, fg=strong, bold=True)}: {printable_lines(message)}"
        say_styled(shown, color=_colour())
        if remark:
            say_aside(f"  = {kind}: {_indented(remark)}")

    @property
    def _has_progress(self) -> bool:
        return not self.quiet and not self.json and sys.stderr.isatty()

    def _clear(self) -> None:
        if self._has_progress:
            say_styled(_CLEAR, nl=False)


def _indented(text: str) -> str:
    """A message whose further lines cannot be taken for other messages."""
    return printable_lines(text).replace("\n", "\n    ")


def _colour() -> bool:
    return wants_colour(sys.stderr)


def _json_without_place(
    code: str | None, message: str, remark: str | None, kind: str, severity: str
) -> str:
    """The object of `--error-format=json` for an error that has no place in a source file."""
    return json_text(
        {
            "code": code,
            "severity": severity,
            "message": message,
            "file": None,
            "range": None,
            "labels": [],
            "notes": [remark] if remark and kind == "note" else [],
            "help": remark if kind == "help" else None,
        }
    )
