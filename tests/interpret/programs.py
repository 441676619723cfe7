"""Programs of the language, compiled to the tile dialect and executed on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlir import ir

from tilec.diagnostics import CompileError, Diagnostic
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.source import SourceFile

CASES = Path(__file__).parent.parent / "cases"


def check(text: str) -> tuple[Any, list[Diagnostic]]:
    """The typed instances of a program, and what is wrong with it."""
    program, found = load_program(SourceFile("case.tile", text), parse)
    if found:
        return (program, []), found
    instances, found = check_program(program)
    return (program, instances), found


def launch(text: str, symbol: str, order: Any = None, **arguments: Any) -> None:
    """Run the kernel of a symbol on arrays, in place."""
    (program, instances), found = check(text)
    if found:
        raise CompileError(*found)
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        for function in module.body.operations:
            if ir.StringAttr(function.attributes["sym_name"]).value == symbol:
                run_kernel(function, arguments, order)
                return
    raise AssertionError(f"no kernel `{symbol}`")


def case(name: str) -> str:
    return (CASES / "accept" / f"{name}.tile").read_text(encoding="utf-8")
