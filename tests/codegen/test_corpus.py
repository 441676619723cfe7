"""The kernel library and the programs of `tests/programs`, thread by thread.

Every kernel at its small launches, in the variant for any address and the aligned one in turn: the
GPU tests run the rest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lowered import ALIGNED, ANY, Program, program
from simt import GivenUp

from tests.gpu.element_bits import from_bits
from tests.kernels.cases import KERNELS, Output, Problem, problems
from tests.kernels.test_on_cpu import _array, _bits
from tests.programs import cases as corpus

LIBRARY = Path(__file__).parent.parent.parent / "kernels"
LARGEST = 3000  # elements of a tensor; a block of threads takes about 10 ms
LAUNCHES = 2  # of each instance
STEPS = 60_000  # operations of a launch: a second or two


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernel(name: str) -> None:
    with program((LIBRARY / f"{name}.tile").read_text(encoding="utf-8")) as threads:
        for turn, symbol in enumerate(threads.instances):
            for number, problem in enumerate(_small(symbol)):
                _run_kernel(threads, problem, (ANY, ALIGNED)[(turn + number) % 2])


def _small(symbol: str) -> list[Problem]:
    found = []
    for problem in problems(symbol):
        sizes = [np.size(getattr(a, "values", 0)) for a in problem.arguments.values()]
        if max(sizes) <= LARGEST:
            found.append(problem)
    return found[-LAUNCHES:]


def _run_kernel(threads: Program, problem: Problem, vector_bytes: int) -> None:
    arrays = {name: _array(argument) for name, argument in problem.arguments.items()}
    threads.run(problem.symbol, arrays, vector_bytes)
    output = problem.arguments[problem.output]
    assert isinstance(output, Output)
    fault = problem.fault_of(from_bits(_bits(arrays[problem.output]), output.element))
    assert fault is None, fault


@pytest.mark.parametrize("name", corpus.names())
def test_program(name: str) -> None:
    text = (corpus.FOLDER / f"{name}.tile").read_text(encoding="utf-8")
    done: dict[str, int] = {}
    with corpus.program(name) as found, program(text) as threads:
        for case in corpus.cases(name, found):
            largest = max((array.size for array in case.before.values()), default=0)
            if largest <= LARGEST and done.get(case.symbol, 0) < LAUNCHES:
                done[case.symbol] = done.get(case.symbol, 0) + 1
                _run_case(threads, case, (ANY, ALIGNED)[(len(done) + done[case.symbol]) % 2])


def _run_case(threads: Program, case: corpus.Case, vector_bytes: int) -> None:
    arrays = {name: array.copy() for name, array in case.before.items()}
    try:
        threads.run(case.symbol, {**arrays, **case.scalars}, vector_bytes, steps=STEPS)
    except GivenUp:
        return
    for name, wanted in case.after.items():
        got = arrays[name]
        if got.tobytes() != wanted.tobytes():
            # NaN has many bits, and sums are in another order.
            with np.errstate(invalid="ignore"):
                got, wanted = got.astype(np.float64), wanted.astype(np.float64)
            rtol = 1e-5 if case.entry.ulps else 0
            np.testing.assert_allclose(got, wanted, rtol, rtol, err_msg=f"`{name}` of {case}")
