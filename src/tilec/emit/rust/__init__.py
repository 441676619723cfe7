"""A module for Rust: the cubins of a program, and functions that launch its kernels."""

from __future__ import annotations

from tilec.emit.rust.emit import emit_rust

__all__ = ["emit_rust"]
