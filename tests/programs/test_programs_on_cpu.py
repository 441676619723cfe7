"""The programs that try the code generator, by the CPU execution, against NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.gpu.distance import distance
from tests.programs.cases import Case, cases, entries_of, names, program, written
from tests.programs.table import TABLE


def test_every_kernel_is_in_the_table() -> None:
    assert set(written()) == set(TABLE)


@pytest.mark.parametrize("name", names())
def test_program(name: str) -> None:
    seen: set[str] = set()
    with program(name) as found:
        for case in cases(name, found):
            seen.add(case.symbol.partition("__")[0])
            _check(case)
    assert seen == set(entries_of(name)), "the table names kernels that are not there"


def _check(case: Case) -> None:
    if case.entry.reference is None:
        return
    with np.errstate(all="ignore"):
        expected = case.entry.reference(_given(case))
    elements = {parameter.name: parameter.element for parameter in case.parameters}
    for name, values in expected.items():
        result = case.after[name]
        assert values.dtype == result.dtype, f"{case}: the reference of `{name}` is {values.dtype}"
        steps = distance(_bits(result), _bits(values), elements[name])
        wrong = np.argwhere(steps > case.entry.ulps)
        if len(wrong):
            where = tuple(wrong[0])
            raise AssertionError(
                f"{case}: `{name}` is wrong at {len(wrong)} places, first {list(map(int, where))}: "
                f"expected {values[where]!r}, got {result[where]!r}"
            )


def _given(case: Case) -> SimpleNamespace:
    return SimpleNamespace(**case.before, **case.scalars, **case.constants)


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
