"""Passes on a module in text form, as `tilec opt` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir
from mlir.passmanager import PassManager

from tilec.diagnostics.setup_error import SetupError
from tilec.driver import PASSES
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.target.description import Target


@dataclass(frozen=True)
class Rewritten:
    """A module after some passes, or why they failed."""

    text: str = ""
    errors: tuple[str, ...] = ()


def run_passes(source: SourceFile, passes: str, target: Target) -> Rewritten:
    """Run tilec's passes and MLIR pipelines, separated by commas, on a module in text form.

    Raises:   SetupError if a pass is unknown or misspelt
    """
    with context():
        try:
            module = ir.Module.parse(source.text)
            for name in _split(passes):
                _run_pass(module, name, target)
        except ir.MLIRError as error:
            return Rewritten(errors=tuple(_messages(error, source.name)))
        return Rewritten(f"{module}\n")


def _run_pass(module: ir.Module, name: str, target: Target) -> None:
    if name not in PASSES:
        _pipeline(name).run(module.operation)
        return
    PASSES[name](module, target)
    module.operation.verify()


def _pipeline(name: str) -> PassManager:
    try:
        return PassManager.parse(f"builtin.module({name})")
    except ValueError as error:
        # "MLIR Textual PassPipeline Parser:1:1: error: what is wrong", then the text and a caret.
        reason = str(error).splitlines()[0].rpartition("error: ")[2]
        known = f"tilec's own are {', '.join(PASSES)}" if PASSES else None
        raise SetupError(f"`{name}` is no pipeline: {reason}", help=known) from error


def _split(passes: str) -> Iterator[str]:
    """The parts between the commas that no bracket encloses: `a,func.func(b,c{d=1,e})` is two."""
    depth = start = 0
    for position, character in enumerate(passes):
        depth += (character in "({[<") - (character in ")}]>")
        if character == "," and depth == 0:
            yield passes[start:position]
            start = position + 1
    yield passes[start:]


def _messages(error: ir.MLIRError, file: str) -> Iterator[str]:
    for diagnostic in error.error_diagnostics:
        yield f"{_place(diagnostic.location, file)}{diagnostic.message}"
        for note in diagnostic.notes:
            yield f"{_place(note.location, file)}{note.message}"


def _place(location: ir.Location, file: str) -> str:
    if not location.is_a_file():
        return ""
    # MLIR calls a module that it parses from a string "-".
    name = file if location.filename == "-" else location.filename
    return f"{name}:{location.start_line}:{location.start_col}: "
