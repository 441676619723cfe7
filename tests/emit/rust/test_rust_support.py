"""The support part in Rust does what the runtime's modules in Python do, as that in C does."""

from __future__ import annotations

from random import Random

from tests.emit.test_support import (  # noqa: F401  (they run here with other fixtures)
    _array,
    test_numbers_are_written_as_python_writes_them,
    test_numbers_round_to_bf16_once,
    test_numbers_round_to_f16_as_numpy_rounds,
    test_strides_beyond_all_memory_do_not_wrap,
)
from tilec.artifact.expression import DivisionByZero, evaluate
from tilec.runtime.overlap import may_overlap, overlaps_itself

_NUMBERS = (0, 1, -1, 2, -7, 63, 64, 127, 128, 1000, 2**31, 2**40, -(2**63), 2**63 - 1)


def test_expressions_have_the_values_of_the_manifest(probe, expressions):
    random = Random("values")
    compared = 0
    for which, expression in enumerate(expressions):
        for _ in range(4):
            wholes = [random.choice(_NUMBERS) for _ in range(3)]
            number = random.choice((0.5, -0.0, 7.75, float("inf")))
            values = {"n": wholes[0], "m": wholes[1], "k": wholes[2], "real": number}
            value, noted = probe.evaluated(which, wholes, number)
            try:
                evaluate(expression, values, total=False)
                assert not noted & 2
            except DivisionByZero:
                assert noted & 2
            if not noted & 1:
                assert value == int(evaluate(expression, values)), (expression, values)
                compared += 1
    assert compared > 1000


def test_overlaps_are_found_as_the_runtime_finds_them(probe):
    random = Random("overlaps")
    found = set()
    for number in range(1000):
        one, other = (_array(random, number % 20 == 0) for _ in range(2))
        wanted = may_overlap(one, other)
        found.add(wanted)
        assert probe.overlap(one, other) == wanted, (one, other)
        assert probe.overlaps_itself(one) == overlaps_itself(one), one
    assert found == {True, False}
