"""Layouts as text. The pictures are checked by eye against the definition of the layout."""

# ruff: noqa: E501 (lines of pictures)

from __future__ import annotations

from textwrap import dedent

import pytest

from tilec.layout import Layout, blocked
from tilec.layout.drawing import drawn
from tilec.layout.mma import Mma, accumulator_layout

PICTURES = [
    (
        # PTX ISA, "mma", m16n8: row is lane / 4 (+ 8 from register 2 on), column 2 (lane % 4) + …
        accumulator_layout((16, 8), 1, Mma(16, 8, 16, 2)),
        """\
        16x8: 1 warp of 32 lanes, 4 registers each
          registers  2 along axis 1, side by side; 2 along axis 0, each 8 apart
          lanes      4 along axis 1, each 2 apart; 8 along axis 0, side by side
           0:0   0:1   1:0   1:1   2:0   2:1   3:0   3:1
           4:0   4:1   5:0   5:1   6:0   6:1   7:0   7:1
           8:0   8:1   9:0   9:1  10:0  10:1  11:0  11:1
          12:0  12:1  13:0  13:1  14:0  14:1  15:0  15:1
          16:0  16:1  17:0  17:1  18:0  18:1  19:0  19:1
          20:0  20:1  21:0  21:1  22:0  22:1  23:0  23:1
          24:0  24:1  25:0  25:1  26:0  26:1  27:0  27:1
          28:0  28:1  29:0  29:1  30:0  30:1  31:0  31:1
           0:2   0:3   1:2   1:3   2:2   2:3   3:2   3:3
           4:2   4:3   5:2   5:3   6:2   6:3   7:2   7:3
           8:2   8:3   9:2   9:3  10:2  10:3  11:2  11:3
          12:2  12:3  13:2  13:3  14:2  14:3  15:2  15:3
          16:2  16:3  17:2  17:3  18:2  18:3  19:2  19:3
          20:2  20:3  21:2  21:3  22:2  22:3  23:2  23:3
          24:2  24:3  25:2  25:3  26:2  26:3  27:2  27:3
          28:2  28:3  29:2  29:3  30:2  30:3  31:2  31:3
        """,
    ),
    (
        accumulator_layout((64, 32), 4, Mma(16, 8, 16, 2)),
        """\
        64x32: 4 warps of 32 lanes, 16 registers each
          registers  2 along axis 1, side by side; 2 along axis 0, each 8 apart; 4 along axis 1, each 8 apart
          lanes      4 along axis 1, each 2 apart; 8 along axis 0, side by side
          warps      4 along axis 0, each 16 apart
        lanes of warp 0 at [0..8, 0..8], each of 2 elements along axis 1:
           0  1  2  3
           4  5  6  7
           8  9 10 11
          12 13 14 15
          16 17 18 19
          20 21 22 23
          24 25 26 27
          28 29 30 31
        """,
    ),
    (
        blocked((64, 256), 8, (1, 0), 4),
        """\
        64x256: 8 warps of 32 lanes, 64 registers each
          registers  4 along axis 1, side by side; 2 along axis 1, each 128 apart; 8 along axis 0, each 8 apart
          lanes      32 along axis 1, each 4 apart
          warps      8 along axis 0, side by side
        lanes of warp 0 at [0..1, 0..128], each of 4 elements along axis 1:
           0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        """,
    ),
    (
        blocked((64, 96), 4, (0, 1), 4),
        """\
        64x96: 4 warps of 32 lanes, 48 registers each
          registers  4 along axis 0, side by side; 4 along axis 1, each 8 apart
          lanes      16 along axis 0, each 4 apart; 2 along axis 1, side by side
          warps      4 along axis 1, each 2 apart
          all of it  3 times along axis 1, each 32 apart
        lanes of warp 0 at [0..64, 0..2], each of 4 elements along axis 0:
           0 16
           1 17
           2 18
           3 19
           4 20
           5 21
           6 22
           7 23
           8 24
           9 25
          10 26
          11 27
          12 28
          13 29
          14 30
          15 31
        """,
    ),
    (
        blocked((96,), 1, (0,), 2),
        """\
        96: 1 warp of 32 lanes, 6 registers each
          registers  2 along axis 0, side by side
          lanes      16 along axis 0, each 2 apart; 2 copies
          all of it  3 times along axis 0, each 32 apart
        lanes of warp 0 at [0..32], each of 2 elements along axis 0:
           0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
        """,
    ),
    (
        blocked((2, 2, 16), 2, (2, 1, 0), 1),
        """\
        2x2x16: 2 warps of 32 lanes, 1 register each
          lanes      16 along axis 2, side by side; 2 along axis 1, side by side
          warps      2 along axis 0, side by side
        at [0, 0..2, 0..16]:
           0.0   0.1   0.2   0.3   0.4   0.5   0.6   0.7   0.8   0.9  0.10  0.11  0.12  0.13  0.14  0.15
          0.16  0.17  0.18  0.19  0.20  0.21  0.22  0.23  0.24  0.25  0.26  0.27  0.28  0.29  0.30  0.31
        """,
    ),
    (
        # A swizzle: lanes that are high along axis 0 count backwards along axis 1.
        Layout((2, 4), (), ((0, 1), (0, 2), (1, 3), (0, 0), (0, 0)), ()),
        """\
        2x4: 1 warp of 32 lanes, 1 register each
          lanes      4 along axis 1, side by side; 2, each 1 along axis 0 and 3 along axis 1; 4 copies
          0  1  2  3
          7  6  5  4
        """,
    ),
    (
        # What lies between the lanes of warp 0 is another warp's.
        Layout((512,), (), ((1,), (2,), (8,), (16,), (32,)), ((4,), (64,), (128,), (256,))),
        """\
        512: 16 warps of 32 lanes, 1 register each
          lanes      4 along axis 0, side by side; 8 along axis 0, each 8 apart
          warps      2 along axis 0, each 4 apart; 8 along axis 0, each 64 apart
        lanes of warp 0 at [0..64]:
           0  1  2  3  ·  ·  ·  ·  4  5  6  7  ·  ·  ·  ·  8  9 10 11  ·  ·  ·  · 12 13 14 15  ·  ·  ·  ·  …
        """,
    ),
    (
        blocked((), 2, ()),
        """\
        one element: 2 warps of 32 lanes, 1 register each
          lanes      32 copies
          warps      2 copies
        """,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "picture"), PICTURES, ids=["x".join(map(str, p[0].shape)) for p in PICTURES]
)
def test_the_drawing_says_which_thread_holds_what(layout, picture):
    assert "\n".join(drawn(layout)) == dedent(picture).rstrip()
