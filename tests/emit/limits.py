"""What launchers compute where numbers reach 64 bits, by the definition: one table for all of them.

`n`, `m` and `k` are whole numbers. TOO_LARGE is what nothing is launched with.
"""

from __future__ import annotations

from tilec.artifact.expression import Expression

TOO_LARGE = None
MOST = 2**63 - 1
LEAST = -(2**63)
ROOT = 3037000499  # the largest number whose square is below 2^63

_SQUARE = ("mul", "n", "n")
_MINUS_ONE = ("u64", ("sub", 0, "m"))

# An expression, `n` and `m`, and its value.
LIMITS: tuple[tuple[Expression, int, int, int | None], ...] = (
    (_SQUARE, ROOT, 0, ROOT**2),
    (_SQUARE, -ROOT, 0, ROOT**2),
    (_SQUARE, ROOT + 1, 0, TOO_LARGE),
    (("mul", "n", "m"), 2**62, -2, LEAST),
    (("mul", "n", "m"), 2**62, 2, TOO_LARGE),
    (("add", "n", "m"), MOST, 0, MOST),
    (("add", "n", "m"), MOST, 1, TOO_LARGE),
    (("add", "n", "m"), LEAST, -1, TOO_LARGE),
    (("sub", "n", "m"), 0, 1, -1),
    (("sub", "n", "m"), LEAST, 0, LEAST),
    (("sub", "n", "m"), 0, LEAST, TOO_LARGE),
    (("neg", "n"), MOST, 0, -MOST),
    (("neg", "n"), LEAST, 0, TOO_LARGE),
    (("abs", "n"), LEAST + 1, 0, MOST),
    (("abs", "n"), LEAST, 0, TOO_LARGE),
    (("div", "n", "m"), LEAST, 1, LEAST),
    (("div", "n", "m"), LEAST, -1, TOO_LARGE),
    (("div", "n", "m"), LEAST, 0, 0),
    (("rem", "n", "m"), LEAST, -1, 0),
    (("rem", "n", "m"), MOST, 0, MOST),
    (("ceildiv", "n", "m"), MOST, 2, 2**62),
    (("ceildiv", "n", "m"), LEAST, -1, TOO_LARGE),
    # What it is made of counts, where it is needed.
    (("div", _SQUARE, "n"), 2**32, 0, TOO_LARGE),
    (("min", _SQUARE, 5), 2**32, 0, TOO_LARGE),
    (("select", ("lt", "n", 100), _SQUARE, 7), 9, 0, 81),
    (("select", ("lt", "n", 100), _SQUARE, 7), 2**62, 0, 7),
    (("and", ("lt", "n", 100), ("lt", _SQUARE, 50)), 7, 0, 1),
    (("and", ("lt", "n", 100), ("lt", _SQUARE, 50)), 2**62, 0, 0),
    (("or", ("lt", "n", 100), ("lt", _SQUARE, 50)), 2**62, 0, TOO_LARGE),
    # Other types wrap: `as_signed` puts a conversion around what they compute.
    (("i64", _SQUARE), 2**32, 0, 0),
    (("i64", _SQUARE), MOST, 0, 1),
    (("i64", ("add", "n", "m")), MOST, 1, LEAST),
    (("i64", ("neg", "n")), LEAST, 0, LEAST),
    (("i64", ("div", "n", "m")), LEAST, -1, LEAST),
    (("i64", ("shl", "n", "m")), 1, 63, LEAST),
    (("i64", ("shl", "n", "m")), 2**40, 40, 0),
    (("i32", ("add", "n", "m")), 2**31 - 1, 1, -(2**31)),
    (("u8", ("sub", "n", "m")), 0, 1, 255),
    (_MINUS_ONE, 0, 1, 2**64 - 1),
    (("u64", ("mul", _MINUS_ONE, _MINUS_ONE)), 0, 1, 1),
    (("add", _MINUS_ONE, 0), 0, 1, TOO_LARGE),
    (("i64", ("add", _SQUARE, 1)), 2**32, 0, TOO_LARGE),
)

# Of the pipelines `limited` and `sized` (`pipeline_samples`): `n`, `m`, and what the launch gets by
# parameter, or what is said.
_WHERE = ", where n = {n}, m = {m}"
_BROKEN = (
    "`requires!(m + m < 2^62)` (here `m + m < 4611686018427387904`) does not hold, where m = {m}"
)
LIMITED: tuple[tuple[str, int, int, dict[str, int] | str], ...] = (
    ("limited", ROOT, ROOT, {"usize_": ROOT**2 // 3, "i64_": ROOT**2, "u64_": 0}),
    ("limited", 2**32, 2**30, {"usize_": 2**62 // 3, "i64_": 0, "u64_": 2**64 - 2**32 + 2**30}),
    ("limited", MOST, 0, {"usize_": 0, "i64_": 1, "u64_": 2**63 + 1}),
    ("limited", 2**32, 2**31, "`n * m / 3` is too large to compute" + _WHERE),
    ("limited", MOST, 2, "`n * m / 3` is too large to compute" + _WHERE),
    ("sized", 8, 1, {"usize_": 8, "i64_": 1, "u64_": 0}),
    ("sized", 2**39 + 1, 1, "the temporary `t` has the extent 1099511627778"),
    ("sized", 2**62, 1, "`n + n` is too large to compute, where n = {n}"),
    ("sized", 8, 2**61, _BROKEN),
    ("sized", 8, 2**62, _BROKEN),
)
