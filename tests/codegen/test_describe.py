"""Preconditions as launchers evaluate them, against Python's integers, on random expressions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lowered import program

from tilec.artifact.expression import DivisionByZero, evaluate, holds

_BITS = {"usize": 64, "i32": 32, "u32": 32, "i8": 8, "u16": 16}
_NAMES = {"usize": ("N", "n"), "i32": ("s", "t"), "u32": ("u", "v"), "i8": ("b",), "u16": ("w",)}
PARAMETERS = "n: usize, s: i32, t: i32, u: u32, v: u32, b: i8, w: u16"


def _wrapped(value: int, kind: str) -> int:
    low = value % (1 << _BITS[kind])
    signed = kind == "usize" or kind[0] == "i"
    return low - (1 << _BITS[kind]) if signed and low >> (_BITS[kind] - 1) else low


def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _applied(symbol: str, a: int, b: int, kind: str) -> int:
    count = b % _BITS[kind]
    values: dict[str, Any] = {
        "+": a + b, "-": a - b, "*": a * b, "/": _quotient(a, b), "%": a - _quotient(a, b) * b,
        "&": a & b, "|": a | b, "^": a ^ b, "<<": a << count, ">>": a >> count,
        "min": min(a, b), "max": max(a, b), "div_ceil": -(-a // b) if b else 0,
    }  # fmt: skip
    return _wrapped(values[symbol], kind)


class _Maker:
    """Random expressions of one type, with the values that they have."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values = {
            name: _wrapped(self._number(kind), kind)
            for kind, names in _NAMES.items()
            for name in names
        }
        self.values["N"] = self.random.randint(0, 1000)
        self.values["n"] %= 1 << 20

    def _number(self, kind: str) -> int:
        edges = (0, 1, -1, 2, 3, 7, 1 << (_BITS[kind] - 1), self.random.getrandbits(_BITS[kind]))
        return self.random.choice(edges)

    def expression(self, kind: str, depth: int) -> tuple[str, int]:
        if depth == 0 or self.random.random() < 0.1:
            return self._leaf(kind)
        if self.random.random() < 0.15:
            other = self.random.choice([k for k in _NAMES if k != kind])
            text, value = self.expression(other, depth - 1)
            return f"(({text}) as {kind})", _wrapped(value, kind)
        # Numbers of `usize` stay small: beyond 64 bits launchers are exact and programs wrap.
        symbols = ["+", "-", "/", "%", "min", "max", "div_ceil", "&", "|", "^"]
        symbol = self.random.choice(symbols if kind == "usize" else [*symbols, "*", "<<", ">>"])
        (left, a), (right, b) = (self.expression(kind, depth - 1) for _ in range(2))
        is_method = symbol in ("min", "max", "div_ceil")
        text = f"({left}).{symbol}({right})" if is_method else f"({left} {symbol} {right})"
        return text, _applied(symbol, a, b, kind)

    def _leaf(self, kind: str) -> tuple[str, int]:
        if self.random.random() < 0.3:
            number = self.random.choice((0, 1, 2, 3, 100))
            return f"{number}{kind}", number
        name = self.random.choice(_NAMES[kind])
        return name, self.values[name]


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed: int) -> None:
    maker = _Maker(seed)
    made = [(kind, *maker.expression(kind, 3)) for kind in _NAMES for _ in range(12)]
    claims = "\n".join(f"requires!({text} == 0{kind});" for kind, text, _ in made)
    text = (
        f"#[kernel] pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, {PARAMETERS}) {{ {claims} }}"
    )
    with program(text) as compiled:
        stated = compiled.instances["k"].description.requires
        for (kind, text, value), claim in zip(made, stated, strict=True):
            _, left, _ = claim.expression
            got = evaluate(left, maker.values)
            assert _wrapped(int(got), kind) == value, f"{text} with {maker.values}: {left}"
            assert evaluate(claim.expression, maker.values) == (value == 0), text


def _requirement(condition: str) -> Any:
    text = f"#[kernel] pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, {PARAMETERS}) {{"
    with program(f"{text} requires!({condition}); }}") as compiled:
        return compiled.instances["k"].description.requires[0].expression


def test_what_divides_by_zero_does_not_hold() -> None:
    for condition in ("N % n == 0", "u % v == u", "s / t == 0", "u.div_ceil(v) == 0"):
        values = {"N": 4, "n": 0, "u": 4, "v": 0, "s": 4, "t": 0}
        expression = _requirement(condition)
        assert not holds(expression, values), condition
        with pytest.raises(DivisionByZero):
            evaluate(expression, values, total=False)


def test_what_is_cut_off_from_a_wider_number_is_not_the_number() -> None:
    values = {"N": 2**32 + 5, "n": 2**33 + 7, "s": -1, "u": 2**16 + 9, "w": 300, "b": -1}
    for condition in (
        "N as u32 == 5 && N as u32 > 4 && (N as u32) < 6",
        "(n as u32) / 2 == 3 && (n as u32).max(3) == 7",
        "s as u16 > 65534 && (s as u16) as i32 == 65535",
        "(u as u16) < 10 && (u as u16) as usize == 9 && (w as u32 as u16) > 299",
        "b as u16 > 65534 && (b as u32).min(w as u32) == 300",
    ):
        assert holds(_requirement(condition), values), condition


def test_a_usize_made_of_a_u64_has_its_bits() -> None:
    text = """#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, h: u64) {
    requires!(h as usize <= N);
    requires!(h as usize as u64 >= 5);
}"""
    with program(text) as compiled:
        below, above = compiled.instances["k"].description.requires
    for h, is_below in ((3, True), (9, False), (2**64 - 1, True), (2**63, True)):
        assert holds(below.expression, {"h": h, "N": 8}) == is_below, h
        assert holds(above.expression, {"h": h, "N": 8}) == (h >= 5), h


def test_conditions_read_as_they_were_written() -> None:
    assert _requirement("N % 8 == 0") == ("eq", ("rem", "N", 8), 0)
    assert _requirement("u % 8u32 == 0u32") == ("eq", ("rem", "u", 8), 0)
    assert _requirement("u / v < 3u32") == ("lt", ("u32", ("div", "u", "v")), 3)
    assert _requirement("N / n == 2 || !(s < t)") == (
        "or", ("eq", ("div", "N", "n"), 2), ("not", ("lt", "s", "t")),
    )  # fmt: skip


def test_what_stands_in_unsafe_is_listed_with_its_line() -> None:
    text = """\
#[kernel(grid = [N.div_ceil(64)])]
pub fn k<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, N>, a: &Atomic<Tensor<f32, N>>) {
    let [p, _, _] = program_id();
    let i = iota::<i32, 64>();
    let t = x.gather::<64>([i]);
    a.fetch_add([i], t);
    unsafe {
        y.scatter([i], t);
        y.store([p], t);
        let u = x.gather_unchecked::<64>([i]);
        a.fetch_add([i], u);
    }
}
"""
    with program(text) as compiled:
        uses = compiled.instances["k"].description.unsafe
    assert [(use.what, use.line) for use in uses] == [
        ("scatter", 8), ("store", 9), ("gather_unchecked", 10), ("atomic", 11)
    ]  # fmt: skip
