"""A header for C99 and C++17: the cubins of a program, and functions that launch its kernels."""

from __future__ import annotations

from tilec.emit.header.emit import emit_header
from tilec.emit.header.text import header_file

__all__ = ["emit_header", "header_file"]
