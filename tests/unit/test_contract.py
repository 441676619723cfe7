"""The contract of a launch: overlap, strides, scalars, dims, limits."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.signature import Parameter, Requirement
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.contract import (
    bound_dims,
    check_address,
    check_device,
    check_form,
    check_requires,
    check_type,
    grid_extents,
)
from tilec.runtime.errors import ContractError
from tilec.runtime.overlap import may_overlap, overlaps_itself
from tilec.runtime.scalars import rounded_to_bf16, scalar_of


def dense(pointer, element, *shape, device=0):
    return Array(pointer, element, shape, contiguous_strides(shape), device)


def addresses(array):
    """Every byte of a tensor, element by element."""
    size = ELEMENT_BYTES[array.element]
    for index in product(*map(range, array.shape)):
        start = array.pointer + size * sum(i * s for i, s in zip(index, array.strides, strict=True))
        yield range(start, start + size)


@st.composite
def arrays(draw):
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank)))
    strides = tuple(draw(st.lists(st.integers(0, 13), min_size=rank, max_size=rank)))
    element = draw(st.sampled_from(["i8", "f16", "f32"]))
    return Array(1000 + draw(st.integers(0, 40)), element, shape, strides, 0)


@settings(max_examples=400, deadline=None)
@given(arrays(), arrays())
def test_overlap_is_exactly_a_shared_byte(one, other):
    shared = {b for r in addresses(one) for b in r} & {b for r in addresses(other) for b in r}
    assert may_overlap(one, other) == bool(shared)


@settings(max_examples=300, deadline=None)
@given(arrays())
def test_a_tensor_that_passes_maps_indices_to_distinct_places(array):
    starts = [r.start for r in addresses(array)]
    if not overlaps_itself(array):
        assert len(set(starts)) == len(starts)


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(3)), st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_permuted_dense_tensors_do_not_overlap_themselves(order, extents):
    strides = contiguous_strides(tuple(extents))
    array = Array(0, "f32", tuple(extents[i] for i in order), tuple(strides[i] for i in order), 0)
    assert not overlaps_itself(array)


def test_slices_of_one_packed_buffer_are_told_apart():
    batch, sequence, width = 4, 1 << 20, 64
    strides = (sequence * 3 * width, 3 * width, 1)
    q, k, v = (
        Array(2**40 + 2 * width * i, "bf16", (batch, sequence, width), strides, 0) for i in range(3)
    )
    assert not any(may_overlap(a, b) for a, b in [(q, k), (k, v), (q, v)])
    wide = q._replace(shape=(batch, sequence, width + 1))
    assert may_overlap(wide, k) and not may_overlap(wide, v)


def test_columns_of_one_matrix_are_told_apart():
    even, odd = (Array(4 * i, "f32", (1 << 30, 1), (2, 1), 0) for i in range(2))
    assert not may_overlap(even, odd)
    assert may_overlap(even, odd._replace(pointer=8))


def test_a_search_without_end_answers_that_they_overlap():
    one = Array(0, "i8", (10**6, 10**6), (10**6 + 3, 7 * 10**5), 0)
    other = Array(1, "i8", (10**6, 10**6), (10**6 + 9, 9 * 10**5 + 1), 0)
    assert may_overlap(one, other)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (dense(0, "f16", 4, 8), "`x`: expected elements of type `f32`, got `f16`"),
        (dense(0, "f32", 4), r"`x`: expected 2 axes, got 1 \(shape \(4,\)\)"),
        (dense(0, "f32", 4, 9), "`x`: expected extent 8 of axis 1, got 9"),
    ],
)
def test_a_tensor_of_another_type_is_refused(array, message):
    with pytest.raises(ContractError, match=message):
        check_type(Parameter("x", "tensor", "f32", ("N", 8), "shared"), array)


def test_usize_elements_are_64_bit_integers_of_either_sign():
    parameter = Parameter("x", "tensor", "usize", ("N",), "shared")
    check_type(parameter, dense(0, "i64", 4))
    check_type(parameter, dense(0, "u64", 4))
    with pytest.raises(ContractError):
        check_type(parameter, dense(0, "i32", 4))


_FAR = (2**63 - 32) // 12  # the largest stride of four rows of 32 bytes


@pytest.mark.parametrize(
    ("own", "shape", "strides", "message"),
    [
        ("shared", (4, 8), (16, 2), "expected stride 1 of the last axis, got 2"),
        ("shared", (4, 8), (-8, 1), "stride -8 of axis 0 is negative"),
        ("shared", (4, -1), (1, 1), "extent -1 of axis 1 is negative"),
        ("mut", (-(2**63), 0), (1, 1), "extent -9223372036854775808 of axis 0 is negative"),
        ("shared", (2**40 + 1, 1), (1, 1), "extent 1099511627777 of axis 0 is above the limit"),
        (
            "shared",
            (4, 8),
            (_FAR + 1, 1),
            f"over {12 * (_FAR + 1) + 32} bytes, above the limit of 9",
        ),
        ("mut", (2, 1), (2**61, 1), r"strides \(2305843009213693952, 1\) spread the elements of"),
        (
            "shared",
            (3, 2),
            (2**70, 1),
            r"strides \(1180591620717411303424, 1\) spread the elements",
        ),
        ("mut", (4, 8), (7, 1), r"strides \(7, 1\) put several of its elements at one place"),
        ("part", (4, 8), (0, 1), "put several of its elements at one place"),
        ("atomic", (4, 8), (0, 1), "put several of its elements at one place"),
    ],
)
def test_a_form_that_kernels_do_not_take_is_refused(own, shape, strides, message):
    with pytest.raises(ContractError, match=f"`x`.*{message}"):
        check_form(
            Parameter("x", "tensor", "f32", ("N", "M"), own), Array(0, "f32", shape, strides, 0)
        )


@pytest.mark.parametrize(
    ("own", "shape", "strides"),
    [
        ("shared", (4, 8), (0, 1)),  # broadcast along rows, only read
        ("shared", (4, 8), (7, 1)),  # overlapping windows, only read
        ("mut", (4, 1), (1, 77)),  # the last axis has nothing to step to
        ("mut", (1, 8), (-5, 1)),
        ("mut", (0, 8), (-5, 3)),
        ("mut", (4, 8), (8, 1)),
        ("shared", (2**40, 1), (1, 1)),
        ("shared", (4, 8), (_FAR, 1)),
        ("mut", (2, 1), (2**61 - 1, 1)),
        ("shared", (1, 8), (2**70, 1)),
        ("mut", (0, 8), (2**70, 1)),
    ],
)
def test_forms_that_mean_what_they_say_are_taken(own, shape, strides):
    check_form(Parameter("x", "tensor", "f32", ("N", "M"), own), Array(0, "f32", shape, strides, 0))


def test_a_read_only_tensor_is_not_written():
    array = dense(0, "f32", 4)._replace(read_only=True)
    check_form(Parameter("x", "tensor", "f32", ("N",), "shared"), array)
    with pytest.raises(ContractError, match="`x` is written, and the tensor given is read-only"):
        check_form(Parameter("x", "tensor", "f32", ("N",), "mut"), array)


def test_equal_dims_are_equal():
    c, a = (Parameter(n, "tensor", "f32", e, "shared") for n, e in [("c", "MN"), ("a", "MK")])
    tensors = [(c, dense(0, "f32", 4, 8)), (a, dense(0, "f32", 4, 3))]
    assert bound_dims(tensors) == {"M": 4, "N": 8, "K": 3}
    tensors[1] = (a, dense(0, "f32", 5, 3))
    message = r"`a`: expected extent 4 of axis 0 \(`M`, as axis 0 of `c`\), got 5"
    with pytest.raises(ContractError, match=message):
        bound_dims(tensors)


def test_one_tensor_may_name_a_dim_twice():
    square = Parameter("s", "tensor", "f32", ("N", "N"), "shared")
    assert bound_dims([(square, dense(0, "f32", 3, 3))]) == {"N": 3}
    with pytest.raises(ContractError, match="expected extent 3 of axis 1"):
        bound_dims([(square, dense(0, "f32", 3, 4))])


def test_tensors_lie_on_one_device():
    x, y = (Parameter(n, "tensor", "f32", ("N",), "shared") for n in "xy")
    with pytest.raises(ContractError, match="`y` is on device 1, `x` on device 0"):
        check_device([(x, dense(0, "f32", 4)), (y, dense(0, "f32", 4, device=1))])


def test_a_requirement_that_does_not_hold_shows_its_values():
    requirement = Requirement("H % HK == 0", ("eq", ("rem", "H", "HK"), 0), 12)
    check_requires([requirement], {"H": 8, "HK": 4})
    message = r"`requires!\(H % HK == 0\)` does not hold, where H = 8, HK = 3"
    with pytest.raises(ContractError, match=message):
        check_requires([requirement], {"H": 8, "HK": 3})
    constant = Requirement("N <= B", ("le", "N", 1024), 12)
    with pytest.raises(ContractError, match=r"N <= B\)` \(here `N <= 1024`\) does not hold"):
        check_requires([constant], {"N": 1025})
    with pytest.raises(ContractError, match="HK = 0"):
        check_requires([requirement], {"H": 8, "HK": 0})


@pytest.mark.parametrize(
    ("grid", "n", "count"),
    [
        ((("ceildiv", "N", 1024),), 1025, 2),
        ((("ceildiv", "N", 1024), 7), 0, 0),
        (("N", "N"), 2**20, 2**40),
        ((), 5, 1),
    ],
)
def test_programs_are_counted(grid, n, count):
    assert math.prod(grid_extents(grid, {"N": n})) == count


def test_a_grid_beyond_the_limit_or_below_zero_is_refused():
    for grid, message in [
        (("N", ("add", "N", 1)), "the grid has 1099512676352 programs, above the limit"),
        ((("mul", "N", 2**40),), r"grid extent 0, `N \* 1099511627776`, is"),
        ((("sub", 3, "N"),), "grid extent 0, `3 - N`, is -1048573, where N = 1048576"),
    ]:
        with pytest.raises(ContractError, match=message):
            grid_extents(grid, {"N": 2**20})


def test_addresses_are_multiples_of_the_element():
    x = Parameter("x", "tensor", "f32", ("N",), "shared")
    check_address(x, dense(2**32 + 4, "f32", 4))
    check_address(x, dense(1, "f32", 0))
    with pytest.raises(
        ContractError, match=r"`x`: expected an address .* 4 bytes, got 0x100000002"
    ):
        check_address(x, dense(2**32 + 2, "f32", 4))


def test_tensors_end_before_addresses_do():
    x = Parameter("x", "tensor", "f32", ("N",), "shared")
    check_address(x, dense(2**64 - 16, "f32", 4))
    check_address(x, dense(2**64 - 4, "f32", 0))
    with pytest.raises(
        ContractError, match=r"`x`: 16 bytes from address 0xfffffffffffffff4 on pass the end of"
    ):
        check_address(x, dense(2**64 - 12, "f32", 4))


@pytest.mark.parametrize(
    ("element", "given", "passed"),
    [
        ("bool", True, np.bool_(True)),
        ("i8", -128, np.int8(-128)),
        ("u8", 255, np.uint8(255)),
        ("i64", -(2**63), np.int64(-(2**63))),
        ("u64", 2**64 - 1, np.uint64(2**64 - 1)),
        ("usize", 2**63 - 1, np.int64(2**63 - 1)),
        ("i32", np.int64(7), np.int32(7)),
        ("f32", 0.1, np.float32(0.1)),
        ("f32", 2, np.float32(2)),
        ("f64", np.float32(0.5), np.float64(0.5)),
        ("f16", 1.5, np.float16(1.5)),
        ("f32", -math.inf, np.float32(-math.inf)),
        ("bf16", 1.0, np.uint16(0x3F80)),
        ("bf16", -0.0, np.uint16(0x8000)),
        ("bf16", math.inf, np.uint16(0x7F80)),
        ("bf16", math.nan, np.uint16(0x7FC0)),
    ],
)
def test_scalars_are_passed_at_their_own_width(element, given, passed):
    scalar = scalar_of("s", element, given).passed
    assert scalar.dtype == passed.dtype and scalar.tobytes() == passed.tobytes()


@pytest.mark.parametrize(
    ("element", "given"),
    [
        ("i8", 300), ("i8", -129), ("u8", -1), ("i64", 2**63), ("u64", 2**64), ("usize", -1),
        ("usize", 2**63), ("i32", 1.0), ("i32", True), ("i32", np.float32(1)), ("bool", 1),
        ("f32", True), ("f32", "1"), ("f32", None), ("f32", 1e300), ("f16", 1e5), ("f64", 10**400),
        ("bf16", 3.4e38), ("f32", np.zeros(2)),
    ],
)  # fmt: skip
def test_scalars_of_another_kind_or_out_of_range_are_refused(element, given):
    with pytest.raises(ContractError, match="`s`"):
        scalar_of("s", element, given)


def test_bf16_is_rounded_once():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 2**32, 2000, dtype=np.uint32).view(np.float32)
    numbers = numbers[np.abs(numbers) < 3.3e38]
    expected = numbers.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert [rounded_to_bf16(float(x)) for x in numbers] == expected.tolist()
    # Halfway between two bf16 numbers but for a bit that f32 does not have.
    assert rounded_to_bf16(1 + 2**-8 + 2**-40) == 1 + 2**-7
    assert rounded_to_bf16(1 + 2**-8) == 1.0
