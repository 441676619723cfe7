"""Swizzled tiles, from the definition: where each element is, and what each copy writes."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from tilec.layout.swizzled import SwizzledTile

# Shape, bytes of an element, swizzle.
TILES = [
    ((128, 64), 2, 128),
    ((64, 128), 2, 128),
    ((16, 256), 2, 128),
    ((64, 32), 2, 64),
    ((64, 96), 2, 64),
    ((32, 48), 2, 32),
    ((64, 144), 2, 32),
    ((64, 16), 4, 64),
    ((64, 32), 1, 32),
    ((32, 128), 1, 128),
    ((512, 64), 2, 128),
    ((272, 16), 2, 32),
    ((592, 16), 2, 32),
    ((1, 64, 1, 64), 2, 128),
    ((2, 8, 64), 2, 128),
    ((3, 512, 32), 1, 32),
    ((512, 2, 8), 4, 32),
    ((256,), 4, 128),
    ((8, 16), 8, 128),
]


def tile_of(shape: tuple[int, ...], element_bytes: int) -> SwizzledTile:
    tile = SwizzledTile.of(shape, element_bytes)
    assert tile is not None
    return tile


@pytest.mark.parametrize(("shape", "element_bytes", "swizzle"), TILES)
def test_the_swizzle_is_the_widest_that_divides_a_row(
    shape: tuple[int, ...], element_bytes: int, swizzle: int
) -> None:
    tile = tile_of(shape, element_bytes)
    assert tile.swizzle == swizzle
    assert tile.alignment == 8 * swizzle
    assert tile.bytes == prod(shape) * element_bytes


@pytest.mark.parametrize(("shape", "element_bytes", "swizzle"), TILES)
def test_elements_are_where_the_definition_puts_them(
    shape: tuple[int, ...], element_bytes: int, swizzle: int
) -> None:
    tile = tile_of(shape, element_bytes)
    *outer, width = shape
    chunk = swizzle // element_bytes
    bits = {128: 3, 64: 2, 32: 1}[swizzle]
    found = set()
    for row, coordinate in enumerate(product(*map(range, outer))):
        for column in range(width):
            place = (column // chunk) * prod(outer) * swizzle + row * swizzle
            place += column % chunk * element_bytes
            for bit in range(bits):
                place ^= (place >> (7 + bit) & 1) << (4 + bit)
            assert tile.offset_of((*coordinate, column)) == place
            found.add(place)
    assert found == set(range(0, tile.bytes, element_bytes))


@pytest.mark.parametrize(("shape", "element_bytes", "swizzle"), TILES)
def test_copies_write_every_element_once_and_where_it_is(
    shape: tuple[int, ...], element_bytes: int, swizzle: int
) -> None:
    tile = tile_of(shape, element_bytes)
    assert len(tile.box) == len(shape) and all(1 <= extent <= 256 for extent in tile.box)
    assert tile.box[-1] * element_bytes == swizzle
    seen = set()
    for copy in tile.copies:
        assert copy.offset % 128 == 0
        # TMA writes the rows of a box one after the other, and permutes by the bits of addresses.
        for row, outer in enumerate(product(*map(range, tile.box[:-1]))):
            for column in range(tile.box[-1]):
                at = tuple(s + i for s, i in zip(copy.start, (*outer, column), strict=True))
                place = copy.offset + row * swizzle + column * element_bytes
                place ^= place >> 3 & {128: 0x70, 64: 0x30, 32: 0x10}[swizzle]
                assert tile.offset_of(at) == place
                seen.add(at)
    assert len(seen) == prod(shape)
    assert prod(tile.box) * len(tile.copies) == prod(shape)


def test_copies_are_in_the_order_of_their_offsets() -> None:
    tile = tile_of((3, 512, 64), 1)
    assert tile.box == (1, 256, 64)
    assert [(c.start, c.offset) for c in tile.copies] == [
        ((a, b, 0), (a * 512 + b) * 64) for a in range(3) for b in (0, 256)
    ]


@pytest.mark.parametrize(
    ("shape", "element_bytes"),
    [
        ((64, 8), 2),  # 16 bytes
        ((64, 40), 2),  # 80 bytes
        ((1, 48), 2),  # chunks of 32 bytes: copies begin at multiples of 128 only
        ((1, 1, 1, 1, 64, 64), 2),
        ((), 2),
    ],
)
def test_what_no_copy_can_write(shape: tuple[int, ...], element_bytes: int) -> None:
    assert SwizzledTile.of(shape, element_bytes) is None
