"""The programs of this folder, lowered and executed thread by thread: what the CPU execution gives.

A few launches of each kernel, since threads are slow here; a GPU runs all (`tests/gpu`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.gpu.distance import distance
from tests.programs.cases import FOLDER, Case, cases, program

sys.path.append(str(Path(__file__).parent.parent / "codegen"))
from lowered import ALIGNED, ANY, Program
from lowered import program as lowered_program

# Float arithmetic is of LLVM, not ours; sizes and scalars have too many programs to be quick.
FILES = ("control", "memory", "reduce", "shapes")
MOST_ELEMENTS = 8000


def _chosen(name: str) -> Iterator[Case]:
    """One launch of each instance, its first that is small."""
    seen = set()
    with program(name) as found:
        for case in cases(name, found):
            size = sum(array.size for array in case.before.values())
            if case.symbol not in seen and size <= MOST_ELEMENTS:
                seen.add(case.symbol)
                yield case


@pytest.mark.parametrize("name", FILES)
def test_threads_do_what_programs_mean(name: str) -> None:
    chosen = list(_chosen(name))
    with lowered_program((FOLDER / f"{name}.tile").read_text(encoding="utf-8")) as lowered:
        for case in chosen:
            for vector_bytes in (ALIGNED, ANY):
                if vector_bytes == ANY or _is_aligned(lowered, case):
                    _check(lowered, case, vector_bytes)


def _is_aligned(lowered: Program, case: Case) -> bool:
    """Whether a launcher would take the aligned variant, tensors being dense."""
    point, _ = lowered.lowered(case.symbol, ALIGNED)
    outer = {
        name: [s for n, s in zip(a.shape[:-1], a.strides, strict=False) if n > 1]
        for name, a in case.before.items()
    }
    return not any(s % multiple for name, multiple in point.alignments.items() for s in outer[name])


def _check(lowered: Program, case: Case, vector_bytes: int) -> None:
    tensors = {name: array.copy() for name, array in case.before.items()}
    lowered.run(case.symbol, {**tensors, **case.scalars}, vector_bytes)
    elements = {parameter.name: parameter.element for parameter in case.parameters}
    for name in case.written:
        steps = distance(_bits(tensors[name]), _bits(case.after[name]), elements[name])
        wrong = np.argwhere(steps > case.entry.ulps)
        assert not len(wrong), (
            f"{case}, {vector_bytes}-byte variant: `{name}` is wrong first at {wrong[0]}: "
            f"expected {case.after[name][tuple(wrong[0])]}, got {tensors[name][tuple(wrong[0])]}"
        )


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
