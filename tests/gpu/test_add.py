"""z = x + y, element by element: IEEE addition, so the nearest number and no tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from element_bits import rounded
from host_driver import DRY_RUN

import tilec.runtime as rt

ELEMENTS = ("f32", "f16", "bf16")
SIZES = (0, 1, 2, 31, 1023, 1024, 1025, 4099, 100_003)


def numbers(n, seed):
    return np.random.default_rng(seed).normal(size=n)


def expected_sum(x, y, element):
    """The sum of the rounded inputs, rounded once more.

    Float64 holds sums of such numbers to more than twice their precision and two bits, so that
    rounding twice is rounding once (Figueroa, "When is double rounding innocuous?").
    """
    return rounded(rounded(x, element) + rounded(y, element), element)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("misaligned_elements", [(0, 0, 0), (1, 1, 1), (0, 3, 0), (1, 0, 7)])
def test_sums_are_exact_at_any_size_and_address(load, zones, element, n, misaligned_elements):
    size = 4 if element == "f32" else 2
    at_z, at_x, at_y = (k * size for k in misaligned_elements)
    x, y = numbers(n, 1), numbers(n, 2)
    z = zones.output((n,), element, misaligned_bytes=at_z)
    load("add").add(
        z,
        zones.input(x, element, misaligned_bytes=at_x),
        zones.input(y, element, misaligned_bytes=at_y),
    )
    np.testing.assert_array_equal(zones.values(z), expected_sum(x, y, element))


@pytest.mark.parametrize("element", ELEMENTS)
def test_special_numbers_add_as_ieee_says(load, zones, element):
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 6e4, 1e-7])
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    z = zones.output(x.shape, element)
    with np.errstate(invalid="ignore"):
        expected = expected_sum(x, y, element)
    load("add").add(z, zones.input(x, element), zones.input(y, element))
    np.testing.assert_array_equal(zones.values(z), expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(zones.values(z))[zeros], np.signbit(expected)[zeros])


@pytest.mark.skipif(DRY_RUN, reason="a dry run has no streams")
def test_an_asynchronous_launch_gives_the_same(load, zones, device):
    from cuda.core import Device

    x, y = numbers(4099, 3), numbers(4099, 4)
    z = zones.output(x.shape, "f32")
    handle = load("add").add.launch(
        z, zones.input(x, "f32"), zones.input(y, "f32"), stream=Device(device).create_stream()
    )
    handle.wait()
    assert handle.done
    np.testing.assert_array_equal(zones.values(z), expected_sum(x, y, "f32"))


def test_a_broken_contract_launches_nothing(load, zones):
    add = load("add").add
    x = zones.input(numbers(64, 5), "f32")
    z = zones.output((65,), "f32")
    with pytest.raises(rt.ContractError, match="`x`: expected extent 65 of axis 0"):
        add(z, x, x)
    with pytest.raises(rt.ContractError, match="`z` is written and overlaps `x`"):
        add(x, x, x)
    assert np.isnan(zones.values(z)).all()
