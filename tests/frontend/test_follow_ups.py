"""One fault is one error: what rests on a refused value reports nothing more."""

from __future__ import annotations

import pytest
from front_end import refusals

_HEAD = """\
fn twice(v: f32) -> f32 { v * 2.0 }
fn first(v: (f32, f32)) -> f32 { v.0 }
fn stored<N: Dim>(p: &mut Part<&mut Tensor<f32, N>, 16>, v: Tile<f32, 16>) { p.store(v); }
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 16>, x: &Tensor<f32, N>, n: usize) {
    let t = x.load_like(&z);
"""
_FIRST_LINE = _HEAD.count("\n") + 1

# Statements, one a line, and the code and line (counted from the first) of all that is said.
CASES = {
    "a refused `let` that is assigned": (
        ["let mut m = bad;", "m = m + t;", "m += 1.0;", "z.store(m);"], [("E0201", 0)],
    ),
    "a refused pattern that is assigned": (
        ["let (mut a, [b, mut c]) = bad;", "a = 1.0;", "c += b;", "z.store(t * a * c);"],
        [("E0201", 0)],
    ),
    "a pattern that does not fit": (
        ["let (mut a, mut b) = t;", "a = b;", "b = 1.0;", "z.store(a);"], [("E0203", 0)],
    ),
    "a refused value in a loop": (
        ["let mut m = t.sum(1);", "for j in 0..n {", "m = m + t;", "m = m.max(t);", "}",
         "z.store(m);"],
        [("E0203", 0)],
    ),
    "a refused bound": (
        ["let mut s = 0;", "for j in 0..bad {", "s += j;", "}", "z.store(t * (s as f32));"],
        [("E0201", 1)],
    ),
    "a `while` whose condition is refused, and one fault more in its body": (
        ["let mut s = 0.0;", "while bad > 0 {", "s += worse;", "s += 1.0;", "}", "z.store(t * s);"],
        [("E0201", 1), ("E0201", 2)],
    ),
    "a late value that is refused": (
        ["let v;", "v = bad;", "z.store(v);"], [("E0201", 1)],
    ),
    "a late value that one branch refuses": (
        ["let v;", "if n == 0 {", "v = bad;", "} else {", "v = t;", "}", "z.store(v);"],
        [("E0201", 2)],
    ),
    "a late value in what is not taken yet": (
        ["let v;", "match n { 0 => { v = t; } _ => { v = t * 2.0; } }", "z.store(v);"],
        [("E0103", 1)],
    ),
    "late values behind a condition that is refused": (
        ["let v;", "if bad { v = t; } else { v = t * 2.0; }", "z.store(v);"], [("E0201", 1)],
    ),
    "a guard whose condition is refused": (
        ["let v;", "v = t;", "if bad { return; }", "z.store(v);"], [("E0201", 2)],
    ),
    "a call with a refused argument": (
        ["let mut a = twice(bad);", "a = a + 1.0;", "z.store(t * first((a, 1.0)));"],
        [("E0201", 0)],
    ),
    "a part that is lent beside a refused value": (
        ["let mut own = z;", "let v = bad;", "stored(&mut own, v);", "own.store(t);"],
        [("E0201", 1)],
    ),
    "a helper with a fault in its body, called twice": (
        ["let a = broken(1.0);", "let mut b = broken(a);", "b += a;", "z.store(t * b);",
         "}", "fn broken(v: f32) -> f32 {", "v + bad"],
        [("E0201", 6)],
    ),
    "a combiner with a refused body": (
        ["let mut s = t.reduce::<0>(0.0, |a, b| a + bad);", "s = s * 2.0;", "z.store(t * s);"],
        [("E0201", 0)],
    ),
    "a number that only the refused value would have typed": (
        ["let big = 5000000000;", "let sum = big + bad;", "z.store(t);"], [("E0201", 1)],
    ),
    "an item of a refused array": (
        ["let mut a = [bad, 1.0];", "a[0] = 2.0;", "a[1] += a[0];", "z.store(t * a[1]);"],
        [("E0201", 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_fault_is_one_error(case):
    statements, expected = CASES[case]
    text = _HEAD + "\n".join(statements) + "\n}\n"
    found = [(code, line - _FIRST_LINE) for code, line in refusals(text)]
    assert found == expected


def test_a_variable_that_is_not_mut_is_reported_beside_its_refused_value():
    text = _HEAD + "let m = bad;\nm = 1.0;\nz.store(t);\n}\n"
    assert refusals(text) == [("E0201", _FIRST_LINE), ("E0203", _FIRST_LINE + 1)]


def test_a_number_out_of_range_is_reported_beside_another_fault():
    text = _HEAD + "let a: u8 = 300;\nlet b = bad;\nz.store(t);\n}\n"
    assert set(refusals(text)) == {("E0203", _FIRST_LINE), ("E0201", _FIRST_LINE + 1)}
