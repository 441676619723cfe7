"""The support part in C does what the runtime's modules in Python do."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.emit.limits import LIMITS, TOO_LARGE
from tests.emit.probe import Probe
from tilec.artifact.expression import OPERATIONS, DivisionByZero, TooLarge, evaluate
from tilec.runtime.array import Array
from tilec.runtime.overlap import may_overlap, overlaps_itself
from tilec.runtime.scalars import rounded_to_bf16

_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
_TRUTHS = (*_COMPARING, "and", "or", "not")
_WHOLES = tuple(name for name in OPERATIONS if name not in (*_TRUTHS, "select"))
_NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    -7,
    63,
    64,
    127,
    128,
    255,
    1000,
    -1000,
    2**31,
    2**40,
    -(2**63),
    2**63 - 1,
)


LIMITED_EXPRESSIONS = list(dict.fromkeys(expression for expression, *_ in LIMITS))


def whole(random, depth):
    """An expression that is a whole number."""
    if depth == 0:
        return random.choice(("n", "m", "k", random.choice(_NUMBERS), 2**64 - 1, -(2**63)))
    name = random.choice((*_WHOLES, "select"))
    if name == "select":
        return (name, truth(random, depth - 1), whole(random, depth - 1), whole(random, depth - 1))
    return (name, *(whole(random, depth - 1) for _ in range(OPERATIONS[name].arity)))


def truth(random, depth):
    """An expression that is true or false."""
    if depth == 0:
        return random.choice((True, False))
    name = random.choice((*_TRUTHS, "real"))
    if name == "real":
        return (random.choice(_COMPARING), real(random, depth - 1), real(random, depth - 1))
    operand = whole if name in _COMPARING else truth
    return (name, *(operand(random, depth - 1) for _ in range(OPERATIONS[name].arity)))


def real(random, depth):
    """An expression that is a real number."""
    if depth <= 0:
        return random.choice(("real", 0.5, -3.25, 1e30))
    name = random.choice(("min", "max", "neg", "abs"))
    return (name, *(real(random, depth - 1) for _ in range(OPERATIONS[name].arity)))


@pytest.fixture(scope="module")
def expressions():
    random = Random("expressions")
    return [*LIMITED_EXPRESSIONS, *((whole, truth)[i % 2](random, i % 5) for i in range(600))]


@pytest.fixture(scope="module")
def probe(tools, expressions):
    return Probe(tools / "probe", ("n", "m", "k"), expressions)


def test_expressions_have_the_values_of_the_manifest(probe, expressions):
    random = Random("values")
    compared = 0
    for which, expression in enumerate(expressions):
        for _ in range(8):
            wholes = [random.choice(_NUMBERS) for _ in range(3)]
            number = random.choice((0.5, -0.0, 7.75, float("inf"), float("nan")))
            values = {"n": wholes[0], "m": wholes[1], "k": wholes[2], "real": number}
            value, noted = probe.evaluated(which, wholes, number)
            try:
                wanted = int(evaluate(expression, values))
            except TooLarge:
                assert noted & 1
                continue
            assert (value, noted & 1) == (wanted, 0), (expression, values)
            compared += 1
            try:
                evaluate(expression, values, total=False)
                assert not noted & 2
            except DivisionByZero:
                assert noted & 2
    assert compared > 4 * len(expressions)


@pytest.mark.parametrize("number", range(len(LIMITS)))
def test_what_does_not_fit_in_64_bits_is_told(number, probe, expressions):
    expression, n, m, wanted = LIMITS[number]
    value, noted = probe.evaluated(expressions.index(expression), [n, m, 0], 0.0)
    assert noted & 1 == (wanted is TOO_LARGE)
    assert wanted is TOO_LARGE or value == wanted


def _array(random, hard):
    rank = random.randrange(1, 9 if hard else 5)
    shape = tuple(random.choice((1, 2, 3, 5, 17)) for _ in range(rank))
    if hard:
        strides = tuple(random.randrange(1, 10**6) for _ in range(rank))
    else:
        strides = tuple(random.choice((0, 1, 2, 3, 16, 24, 64, 100)) for _ in range(rank))
    return Array(
        2**40 + random.randrange(4000), random.choice(("u8", "f32", "f64")), shape, strides, 0
    )


@pytest.mark.parametrize("hard", [False, True], ids=["usual", "hard"])
def test_overlaps_are_found_as_the_runtime_finds_them(probe, hard):
    random = Random(f"overlaps {hard}")
    found = []
    for _ in range(150 if hard else 3000):
        one, other = _array(random, hard), _array(random, hard)
        found.append(may_overlap(one, other))
        assert probe.overlap(one, other) == found[-1], (one, other)
        assert probe.overlaps_itself(one) == overlaps_itself(one), one
    assert {True, False} <= set(found) or hard


def test_strides_beyond_all_memory_do_not_wrap(probe):
    wide = Array(2**40, "f64", (2**40, 2), (2**63 - 1, 1), 0)
    near = Array(2**40 + 8, "f64", (4,), (1,), 0)
    assert probe.overlap(wide, near) and may_overlap(wide, near)
    assert not probe.overlap(wide, near._replace(pointer=2**40 + 16))


def test_numbers_round_to_f16_as_numpy_rounds(probe):
    random = Random("f16")
    for number in _reals(random, 65519.0):
        bits = probe.library.probe_narrowed(number, 5, 10)
        assert bits == int(np.float16(number).view(np.uint16)), number
        wide = probe.library.probe_widened(bits, 5, 10)
        assert np.float64(wide).tobytes() == np.float64(np.float16(number)).tobytes()


def test_numbers_round_to_bf16_once(probe):
    random = Random("bf16")
    for number in _reals(random, 3.38e38):
        bits = probe.library.probe_narrowed(number, 8, 7)
        wanted = rounded_to_bf16(number)
        assert bits == int(np.float32(wanted).view(np.uint32)) >> 16, number
        assert probe.library.probe_widened(bits, 8, 7) == wanted


def _reals(random, most):
    yield from (0.0, -0.0, 1.0, -1.0, 2.0**-24, 2.0**-25, 2.0**-14, 5e-324, float("inf"), most)
    yield from (2.0**-133, 2.0**-134, 1.5 * 2.0**-134, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11)
    for _ in range(3000):
        number = random.uniform(1, 2) * 2.0 ** random.randrange(-140, 128)
        yield random.choice((1, -1)) * min(number, most)


def test_numbers_are_written_as_python_writes_them(probe):
    random = Random("text")
    numbers = [0.0, -0.0, 1.0, 0.1, 65520.0, 1e15, 1e16, 1e-4, 1e-5, 1 / 3, 5e-324, 1.7e308]
    numbers += [random.uniform(-1, 1) * 10.0 ** random.randrange(-30, 30) for _ in range(300)]
    # Below these neighbours are half as far: the nearest text may be another number's.
    numbers += [sign * 2.0**power for power in range(-1074, 1024) for sign in (1, -1)]
    for number in (*numbers, float("inf"), float("nan")):
        assert probe.real_text(number) == repr(number)
