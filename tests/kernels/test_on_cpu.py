"""Every kernel of `kernels/` by the CPU execution, which is its meaning, against float64."""

from __future__ import annotations

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
            results = _run(program, problem, None)
            again = _run(program, problem, number) if number % 2 else {}
            for name, result in results.items():
                fault = problem.fault_of(from_bits(_bits(result), _element(problem, name)), name)
                assert fault is None, fault
                if again:
                    bits, text = _bits(again[name]), f"{problem}: by order"
                    np.testing.assert_array_equal(bits, _bits(result), text)


def _element(problem: Problem, name: str) -> str:
    output = problem.arguments[name]
    assert isinstance(output, Output)
    return output.element


def _run(program: Compiled, problem: Problem, order: int | None) -> dict[str, np.ndarray]:
    """The outputs."""
    arrays = {name: _array(argument) for name, argument in problem.arguments.items()}
    program.run(problem.symbol, arrays, order)
    return {name: arrays[name] for name in problem.outputs}


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
