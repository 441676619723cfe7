"""Programs as texts for the tests of the front end: checked, emitted, executed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilec.diagnostics import Diagnostic
from tilec.diagnostics.render import render
from tilec.frontend import typed
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import Program, load_program
from tilec.frontend.options import Options
from tilec.frontend.parse import parse
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.source import SourceFile


def loaded(text: str, **others: str) -> tuple[Program, list[Diagnostic]]:
    """A program whose other files are `others`, by module name."""

    def load(name: str, user: SourceFile) -> SourceFile | None:
        return SourceFile(f"{name}.tile", others[name]) if name in others else None

    return load_program(SourceFile("case.tile", text), parse, load)


def checked(
    text: str, options: Options | None = None, **others: str
) -> tuple[list[typed.KernelInstance], list[Diagnostic], Program]:
    program, found = loaded(text, **others)
    if found:
        return [], found, program
    return *check_program(program, options), program


def refusals(text: str, options: Options | None = None, **others: str) -> list[tuple[str, int]]:
    """Code and line (from 1) of everything that is wrong with a program."""
    _, found, program = checked(text, options, **others)
    return [(d.code, program.sources[d.span.file].position(d.span.start)[0] + 1) for d in found]


def printed(text: str) -> str:
    """The diagnostics of a program as users see them, or that it was accepted and emitted."""
    instances, found, program = checked(text)
    if found:
        return "\n".join(render(diagnostic, program.sources) for diagnostic in found)
    with context():
        assert emit(instances, program.sources).operation.verify()
    return "accepted\n"


def symbols(text: str, options: Options | None = None, **others: str) -> list[str]:
    """The symbols of the instances of a program with nothing wrong in it."""
    instances, found, _ = checked(text, options, **others)
    assert found == [], found
    return [instance.symbol for instance in instances]


def emitted(text: str, **others: str) -> str:
    """The verified module of a program with nothing wrong in it."""
    instances, found, program = checked(text, **others)
    assert found == [], found
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        return str(module)


def run(text: str, kernel: str, **arguments: Any) -> None:
    """Execute a kernel on arrays, in place."""
    instances, found, program = checked(text)
    assert found == [], found
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        [function] = (f for f in module.body.operations if f.name.value == kernel)
        run_kernel(function, arguments)


def computed(body: str, items: str = "", *, element: str = "i64", **scalars: int | float) -> Any:
    """The scalar `r` that statements compute; `scalars` are parameters of type i64 (or f32)."""
    parameters = "".join(
        f", {name}: {'i64' if isinstance(value, int) else 'f32'}" for name, value in scalars.items()
    )
    text = f"""{items}
#[kernel(grid = [1])]
pub fn k<N: Dim>(y: &mut Tensor<{element}, N>{parameters}) {{
{body}
unsafe {{ y.store::<1>([0], Tile::<{element}, 1>::full(r)); }}
}}
"""
    types = {"i64": np.int64, "f32": np.float32, "bool": np.bool_, "u8": np.uint8, "i8": np.int8}
    y = np.zeros(1, types.get(element, element))
    run(text, "k", y=y, **scalars)
    return y[0].item()
