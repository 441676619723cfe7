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


def _fill(tensor, bits):
    """Copies into a part of a tensor."""
    from tilec.runtime.cuda_driver import cuda_driver

    cuda_driver().copy_to_device(tensor.pointer, np.ascontiguousarray(bits), tensor.device)
