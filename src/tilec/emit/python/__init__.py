"""Python beside the cubin: a module with types for editors, and operations of PyTorch."""

from __future__ import annotations

from tilec.emit.python.emit import emit_python, python_files

__all__ = ["emit_python", "python_files"]
