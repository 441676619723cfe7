"""Checks as passes of MLIR: `tilec opt --passes tile-verify-…`.

One adapter makes a pass of any checks: what they yield becomes diagnostics of MLIR at the places of
their primary labels, and an error fails the pipeline. The module stays as it is: a check that reads
kernels without helpers is given a copy in which they are inlined.

Places lie in the files that locations name: `.tile` files where locations were printed
(`--emit tile`), else the MLIR text itself (`tilec.ir.place_texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mlir import ir
from mlir.passmanager import PassManager

from tilec.checks.places import Sources
from tilec.checks.registry import Check
from tilec.diagnostics import Diagnostic, Severity
from tilec.diagnostics.once import once
from tilec.ir.place_texts import Reader, give_places, texts_of
from tilec.ir.places import location_of
from tilec.recursion import deep_recursion
from tilec.source import Span
from tilec.target.description import Target
from tilec.transforms.inline_helpers import inline_helpers


def run_checks(
    module: ir.Module, name: str, checks: Sequence[Check], target: Target, read: Reader
) -> tuple[str, ...]:
    """Run checks as one pass of that name; what they warn of. `read` gives a file's text.

    Raises:   MLIRError with a diagnostic for each finding that is an error
    """
    warnings: list[str] = []
    manager = PassManager("builtin.module")
    manager.add(
        partial(_pass, checks=checks, target=target, read=read, warnings=warnings),
        name=name,
        argument=name,
    )
    manager.run(module.operation)
    return tuple(warnings)


def _pass(
    op: ir.OpView,
    pass_: Any,
    *,
    checks: Sequence[Check],
    target: Target,
    read: Reader,
    warnings: list[str],
) -> None:
    whole = op.operation.clone()
    give_places(whole)
    sources = texts_of(whole, read)
    copies = {False: whole, True: whole}
    if any(check.inlined for check in checks):
        copies[True] = whole.operation.clone()
        inline_helpers(copies[True])
    found = [d for check in checks for d in _found(check, copies[check.inlined], sources, target)]
    for diagnostic in once(found):
        if diagnostic.severity is Severity.WARNING:
            # MLIR's bindings emit errors only.
            warnings.append(f"{_place(diagnostic.span, sources)}: {_text(diagnostic, sources)}")
            continue
        span = diagnostic.span
        location_of(span, sources[span.file]).emit_error(_text(diagnostic, sources))
        pass_.signal_pass_failure()


def _found(
    check: Check, module: ir.OpView, sources: Sources, target: Target
) -> Sequence[Diagnostic]:
    options = {"target": target} if check.takes_target else {}
    with deep_recursion():
        return list(check.function(module, sources, **options))


def _text(diagnostic: Diagnostic, sources: Sources) -> str:
    """A finding as the message of a diagnostic that stands at its primary label."""
    primary, *others = diagnostic.labels
    head = f"{diagnostic.code}: {diagnostic.message}"
    lines = [f"{head}: {primary.text}" if primary.text else head]
    lines += [f"{_place(label.span, sources)}: note: {label.text}" for label in others]
    lines += [f"note: {note}" for note in diagnostic.notes]
    lines += [f"help: {diagnostic.help}"] if diagnostic.help else []
    return "\n".join(lines)


def _place(span: Span, sources: Sources) -> str:
    line, column = sources[span.file].position(span.start)
    return f"{span.file}:{line + 1}:{column + 1}"
