"""An MLIR context with our dialects in it, and what their declarations say of each operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import ModuleType

from mlir import ir
from mlir.dialects import _linalg_ops_gen, irdl

FILES = ("tile.irdl.mlir", "warp.irdl.mlir", "stage.irdl.mlir")

# What Python makes operations of; parsers and passes load what else they need. Loading all that
# MLIR has takes three times as long, for every context.
DIALECTS = (
    "arith", "cf", "func", "gpu", "linalg", "llvm", "math", "memref", "nvvm", "scf", "tensor",
    "vector",
)  # fmt: skip

# The bindings import `mlir.dialects.<name>` for each operation that they meet and remember only
# success, so without a module to find they search the disk hundreds of times.
for _file in FILES:
    _module = f"mlir.dialects.{_file.partition('.')[0]}"
    sys.modules.setdefault(_module, ModuleType(_module))
# The package for linalg defines every named operation once more, in Python, which takes longer than
# all else of the bindings, and is called by nothing here. Its generated classes are enough.
sys.modules.setdefault("mlir.dialects.linalg", _linalg_ops_gen)


@contextmanager
def context() -> Iterator[ir.Context]:
    """A fresh context, entered, with the dialects of `dialects/` loaded and an unknown location.

    Always `with`: a context that is entered and never left aborts the process at exit.
    """
    with ir.Context(load_on_create_dialects=DIALECTS) as entered, ir.Location.unknown():
        entered.emit_error_diagnostics = False
        # Files are compiled side by side already.
        entered.enable_multithreading(False)
        for name in FILES:
            # The module must stay in a variable: `parse(…).body` on a temporary leaves dangling
            # operations.
            module = ir.Module.parse(_text(name))
            irdl.load_dialects(module)
        yield entered


@cache
def _text(name: str) -> str:
    return (files("tilec.dialects") / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Declaration:
    """What the dialect file says of one operation beside its constraints."""

    name: str
    summary: str
    pure: bool
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    updates: tuple[str, ...]  # atomically
    operands: tuple[str, ...]


@cache
def declarations() -> dict[str, Declaration]:
    """Every operation of our dialects by its full name (`tile.load`)."""
    found: dict[str, Declaration] = {}
    with ir.Context(), ir.Location.unknown():
        for file in FILES:
            module = ir.Module.parse(_text(file))
            for dialect in module.body.operations:
                prefix = ir.StringAttr(dialect.attributes["sym_name"]).value
                for op in dialect.regions[0].blocks[0].operations:
                    if op.operation.name != "irdl.operation":
                        continue  # a type
                    declaration = _declaration(prefix, op)
                    found[declaration.name] = declaration
    return found


def _declaration(prefix: str, op: ir.OpView) -> Declaration:
    attributes = op.attributes

    def names(key: str) -> tuple[str, ...]:
        if key not in attributes:
            return ()
        return tuple(ir.StringAttr(x).value for x in ir.ArrayAttr(attributes[key]))

    operands: tuple[str, ...] = ()
    for inner in op.regions[0].blocks[0].operations:
        if inner.operation.name == "irdl.operands":
            listed = ir.ArrayAttr(inner.operation.attributes["names"])
            operands = tuple(ir.StringAttr(x).value for x in listed)
    return Declaration(
        name=f"{prefix}.{ir.StringAttr(attributes['sym_name']).value}",
        summary=ir.StringAttr(attributes["summary"]).value,
        pure="pure" in attributes,
        reads=names("reads"),
        writes=names("writes"),
        updates=names("updates"),
        operands=operands,
    )
