"""The support part in Rust does what the runtime's modules in Python do, as that in C does."""

from __future__ import annotations

from random import Random

from tests.emit.test_support import (  # noqa: F401  (they run here with other fixtures)
    _array,
    test_expressions_have_the_values_of_the_manifest,
    test_numbers_are_written_as_python_writes_them,
    test_numbers_round_to_bf16_once,
    test_numbers_round_to_f16_as_numpy_rounds,
    test_strides_beyond_all_memory_do_not_wrap,
    test_what_does_not_fit_in_64_bits_is_told,
)
from tilec.runtime.overlap import may_overlap, overlaps_itself


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
