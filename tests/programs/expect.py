"""Packs every launch of the programs of this folder, with what the CPU execution makes of it.

python -m tests.programs.expect build/gpu-tests
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.gpu.packed import Launch, write
from tests.programs.cases import Case, cases, names, program


def main(folder: Path) -> None:
    for name in names():
        with program(name) as found:
            write(folder / f"{name}.npz", (_launch(case) for case in cases(name, found)))


def _launch(case: Case) -> Launch:
    before = {name: _bits(array) for name, array in case.before.items()}
    return Launch(
        symbol=case.symbol,
        arguments={p.name: before.get(p.name, case.scalars.get(p.name)) for p in case.parameters},
        elements={p.name: p.element for p in case.parameters if p.is_tensor},
        after={name: _bits(case.after[name]) for name in case.written},
        ulps=case.entry.ulps,
    )


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
