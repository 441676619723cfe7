"""Kernels against rivals on one GPU: descriptions of workloads, and the harness that measures them.

A description is a Python file that needs no GPU to be read: its `BENCHMARKS` say, for each kernel,
the cases (shapes, element types, how inputs are filled), what a right result is, what a call must
move and compute at least, and the rivals. `tilec bench` runs it; docs/bench.md shows one.
"""

from __future__ import annotations

from tilec.bench.description import (
    Benchmark,
    Call,
    Case,
    Input,
    Operations,
    Output,
    Rival,
    Scratch,
)
from tilec.bench.kernels import Kernels, fitting
from tilec.bench.tuning import tuned

__all__ = [
    "Benchmark",
    "Call",
    "Case",
    "Input",
    "Kernels",
    "Operations",
    "Output",
    "Rival",
    "Scratch",
    "fitting",
    "tuned",
]
