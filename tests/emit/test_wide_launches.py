"""Extents, strides and grids beyond 32 bits, and of every size, from one header."""

from __future__ import annotations

import pytest

from tests.emit.statuses import STATUS
from tests.emit.toolchain import CXX_STANDARD, STRICT, compiled, cxx_compiler
from tilec.runtime.array import Array

WIDE = """
#include "{header}"
template <class T> constexpr bool wide = std::is_same_v<std::remove_extent_t<T>, int64_t>;
static_assert(wide<decltype(tilec_tensor::extents)> && wide<decltype(tilec_tensor::strides)>);
static_assert(sizeof(tilec_tensor::data) == 8);
// What functions take beside tensors and scalars are extents of tensors that they make.
static_assert(std::is_same_v<decltype(tilec_vector), tilec_tensor(void *, tilec_dtype, int64_t)>);
static_assert(std::is_same_v<decltype(tilec_matrix),
                             tilec_tensor(void *, tilec_dtype, int64_t, int64_t)>);
"""


def vectors(n):
    return [Array(2**50 * number, "f32", (n,), (1,), 0) for number in (1, 2, 3)]


def added(headers, n):
    outcome = headers.call("add__f32_1024", [*vectors(n), 1.0])
    assert outcome.status == 0, outcome.message
    return headers.fake


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (1023, 1), (1024, 1), (1025, 2), (10**7, 9766)])
def test_the_grid_follows_from_the_extents_of_a_call(headers, n, blocks):
    assert list(added(headers, n).grid) == [blocks, 1, 1]


@pytest.mark.parametrize("n", [2**31 - 1, 2**31, 2**31 + 8, 2**32, 2**40])
def test_extents_are_passed_in_64_bits(headers, n):
    fake = added(headers, n)
    assert bytes(fake.parameters[4])[:8] == n.to_bytes(8, "little")
    assert fake.grid[0] * fake.grid[2] >= -(-n // 1024)


def copied(headers, rows, columns_of_programs):
    """A launch of so many programs along y, and along x."""
    shape = (2 * rows, 64)
    tensors = [Array(2**50 * number, "i8", shape, (64, 1), 0) for number in (1, 2)]
    return headers.call("copy__i8", [*tensors, columns_of_programs])


@pytest.mark.parametrize(
    ("rows", "columns", "grid"),
    [
        (65535, 2, [2, 65535, 1]),
        (70_000, 2, [140_000, 1, 1]),
        (2**26, 100, [2**31 - 1, 1, 4]),  # more than 2^32 programs
    ],
)
def test_a_grid_beyond_an_axis_of_the_hardware_is_folded(headers, rows, columns, grid):
    outcome = copied(headers, rows, columns)
    assert (outcome.status, list(headers.fake.grid)) == (0, grid), outcome.message


def test_a_grid_beyond_all_of_it_is_an_error_and_nothing_is_launched(headers):
    outcome = copied(headers, 2**35, 100)
    assert outcome.status == STATUS["TILEC_ERROR_GRID"]
    assert "`copy__i8`: the grid has 3435973836800 programs, above the limit" in outcome.message
    assert headers.fake.launches == 0


def test_strides_are_passed_in_64_bits(headers):
    rows = [Array(2**50 * n, "bf16", (5, 64), (2**33 + n, 1), 0) for n in (1, 2)]
    outcome = headers.call("scaled__bf16", [*rows, 2.0])
    assert outcome.status == 0, outcome.message
    passed = [bytes(headers.fake.parameters[slot])[:8] for slot in (1, 3)]
    assert passed == [(2**33 + n).to_bytes(8, "little") for n in (1, 2)]


def many(extent=64, number=4):
    """96 tensors of two axes, each `Dim` of which is `extent`, and four numbers."""
    tensors = [Array(2**34 * n, "bf16", (extent, extent), (extent, 1), 0) for n in range(1, 97)]
    return [*tensors, 1, 2, 3, number]


@pytest.mark.parametrize(("extent", "variant", "maps"), [(64, "many__tma", 12), (63, "many", 0)])
def test_a_kernel_may_have_many_parameters_dims_and_maps(headers, extent, variant, maps):
    outcome = headers.call("many", many(extent))
    assert outcome.status == 0, outcome.message
    fake = headers.fake
    assert (fake.kernel.decode(), fake.parameter_count) == (variant, 2 * 96 + 4 + 97 + maps)
    others = 2 * 96 + 4 + 97
    passed = [int.from_bytes(fake.parameters[n][:8], "little") for n in range(others)]
    wanted = [number for n in range(1, 97) for number in (2**34 * n, extent)]
    assert passed == [*wanted, 1, 2, 3, 4, *[extent] * 97]
    # `struct told` of the fake driver: what a map is made of, the address after 8 bytes.
    told = [int.from_bytes(fake.parameters[others + n][8:16], "little") for n in range(maps)]
    assert told == [2**34 * n for n in range(1, maps + 1)]


def test_numbers_of_the_last_of_many_parameters_are_told_in_messages(headers):
    outcome = headers.call("many", many(number=5))
    assert outcome.status == STATUS["TILEC_ERROR_REQUIRES"]
    assert outcome.message == "`many`: `requires!(n3 != 5)` does not hold, where n3 = 5"


def test_numbers_of_c_are_as_wide(headers, tmp_path):
    source = tmp_path / "wide.cpp"
    header = headers.path.with_name("sample.h")
    source.write_text(WIDE.format(header=header))
    compiled(cxx_compiler(), f"-std={CXX_STANDARD}", *STRICT, "-fsyntax-only", source)
