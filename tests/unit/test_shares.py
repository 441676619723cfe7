"""The shares of a tile are equal, whole patterns, and together all of it."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from tilec.layout.shares import Shares
from tilec.layout.swizzled import SwizzledTile, swizzled

SHAPES = [
    (64, 256), (256, 64), (128, 64), (64, 64), (32, 64), (32, 96), (512, 64), (1, 64, 128),
    (1, 128, 64), (16, 4, 64), (64, 32), (64, 16), (256,), (4, 512, 64),
]  # fmt: skip


@pytest.mark.parametrize("blocks", [2, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shares_are_the_tile(shape: tuple[int, ...], blocks: int) -> None:
    tile = SwizzledTile.of(shape, 2)
    assert tile is not None
    shares = Shares.of(tile, blocks)
    assert shares is not None
    assert all(1 <= extent <= 256 for extent in shares.box)
    copied = set()
    for number, copy in product(range(blocks), shares.copies):
        start = list(copy.start)
        start[shares.axis] += number * shares.extent
        base = copy.offset + number * shares.stride
        assert base % 128 == 0
        for near in product(*map(range, shares.box)):
            place = tuple(a + b for a, b in zip(start, near, strict=True))
            assert place not in copied
            copied.add(place)
            # A copy writes its box row after row, in the pattern of addresses.
            row = 0
            for at, extent in zip(near[:-1], shares.box[:-1], strict=True):
                row = row * extent + at
            plain = base + row * tile.swizzle + 2 * near[-1]
            assert swizzled(plain, tile.swizzle) == tile.offset_of(place)
    assert len(copied) == prod(shape)


@pytest.mark.parametrize("shape", [(8, 64), (24, 64), (12, 64), (64,)], ids=str)
def test_what_has_no_whole_patterns_is_not_shared(shape: tuple[int, ...]) -> None:
    tile = SwizzledTile.of(shape, 2)
    assert tile is not None
    assert Shares.of(tile, 2) is None


def test_fewer_rows_have_fewer_shares() -> None:
    tile = SwizzledTile.of((16, 64), 2)
    assert tile is not None
    assert Shares.of(tile, 2) is not None and Shares.of(tile, 4) is None
