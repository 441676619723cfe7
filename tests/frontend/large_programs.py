"""Programs of any size, a function for each way in which one grows."""

from __future__ import annotations

from collections.abc import Callable

Program = Callable[[int], str]


def _kernel(body: str, items: str = "") -> str:
    return f"""{items}
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: i32) {{
    let t = x.load_like(&z);
    let f = t.sum_all();
{body}
}}
"""


def _each(count: int, text: Callable[[int], str], start: int = 0) -> str:
    return "".join(text(i) + "\n" for i in range(start, count))


def _items(count: int, text: Callable[[int], str]) -> str:
    return _each(count, text, 1)


GROWING: dict[str, Program] = {
    "constants in a row": lambda n: _kernel(
        f"z.store(t * (A{n - 1} as f32));",
        "const A0: u64 = 1;\n" + _items(n, lambda i: f"const A{i}: u64 = A{i - 1} + 1;"),
    ),
    "constants that double": lambda n: _kernel(
        f"z.store(t * (A{n - 1} as f32));",
        "const A0: u64 = 1;\n" + _items(n, lambda i: f"const A{i}: u64 = A{i - 1} + A{i - 1};"),
    ),
    "constants before what they are made of": lambda n: _kernel(
        "z.store(t * (A0 as f32));",
        _each(n, lambda i: f"const A{i}: u64 = A{i + 1} + A{i + 1};") + f"const A{n}: u64 = 1;",
    ),
    "helpers in a row": lambda n: _kernel(
        f"z.store(t * h{n - 1}(1.0));",
        "fn h0(x: f32) -> f32 { x + 1.0 }\n"
        + _items(n, lambda i: f"fn h{i}(x: f32) -> f32 {{ h{i - 1}(x) }}"),
    ),
    "helpers side by side": lambda n: _kernel(
        "let mut s = 0.0;\n" + _each(n, lambda i: f"s = h{i}(s);") + "z.store(t * s);",
        _each(n, lambda i: f"fn h{i}(x: f32) -> f32 {{ x + 1.0 }}"),
    ),
    "instances of a helper": lambda n: _kernel(
        "let mut s = 0.0;\n" + _each(n, lambda i: f"s = h::<{i}>(s);") + "z.store(t * s);",
        "fn h<const B: i32>(x: f32) -> f32 { x + (B as f32) }",
    ),
    "variables in a row": lambda n: _kernel(
        "let a0 = 1;\n" + _items(n, lambda i: f"let a{i} = a{i - 1} + 1;")
        + f"let a: i64 = a{n - 1}; z.store(t * (a as f32));"
    ),
    "variables that double": lambda n: _kernel(
        "let a0 = t;\n" + _items(n, lambda i: f"let a{i} = a{i - 1} + a{i - 1};")
        + f"z.store(a{n - 1});"
    ),
    "late variables": lambda n: _kernel(
        _each(n, lambda i: f"let a{i};") + _each(n, lambda i: f"a{i} = 1.0;") + "z.store(t * a0);"
    ),
    "assignments": lambda n: _kernel(
        "let mut s = t;\n" + _each(n, lambda i: "s += 1.0;") + "z.store(s);"
    ),
    "branches": lambda n: _kernel(
        "let mut s = 0.0;\n" + _each(n, lambda i: f"if n == {i} {{ s += 1.0; }}")
        + "z.store(t * s);"
    ),
    "else if": lambda n: _kernel(
        "let mut s = 0.0;\nif f == 0.5 { s = 1.0; }"
        + _each(n, lambda i: f"else if f == {i}.0 {{ s = {i}.0; }}") + "z.store(t * s);"
    ),
    "loops": lambda n: _kernel(
        "let mut s = 0.0;\n" + _each(n, lambda i: "for i in 0..n { s += 1.0; }")
        + "z.store(t * s);"
    ),
    "nested branches": lambda n: _kernel(
        "let mut s = 0.0;\n" + _each(n, lambda i: f"if f > {i}.0 {{") + "s = 1.0;" + "}" * n
        + "z.store(t * s);"
    ),
    "nested values of branches": lambda n: _kernel(
        "let s = " + _each(n, lambda i: f"if n > {i} {{") + "1.0" + "} else { 2.0 }" * n
        + ";\nz.store(t * s);"
    ),
    "nested conditions": lambda n: _kernel(
        "if " + "if " * n + "n > 0" + " { n > 1 } else { n < 1 }" * n + " { z.store(t); }"
    ),
    "nested arrays": lambda n: _kernel(
        "let s = " + "{ let q = [" * n + "f" + "; 4]; q[0] + q[1] }" * n + ";\nz.store(t * s);"
    ),
    "nested combiners": lambda n: _kernel(
        "let s = " + "t.reduce::<0>(0.0, |a, b| a + b + " * n + "1.0" + ").item()" * n
        + ";\nz.store(t * s);"
    ),
    "brackets": lambda n: _kernel("let s = " + "(" * n + "f" + ")" * n + ";\nz.store(t * s);"),
    "signs": lambda n: _kernel("let s = " + "-" * n + "f;\nz.store(t * s);"),
    "operators": lambda n: _kernel("z.store(" + " + ".join(["t"] * n) + ");"),
    "methods": lambda n: _kernel("z.store(t" + ".abs()" * n + ");"),
    "guards": lambda n: _kernel(
        _each(n, lambda i: f"if f == {i}.0 {{ return; }}") + "z.store(t);"
    ),
    "unknown names": lambda n: _kernel(_each(n, lambda i: f"let a{i} = b{i};") + "z.store(t);"),
    "constant comparisons": lambda n: _kernel(
        "z.store(t);", "const A: bool = " + "(if " * n + "1 < 2" + " {1} else {2}) < 3" * n + ";"
    ),
}  # fmt: skip
