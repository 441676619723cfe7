"""Every kernel of `kernels/` by the CPU execution, which is its meaning, against float64."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.gpu.element_bits import from_bits, to_bits
from tests.kernels.cases import KERNELS, Argument, Output, Problem, problems, symbols
from tests.on_cpu import NUMPY, Compiled, compiled

LIBRARY = Path(__file__).parent.parent.parent / "kernels"


def test_the_table_names_every_instance_of_the_library() -> None:
    files = {path.stem for path in LIBRARY.glob("*.tile")}
    assert files == set(KERNELS)
    for name in sorted(files):
        with compiled(LIBRARY / f"{name}.tile") as program:
            assert set(program.symbols) == {s for file, s in symbols() if file == name}


@pytest.mark.parametrize(("name", "symbol"), symbols())
def test_kernel(name: str, symbol: str) -> None:
    with compiled(LIBRARY / f"{name}.tile") as program:
        for number, problem in enumerate(problems(symbol)):
            found = _run(program, problem, None)
            fault = problem.fault_of(values_of(problem, found))
            assert fault is None, fault
            if number % 2:
                again = _run(program, problem, number)
                for name in problem.outputs:
                    message = f"{problem}: `{name}` by order"
                    np.testing.assert_array_equal(_bits(again[name]), _bits(found[name]), message)


def values_of(problem: Problem, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the outputs among these arrays hold: floats as float64."""
    outputs = {n: a for n, a in problem.arguments.items() if isinstance(a, Output)}
    return {n: from_bits(_bits(arrays[n]), output.element) for n, output in outputs.items()}


def _run(program: Compiled, problem: Problem, order: int | None) -> dict[str, np.ndarray]:
    arrays = {name: _array(argument) for name, argument in problem.arguments.items()}
    program.run(problem.symbol, arrays, order)
    return arrays


def _array(argument: Argument | Output | float) -> np.ndarray | float:
    if isinstance(argument, Argument):
        return to_bits(argument.values, argument.element).view(NUMPY[argument.element])
    if not isinstance(argument, Output):
        return argument
    dtype = np.dtype(NUMPY[argument.element])
    if argument.given is not None:
        return to_bits(argument.given, argument.element).view(dtype)
    return np.full((*argument.shape, dtype.itemsize), 0xFF, np.uint8).view(dtype)[..., 0]


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")
