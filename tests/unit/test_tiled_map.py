"""What a tensor map says of a tensor, and which tensors have none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.manifest import TensorMap
from tilec.artifact.tensor_maps import DATA_TYPES
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.tiled_map import is_mappable, tiled_map

BASE = 2**40


def tensor(shape, strides=None, element="f32"):
    return Array(BASE, element, shape, strides or contiguous_strides(shape), 0)


def reading(rank):
    return TensorMap("x", (1,) * (rank - 1) + (16,), 0, False)


def writing(rank):
    return TensorMap("x", (1,) * (rank - 1) + (16,), 0, True)


def test_a_map_may_round_what_it_copies():
    wanted = TensorMap("x", (64, 32), 128, False, rounds=True)
    assert tiled_map(wanted, tensor((100, 40))).data_type == "TFLOAT32"


def test_axes_go_from_inside_out_and_strides_are_bytes():
    wanted = TensorMap("x", (1, 64, 32), 64, False)
    told = tiled_map(wanted, tensor((3, 100, 40), (8192, 48, 1), "bf16"))
    assert told.param == "x" and told.address == 0 and told.data_type == "BFLOAT16"
    assert told.extents == (40, 100, 3)
    assert told.stride_bytes == (96, 16384)
    assert told.box == (32, 64, 1)
    assert told.swizzle == 64
    assert told.promotion == 128  # 96 is no multiple of 128


@pytest.mark.parametrize(
    ("shape", "strides", "promotion"),
    [
        ((64,), (1,), 256),
        ((8, 64), (64, 1), 256),
        ((8, 64), (96, 1), 256),
        ((8, 64), (80, 1), 128),
        ((8, 4, 64), (512, 80, 1), 128),
        ((8, 1, 64), (512, 81, 1), 256),  # along one element there is no stride
    ],
)
def test_promotion_follows_the_strides(shape, strides, promotion):
    assert tiled_map(reading(len(shape)), tensor(shape, strides)).promotion == promotion


def test_a_vector_has_no_strides():
    told = tiled_map(reading(1), tensor((1000,)))
    assert (told.extents, told.stride_bytes, told.box) == ((1000,), (), (16,))


def test_every_element_type_has_a_data_type_of_its_width():
    widths = {"8": 1, "16": 2, "32": 4, "64": 8}
    assert DATA_TYPES.keys() == ELEMENT_BYTES.keys()
    for element, named in DATA_TYPES.items():
        assert widths[named.lstrip("ABDEFILNOTU")] == ELEMENT_BYTES[element]


@given(st.data())
def test_the_map_addresses_each_element_where_the_tensor_has_it(data):
    """By CUDA's definition: coordinates times strides, the innermost axis by elements."""
    rank = data.draw(st.integers(1, 5))
    shape = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    inner = contiguous_strides(tuple(4 * n for n in shape))
    order = data.draw(st.permutations(inner[:-1]))  # views: outer axes in any order
    array = tensor(shape, (*order, 1))
    assert is_mappable(reading(rank), array)
    told = tiled_map(reading(rank), array)
    for index in np.ndindex(shape):
        ours = sum(i * s * 4 for i, s in zip(index, array.strides, strict=True))
        outer = zip(index[-2::-1], told.stride_bytes, strict=True)
        assert ours == index[-1] * 4 + sum(i * s for i, s in outer)
    assert all(0 < s < 2**40 and s % 16 == 0 for s in told.stride_bytes)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((1,), (1,)),
        ((1, 1, 1, 1, 1), (0, 0, 0, 0, 0)),
        ((1, 3), (7, 1)),
        ((1, 3), (-7, 1)),
        ((2**31 - 1,), (1,)),
        ((4, 1), (4, 1)),
        ((4, 1), (4, 77)),  # columns of a wider tensor
        ((2, 8), (2**38 - 4, 1)),
        ((8, 2, 8), (8, 64, 1)),  # a transposed view
        ((8, 8), (4, 1)),  # rows that overlap are read all the same
    ],
)
def test_tensors_that_have_a_map(shape, strides):
    assert is_mappable(reading(len(shape)), tensor(shape, strides))


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((0,), (1,)),
        ((0, 8), (8, 1)),
        ((8, 0), (8, 1)),
        ((2**31,), (1,)),
        ((2**31, 8), (8, 1)),
        ((2, 8), (2**38, 1)),
        ((2, 8), (9, 1)),
        ((2, 8), (0, 1)),
        ((2, 8), (-8, 1)),
        ((2, 2, 8), (24, 9, 1)),
        ((1, 1, 1, 1, 1, 8), (8, 8, 8, 8, 8, 1)),
    ],
)
def test_tensors_that_have_none(shape, strides):
    assert not is_mappable(reading(len(shape)), tensor(shape, strides))


@pytest.mark.parametrize(("columns", "fits"), [(1, False), (4, True), (6, False), (8, True)])
def test_what_is_stored_through_a_map_ends_with_whole_pieces_of_16_bytes(columns, fits):
    assert is_mappable(writing(2), tensor((4, columns), (16, 1))) is fits
    assert is_mappable(reading(2), tensor((4, columns), (16, 1)))
