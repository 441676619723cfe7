"""Programs of the language, compiled to the tile dialect and executed on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir

from tilec.diagnostics import CompileError, Diagnostic
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.transforms.drop_markers import drop_markers
from tilec.transforms.inline_helpers import inline_helpers
from tilec.transforms.simplify import simplify

CASES = Path(__file__).parent.parent / "cases"


def check(text: str) -> tuple[Any, list[Diagnostic]]:
    """The typed instances of a program, and what is wrong with it."""
    program, found = load_program(SourceFile("case.tile", text), parse)
    if found:
        return (program, []), found
    instances, found = check_program(program)
    return (program, instances), found


def launch(text: str, symbol: str, order: Any = None, **arguments: Any) -> None:
    """Run the kernel of a symbol on arrays, in place: as emitted, and again simplified."""
    (program, instances), found = check(text)
    if found:
        raise CompileError(*found)
    copies = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in arguments.items()}
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        run_kernel(_kernel(module, symbol), arguments, order)
        inline_helpers(module)
        drop_markers(module)
        simplify(module)
        assert module.operation.verify()
        run_kernel(_kernel(module, symbol), copies, order)
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            assert value.tobytes() == copies[name].tobytes(), f"`{name}` differs when simplified"


def _kernel(module: ir.Module, symbol: str) -> ir.OpView:
    for function in module.body.operations:
        if ir.StringAttr(function.attributes["sym_name"]).value == symbol:
            return function
    raise AssertionError(f"no kernel `{symbol}`")


def case(name: str) -> str:
    return (CASES / "accept" / f"{name}.tile").read_text(encoding="utf-8")
