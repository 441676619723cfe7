"""The rules of every operation of the IR, found by looking through this package.

A module of `tilec.ops` that lists `RULES` or `OPERATIONS` is found by being there.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

import tilec.ops
from tilec.ops.rules import OpRules


def modules() -> Iterator[ModuleType]:
    """Every module of the package, by name."""
    for found in pkgutil.iter_modules(tilec.ops.__path__):
        yield import_module(f"{tilec.ops.__name__}.{found.name}")


@cache
def rules() -> dict[str, OpRules]:
    """From the full MLIR name of an operation (`tile.load`, `arith.addf`) to its rules."""
    table: dict[str, OpRules] = {}
    for module in modules():
        for rule in getattr(module, "RULES", ()):
            assert rule.name not in table, f"{rule.name} has two rules"
            table[rule.name] = rule
    return table
