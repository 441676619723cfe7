"""Tensors of more than 2^31 elements, and strides beyond: indices are 64-bit numbers."""

from __future__ import annotations

import numpy as np
import pytest
from cubins import FOLDER
from element_bits import from_bits, to_bits

import tilec.runtime as rt

COUNT = 2**31 + 7
CHUNK = 2**28


def allocated(shape, element):
    """A tensor, if there is memory for it."""
    try:
        return rt.empty(shape, element)
    except Exception as error:  # what the driver raises, MemoryError among it
        pytest.skip(f"no memory for {shape} of {element}: {error}")


def counted(start, count):
    return ((np.arange(start, start + count, dtype=np.int64)) % 251).astype(np.uint8)


def test_every_element_of_a_long_tensor(load):
    """Two kernels, one after the other; each byte is compared."""
    module = load(f"{FOLDER}/large")
    x, z = allocated((COUNT,), "u8"), allocated((COUNT,), "i8")
    module.count(x)
    module["increment__i8_4096"](z, x.at(0, (COUNT,), "i8"))
    for start in range(0, COUNT, CHUNK):
        count = min(CHUNK, COUNT - start)
        expected = counted(start, count)
        for tensor, values in ((x, expected), (z, expected + np.uint8(1))):
            bits = tensor.at(start, (count,)).bits()
            wrong = np.flatnonzero(bits != values)
            assert not len(wrong), f"first wrong element: {start + int(wrong[0])}"


def test_the_ends_of_a_long_tensor_of_halves(load):
    """Set at the ends and around 2^31 only; elements between stay unread by the host."""
    module = load(f"{FOLDER}/large")
    x, z = allocated((COUNT,), "f16"), allocated((COUNT,), "f16")
    windows = [0, 2**30 - 50, 2**31 - 250, COUNT - 100]  # the last one crosses 2^31
    for number, start in enumerate(windows):
        values = to_bits(np.arange(100) + 100.0 * number, "f16")
        _fill(x.at(2 * start, (100,)), values)
    module["increment__f16_2048"](z, x)
    for number, start in enumerate(windows):
        values = from_bits(z.at(2 * start, (100,)).bits(), "f16")
        expected = np.arange(100) + 100.0 * number + 1
        np.testing.assert_array_equal(values, expected, f"from element {start}")


@pytest.mark.parametrize("gap", [2**30 + 16, 2**31 + 16, 2**31 + 5])
def test_rows_that_are_far_apart(load, gap):
    rows, columns = 3, 150
    module = load(f"{FOLDER}/large")
    memory = allocated((gap * (rows - 1) + columns,), "i8")
    x = memory.at(0, (rows, columns), strides=(gap, 1))
    y = rt.empty((columns, rows), "i8")
    values = np.random.default_rng(0).integers(0, 256, (rows, columns), np.uint8)
    for row in range(rows):
        _fill(memory.at(row * gap, (columns,)), values[row])
    module.turn(y, x)
    np.testing.assert_array_equal(y.bits(), values.T)


def test_an_output_whose_rows_are_far_apart(load):
    rows, columns, gap = 150, 3, 2**25 + 16
    module = load(f"{FOLDER}/large")
    memory = allocated((gap * (rows - 1) + columns,), "i8")
    y = memory.at(0, (rows, columns), strides=(gap, 1))
    values = np.random.default_rng(1).integers(0, 256, (columns, rows), np.uint8)
    x = rt.to_device(values.view(np.int8))
    module.turn(y, x)
    for row in range(rows):
        np.testing.assert_array_equal(memory.at(row * gap, (columns,)).bits(), values[:, row])


def test_rows_of_four_beyond_two_to_the_thirty_one(load):
    """Their stride is a constant of the program."""
    rows = 2**29 + 1
    module = load(f"{FOLDER}/large")
    x, z = allocated((rows, 4), "i8"), allocated((rows, 4), "i8")
    windows = [0, 2**29 - 64, rows - 32]  # the last one ends at the last row
    for number, row in enumerate(windows):
        _fill(x.at(4 * row, (32, 4)), np.full((32, 4), 10 * number + 1, np.uint8))
    module.increment_fours(z, x)
    for number, row in enumerate(windows):
        assert (z.at(4 * row, (32, 4)).bits() == 10 * number + 2).all(), f"from row {row}"


@pytest.mark.parametrize("rows", [2**22, 2**22 + 1])
def test_rows_are_normalised_to_the_last_one(load, rows):
    """2^31 elements, and 512 more."""
    columns = 512
    kernel = load("rmsnorm")["rmsnorm__bf16_1_1024"]
    x, y = allocated((rows, columns), "bf16"), allocated((rows, columns), "bf16")
    weight = rt.empty((columns,), "bf16")
    _fill(weight, to_bits(np.full(columns, 2.0), "bf16"))
    row = np.where(np.arange(columns) % 2, 3.0, -3.0)  # its root mean square is 3
    last = [0, 2**21, 2**22 - 1, rows - 1]
    for number in last:
        _fill(x.at(2 * columns * number, (columns,)), to_bits(row, "bf16"))
    kernel(y, x, weight, 0.0)
    for number in last:
        values = from_bits(y.at(2 * columns * number, (columns,)).bits(), "bf16")
        np.testing.assert_array_equal(values, 2 * np.sign(row), f"row {number}")


@pytest.mark.parametrize("shape", [(70_000, 3, 40), (3, 70_000, 40), (2, 3, 32 * 70_000)])
def test_grids_that_are_longer_than_an_axis_of_the_hardware(load, shape):
    z = rt.empty(shape, "i32")
    load(f"{FOLDER}/large").programs(z)
    a, b, c = np.ogrid[tuple(slice(n) for n in shape)]
    np.testing.assert_array_equal(z.numpy(), a * 100 + b * 10 + c // 32)


def test_more_than_two_to_the_thirty_two_programs(load):
    count = 2**32 + 5
    z = allocated((count,), "u8")
    load(f"{FOLDER}/large").count_one_by_one(z)
    # All windows at which a number of 31 or 32 bits would begin anew, and many others.
    starts = [0, 2**31 - CHUNK // 16, 2**32 - CHUNK // 8, *range(2**28, count, 2**29)]
    for start in starts:
        size = min(CHUNK // 8, count - start)
        bits = z.at(start, (size,)).bits()
        wrong = np.flatnonzero(bits != counted(start, size))
        assert not len(wrong), f"first wrong element: {start + int(wrong[0])}"


def _fill(tensor, bits):
    """Copies into a part of a tensor."""
    from tilec.runtime.cuda_driver import cuda_driver

    cuda_driver().copy_to_device(tensor.pointer, np.ascontiguousarray(bits), tensor.device)
