"""Diagnostics: what is wrong with a user's program, where, and the way out."""

from tilec.diagnostics.diagnostic import CompileError, Diagnostic, Label, Severity

__all__ = ["CompileError", "Diagnostic", "Label", "Severity"]
