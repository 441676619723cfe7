"""Modules in text form, rewritten and printed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from tilec.ir.dialect import context


def rewritten(text: str, transform: Callable[[ir.Module], Any]) -> tuple[str, Any]:
    """The module after a transform, and what the transform gave."""
    with context():
        module = ir.Module.parse(text)
        given = transform(module)
        assert module.operation.verify()
        return str(module), given
