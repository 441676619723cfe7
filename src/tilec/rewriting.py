"""Passes on a module in text form, as `tilec opt` runs them.

A file of `tilec.transforms` with a public function of its own name is such a pass by being there.
The function takes a module, or one function of it and how layouts are placed.
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

import tilec.transforms
from tilec.codegen.warps import warps_for
from tilec.diagnostics.setup_error import SetupError
from tilec.ir.dialect import context
from tilec.ops.rules import Placing
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


Transform = Callable[..., object]

# What `tilec opt` takes pointers and outer strides to be multiples of, as the first variant does.
_VECTOR_BYTES = 16


@cache
def passes() -> dict[str, Transform]:
    """tilec's own passes, by name."""
    names = [found.name for found in pkgutil.iter_modules(tilec.transforms.__path__)]
    files = ((name, import_module(f"{tilec.transforms.__name__}.{name}")) for name in names)
    return {name: getattr(file, name) for name, file in files if hasattr(file, name)}


def _run_pass(module: ir.Module, name: str, target: Target) -> None:
    if name not in passes():
        _pipeline(name).run(module.operation)
        return
    _run_own(passes()[name], module, target)
    module.operation.verify()


def _run_own(transform: Transform, module: ir.Module, target: Target) -> None:
    names = list(inspect.signature(transform).parameters)
    if names[0] == "module":
        transform(module)
        return
    for function in list(module.body.operations):
        with function.location:
            here = partial(transform, function)
            if "placing" not in names:
                here()
                continue
            here(Placing(warps_for(function, {}, target), _VECTOR_BYTES))


def _pipeline(name: str) -> PassManager:
    try:
        return PassManager.parse(f"builtin.module({name})")
    except ValueError as error:
        # "MLIR Textual PassPipeline Parser:1:1: error: what is wrong", then the text and a caret.
        reason = str(error).splitlines()[0].rpartition("error: ")[2]
        known = f"tilec's own passes are {', '.join(passes())}; MLIR's are pipelines"
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
        yield f"{_place(diagnostic.location, file)}{diagnostic.message}"
        for note in diagnostic.notes:
            yield f"{_place(note.location, file)}{note.message}"


def _place(location: ir.Location, file: str) -> str:
    if not location.is_a_file():
        return ""
    # MLIR calls a module that it parses from a string "-".
    name = file if location.filename == "-" else location.filename
    return f"{name}:{location.start_line}:{location.start_col}: "
