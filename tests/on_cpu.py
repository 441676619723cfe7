"""Kernels of a `.tile` file, by the CPU execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlir import ir

from tilec.diagnostics import CompileError
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.frontend.typed import KernelInstance
from tilec.interpret.contract import DTYPES
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.transforms.inline_helpers import inline_helpers

NUMPY = DTYPES


@dataclass(frozen=True)
class Compiled:
    """The kernels of a file, by symbol, as MLIR has them after the front end."""

    kernels: Mapping[str, ir.OpView]

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self.kernels)

    def run(self, symbol: str, arguments: Mapping[str, Any], order: int | None = None) -> None:
        """Runs a kernel on arrays, in place; `order` is a seed for the order of its programs."""
        run_kernel(self.kernels[symbol], arguments, order)


@contextmanager
def compiled(path: Path) -> Iterator[Compiled]:
    """The kernels of a file, valid inside the `with`."""
    with compiled_text(str(path), path.read_text(encoding="utf-8")) as found:
        yield found


@contextmanager
def compiled_text(name: str, text: str) -> Iterator[Compiled]:
    """The kernels of a program, valid inside the `with`."""
    instances, sources = checked_text(name, text)
    with context():
        module = emit(instances, sources)
        inline_helpers(module)
        yield Compiled({_symbol(f): f for f in module.body.operations})


@lru_cache(maxsize=4)
def checked_text(name: str, text: str) -> tuple[Sequence[KernelInstance], Mapping[str, SourceFile]]:
    """The instances of a program, type-checked, and its sources."""
    program, found = load_program(SourceFile(name, text), parse, _beside)
    instances, more = ((), ()) if found else check_program(program)
    if found or more:
        raise CompileError(*found, *more)
    return instances, program.sources


def _beside(name: str, importer: SourceFile) -> SourceFile | None:
    """The file of a module, if it lies beside the one that uses it."""
    path = Path(importer.name).with_name(f"{name}.tile")
    return SourceFile(str(path), path.read_text(encoding="utf-8")) if path.exists() else None


def _symbol(function: ir.OpView) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)
