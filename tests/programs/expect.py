"""Packs every launch of the programs, written and generated, and what the CPU makes of it.

python -m tests.programs.expect build/gpu-tests
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from tests.gpu.packed import Launch, write
from tests.programs.cases import Case, cases, names, program


def main(folder: Path) -> None:
    # Fresh processes: MLIR's threads do not survive a fork.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(partial(_pack, folder), names()))


def _pack(folder: Path, name: str) -> None:
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
    # NumPy gives what has no axes one.
    packed = np.ascontiguousarray(array).reshape(array.shape)
    return packed.view(f"u{array.dtype.itemsize}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
