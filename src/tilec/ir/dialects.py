"""MLIR's dialects, each imported when it is first used: `check` needs few, and waits for all.

`from tilec.ir.dialects import arith` gives what stands for the module `mlir.dialects.arith`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tilec.ir import quick_arith


class _Dialect:
    """A module of `mlir.dialects` that is not there yet."""

    def __init__(self, name: str, builders: Mapping[str, Any] | None = None) -> None:
        self._name = name
        vars(self).update(builders or {})

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(f"mlir.dialects.{self._name}"), attribute)
        setattr(self, attribute, found)  # the next look-up finds it here
        return found


arith = _Dialect("arith", quick_arith.BUILDERS)
cf = _Dialect("cf")
gpu = _Dialect("gpu")
llvm = _Dialect("llvm")
math = _Dialect("math")
nvvm = _Dialect("nvvm")
scf = _Dialect("scf")
vector = _Dialect("vector")


def load_all() -> None:
    """Import all that a build uses here, so that forks need not."""
    for name in ("arith", "cf", "gpu", "linalg", "llvm", "math", "nvvm", "scf", "tensor", "vector"):
        import_module(f"mlir.dialects.{name}")
