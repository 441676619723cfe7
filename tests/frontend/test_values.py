"""What statements and expressions compute, by the CPU execution of what is emitted for them.

The right values are Rust's where Rust has one, and docs/language.md's for what it makes total.
"""

from __future__ import annotations

import pytest
from front_end import computed, refusals

MIN, MAX = -(2**63), 2**63 - 1

LOOPS = [
    ("for i in 0..a { r += i; }", {"a": 5}, 10),
    ("for i in 0..=a { r += i; }", {"a": 5}, 15),
    ("for i in 0..a { r += 1; }", {"a": -3}, 0),
    ("for i in 5..=a { r += 1; }", {"a": 4}, 0),
    ("for i in (0..a).rev() { r = r * 10 + i; }", {"a": 5}, 43210),
    ("for i in (a..0).rev() { r += 1; }", {"a": 5}, 0),
    ("for i in (0..=a).step_by(2).rev() { r = r * 10 + i; }", {"a": 5}, 420),
    ("for i in (0..=a).rev().step_by(2) { r = r * 10 + i; }", {"a": 5}, 531),
    ("for i in (1..a).step_by(3) { r = r * 10 + i; }", {"a": 10}, 147),
    ("for i in (1..a).step_by(b as usize) { r = r * 10 + i; }", {"a": 10, "b": 3}, 147),
    ("for i in (1..a).step_by(b as usize) { r += i; }", {"a": 10, "b": MAX}, 1),
    ("for i in (1..a).step_by(b as usize) { r = r * 10 + i; }", {"a": 4, "b": 0}, 123),
    ("for i in (1..a).step_by(b as usize) { r = r * 10 + i; }", {"a": 4, "b": MIN}, 123),
    ("for i in (5..a).step_by(b as usize) { r += 1; }", {"a": 5, "b": 2}, 0),
    ("for i in (a..b).step_by(b as usize) { r += 1; }", {"a": MAX - 4, "b": MAX}, 1),
    ("for i in (a..=b).rev().step_by(2) { r += b - i + 1; }", {"a": MAX - 4, "b": MAX}, 9),
    ("for i in (b..a).step_by(a as usize).rev() { r = r * 10 + i; }", {"a": 3, "b": 1}, 1),
    ("for i in (b..=a).step_by(b as usize).rev() { r = r * 10 + i; }", {"a": 7, "b": 2}, 642),
    ("for i in 250u8..=255 { r += 1; }", {}, 6),
    (
        "for i in (250u8..=255).step_by(a as usize) { r = r * 10 + (255 - i) as i64; }",
        {"a": 2},
        531,
    ),
    (
        "for i in (18446744073709551610u64..=18446744073709551615).step_by(a as usize) { r += 1; }",
        {"a": 2},
        3,
    ),
    ("for i in 120i8..=127 { r += i as i64; }", {}, sum(range(120, 128))),
    ("for i in a..=9223372036854775807 { r += 1; }", {"a": MAX - 2}, 3),
    ("for i in a..=b { r += 1; }", {"a": MAX - 2, "b": MAX}, 3),
    ("for i in a..=b { r += 1; }", {"a": MIN, "b": MIN}, 1),
    ("for i in -1..3 { r = r * 10 + i / 2; }", {}, 1),
    ("while r * r < a { r += 1; }", {"a": 100}, 10),
    ("while { r += 1; r < a } { r += 1; }", {"a": 6}, 7),
    ("for i in 0..3 { let t = r; for j in 0..2 { r += t + 1; } }", {}, 26),
    ("let mut i = 0; while i < 10 { unsafe { i += 1; } { r += i; } }", {}, 55),
    ("for i in 0..3 { let q = { r += 1; r }; r += q; }", {}, 14),
    ("for i in 0..4 { if i % 2 == 0 { r += 10; } else { r += 1; } }", {}, 22),
]


@pytest.mark.parametrize(("loop", "scalars", "value"), LOOPS)
def test_loops(loop: str, scalars: dict[str, int], value: int) -> None:
    assert computed(f"let mut r = 0;\n{loop}", **scalars) == value


