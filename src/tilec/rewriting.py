"""Passes on a module in text form, as `tilec opt` runs them.

A file of `tilec.transforms` or `tilec.roles` with a public function of its own name is such a pass
by being there.
The function takes a module, or one function of it and how layouts are placed, or its schedule. So
is every check, by the pass that it says it belongs to (`tilec.checks.registry`).
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module

from mlir import ir
from mlir.passmanager import PassManager

import tilec.roles
import tilec.transforms
from tilec.checks.registry import check_passes
from tilec.codegen.warps import warps_for
from tilec.diagnostics import Diagnostic
from tilec.diagnostics.setup_error import SetupError
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.hints import Hints
from tilec.ir.dialect import context
from tilec.ir.place_texts import Reader
from tilec.ir.places import text_with_places
from tilec.ops.rules import Placing
from tilec.schedule.plan import Schedule, plan
from tilec.schedule.stages import plan_stages
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.description import Target
from tilec.verification import run_checks


@dataclass(frozen=True)
class Rewritten:
    """A module after some passes, or why they failed."""

    text: str = ""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()  # of a program that the front end refuses


@dataclass(frozen=True)
class Passes:
    """Which passes to run, tilec's own and MLIR pipelines, separated by commas, and how."""

    names: str
    target: Target
    with_places: bool = False  # whether the printed module has locations


def no_other_texts(name: str) -> SourceFile | None:
    """A reader for a module whose locations are in its own text."""
    return None


def run_passes(source: SourceFile, passes: Passes, read: Reader = no_other_texts) -> Rewritten:
    """Run passes on a module in text form.

    `read` gives the texts of the files that locations name, for what checks say.

    Raises:   SetupError if a pass is unknown or misspelt
    """

    def text_of(name: str) -> SourceFile | None:
        return SourceFile(name, source.text) if name == _UNNAMED else read(name)

    with context():
        return _rewritten(lambda: ir.Module.parse(source.text), passes, text_of, source.name)


def run_passes_on_program(sources: Sources, passes: Passes) -> Rewritten:
    """Run passes on the module of a program as the front end emits it, before any check of the IR.

    Raises:   SetupError if a pass is unknown or misspelt
    """
    if sources.problems:
        return Rewritten(diagnostics=sources.problems)
    program, found = load_program(sources.root, parse, sources.module)
    instances, wrong = check_program(program) if not found else ([], [])
    if found or wrong:
        return Rewritten(diagnostics=(*found, *wrong))
    with context():
        module = emit(instances, program.sources)
        return _rewritten(lambda: module, passes, program.sources.get, sources.root.name)


def _rewritten(
    module_of: Callable[[], ir.Module], passes: Passes, read: Reader, name: str
) -> Rewritten:
    """The module after these passes; what MLIR says of it is about the file of that name."""
    warnings: list[str] = []
    try:
        module = module_of()
        for pass_name in _split(passes.names):
            found = _run_pass(module, pass_name, passes.target, read)
            warnings += [_named(text, name) for text in found]
    except ir.MLIRError as error:
        return Rewritten(errors=tuple(_messages(error, name)), warnings=tuple(warnings))
    text = text_with_places(module) if passes.with_places else f"{module}\n"
    return Rewritten(text, warnings=tuple(warnings))


Transform = Callable[..., object]

# What MLIR calls a module that it parses from a string.
_UNNAMED = "-"


@cache
def passes() -> dict[str, Transform]:
    """tilec's own passes, by name."""
    found = [
        (one.name, import_module(f"{package.__name__}.{one.name}"))
        for package in (tilec.transforms, tilec.roles)
        for one in pkgutil.iter_modules(package.__path__)
    ]
    return {name: getattr(file, name) for name, file in found if hasattr(file, name)}


def _run_pass(module: ir.Module, name: str, target: Target, read: Reader) -> tuple[str, ...]:
    """Run one pass; what it warns of."""
    if name in check_passes():
        return run_checks(module, name, check_passes()[name], target, read)
    if name not in passes():
        _pipeline(name).run(module.operation)
        return ()
    _run_own(passes()[name], module, target)
    module.operation.verify()
    return ()


def _run_own(transform: Transform, module: ir.Module, target: Target) -> None:
    names = list(inspect.signature(transform).parameters)
    if names[0] == "module":
        transform(module)
        return
    for function in list(module.body.operations):
        with function.location:
            here = partial(transform, function)
            # Pointers and outer strides as the first variant takes them.
            placing = Placing(warps_for(function, Hints(), target), target.access_bytes)
            if "placing" in names:
                here(placing)
            elif "stages" in names:
                here(plan_stages(function, Hints(), target, placing))
            elif "schedule" not in names:
                here()
            elif isinstance(schedule := plan(function, Hints(), target), Schedule):
                here(schedule)


def _pipeline(name: str) -> PassManager:
    try:
        return PassManager.parse(f"builtin.module({name})")
    except ValueError as error:
        # "MLIR Textual PassPipeline Parser:1:1: error: what is wrong", then the text and a caret.
        reason = str(error).splitlines()[0].rpartition("error: ")[2]
        own = ", ".join((*passes(), *check_passes()))
        known = f"tilec's own passes are {own}; MLIR's are pipelines"
        raise SetupError(f"`{name}` is no pass: {reason}", help=known) from error


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
        yield _named(f"{_place(diagnostic.location)}{diagnostic.message}", file)
        for note in diagnostic.notes:
            yield _named(f"{_place(note.location)}{note.message}", file)


def _place(location: ir.Location) -> str:
    if not location.is_a_file():
        return ""
    return f"{location.filename}:{location.start_line}:{location.start_col}: "


def _named(text: str, file: str) -> str:
    """A message whose places are in the file as users named it."""
    unnamed = f"{_UNNAMED}:"
    return "\n".join(
        f"{file}:{line.removeprefix(unnamed)}" if line.startswith(unnamed) else line
        for line in text.split("\n")
    )