EXPRESSIONS = [
    ("a / 2", {"a": -7}, -3),
    ("a % 2", {"a": -7}, -1),
    ("-7 / 2", {}, -3),
    ("a / b", {"a": 5, "b": 0}, 0),
    ("a % b", {"a": 5, "b": 0}, 5),
    ("a / b", {"a": MIN, "b": -1}, MIN),
    ("a % b", {"a": MIN, "b": -1}, 0),
    ("(a as u8) as i64", {"a": 200}, 200),
    ("((a as u8) / 3) as i64", {"a": 200}, 66),
    ("((a as u8) >> 1) as i64", {"a": 200}, 100),
    ("if (a as u8) > 127 { 1 } else { 0 }", {"a": 200}, 1),
    ("(a as i8) as i64", {"a": 200}, -56),
    ("1.5f32 as i64", {}, 1),
    ("f32::NAN as i64", {}, 0),
    ("f32::INFINITY as i64", {}, MAX),
    ("i64::MAX", {}, MAX),
    ("usize::MAX as i64", {}, MAX),
    ("!a", {"a": 3}, -4),
    ("-a", {"a": 3}, -3),
    ("a & 2 | 8 ^ 1", {"a": 3}, 11),
    ("1_000 + 0xff + 0b11", {}, 1258),
    ("if a > 3 { 1 } else if a > 1 { 2 } else { 3 }", {"a": 2}, 2),
    ("if a > 0 && 10 / a > 2 { 1 } else { 0 }", {"a": 0}, 0),
    ("if a == 0 || 10 / a > 2 { 1 } else { 0 }", {"a": 0}, 1),
    ("[1, 2, 3][a as usize]", {"a": 2}, 3),
    ("[1, 2, 3][a as usize]", {"a": 5}, 0),
    ("[7; 4][3] + [1, 2][0]", {}, 8),
    ("iota::<i64, 8>().reduce::<0>(0, |p, q| { let z = p + q; z }).item() * 2", {}, 56),
    ("{ let x; if a > 2 { x = 1; } else { x = 2; } x }", {"a": 3}, 1),
    ("{ let (mut p, q) = (a, 2); p += q; p }", {"a": 3}, 5),
    ("{ let mut t = (1, (2, 3)); (t.1).1 = 9; t.0 + (t.1).1 }", {}, 10),
    ("{ let mut v = [1, 2, 3]; v[1] += 5; v[0] + v[1] * 10 + v[2] * 100 }", {}, 371),
]


@pytest.mark.parametrize(("expression", "scalars", "value"), EXPRESSIONS)
def test_expressions(expression: str, scalars: dict[str, int], value: int) -> None:
    assert computed(f"let r: i64 = {expression};", **scalars) == value


HELPERS = [
    ("fn f(x: i64, y: i64) -> i64 { x + y }", "f(a, 2)", 5),
    (
        "fn f((x, y): (i64, i64)) -> (i64, i64) { (y, x) }",
        "{ let (p, q) = f((a, 2)); p * 10 + q }",
        23,
    ),
    (
        "fn f<T: Int, const K: usize>(x: T) -> T { let mut s = x; for i in 1..K { s += x; } s }",
        "f::<i64, 4>(a)",
        12,
    ),
    (
        "fn f<const K: usize>(x: Tile<i64, K>) -> i64 { x.sum_all() + K as i64 }",
        "f(iota::<i64, 4>())",
        10,
    ),
    ("const C: i64 = 1 << 5; const D: usize = { 16 / 4 };", "C + D as i64", 36),
    ("fn g(x: i64) -> i64 { x * 2 } fn f(x: i64) -> i64 { g(g(x)) }", "f(a)", 12),
]


@pytest.mark.parametrize(("items", "expression", "value"), HELPERS)
def test_helpers_and_constants(items: str, expression: str, value: int) -> None:
    assert computed(f"let r = {expression};", items, a=3) == value


def test_right_sides_that_read_memory_are_not_evaluated_in_vain() -> None:
    body = """let mut n = 0;
    let hit = a > 5 && { n += 1; a > 6 };
    let either = a > 5 || { n += 10; true };
    let r = n;"""
    assert computed(body, a=3) == 10


def test_what_follows_a_guard_does_not_run_after_it() -> None:
    text = """if a > {bound} {{
    unsafe {{ y.store::<1>([0], Tile::<i64, 1>::full(7)); }}
    return;
}}
let r = 1;"""
    assert computed(text.format(bound=2), a=3) == 7
    assert computed(text.format(bound=4), a=3) == 1


def test_floats_of_literals_take_the_type_of_their_use() -> None:
    assert computed("let h = 0.5; let r = x * h;", element="f32", x=3.0) == 1.5


@pytest.mark.parametrize("count", [0, 1, 1024, 1025])
@pytest.mark.parametrize(
    "body",
    ["let a = [{items}];", "let a = [1.0f32; {count}];",
     "let a: [f32; {count}] = [1.0f32; {count}];", "let a: [f32; {count}] = [{items}];"],
)  # fmt: skip
def test_an_array_has_1_to_1024_items_however_it_is_written(body: str, count: int) -> None:
    written = body.format(count=count, items=", ".join(["1.0f32"] * count))
    found = refusals(f"#[kernel]\npub fn k(y: Part<&mut Tensor<f32, 4>, 4>) {{ {written} }}")
    assert {code for code, _ in found} == (set() if 1 <= count <= 1024 else {"E0203"})
