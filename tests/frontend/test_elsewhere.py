"""Names of other systems: each is answered with what to write here, and what is written compiles.

Programs hold many uses at once: the test reads the help of each, puts the code that it gives in
place of the use, and checks the whole again.
"""

from __future__ import annotations

import re

import pytest
from front_end import checked

from tilec.diagnostics import Diagnostic
from tilec.frontend.functions_elsewhere import FUNCTIONS
from tilec.frontend.names_elsewhere import FIELDS, MACROS, TENSORS, VALUES
from tilec.frontend.ways import Way

HEAD = """\
#[kernel]
pub fn k<M: Dim, N: Dim>(
    y: Part<&mut Tensor<f32, M, N>, 16, 64>,
    x: &Tensor<f32, M, N>,
    a: &Atomic<Tensor<i32, N>>,
    n: i32,
    m: i32,
) {
    let t = x.load_like(&y);
    let u = t * 2.0;
    let v = t + 1.0;
    let c = t.gt(u);
    let d = t.lt(v);
    let p = t.to::<i32>();
    let q = p * 2;
    let i = y.id(0);
    let j = y.id(1);
    let rows = iota::<i32, 16>();
"""
_CODE = re.compile(r"`([^`]+)`")


def told(uses: list[str]) -> list[Diagnostic]:
    """What is said of each of these expressions, in their order."""
    _, found, program = checked(HEAD + "".join(f"    let r = {use};\n" for use in uses) + "}\n")
    [source] = program.sources.values()
    first = HEAD.count("\n")
    by_line = {source.position(d.span.start)[0] - first: d for d in reversed(found)}
    return [by_line[line] for line in range(len(uses))]


def expect_accepted(expressions: list[str]) -> None:
    lines = "".join(f"    let r = {one};\n" for one in expressions)
    _, found, program = checked(HEAD + lines + "}\n")
    text = (HEAD + lines).splitlines()
    [source] = program.sources.values()
    wrong = [(text[source.position(d.span.start)[0]], d.message) for d in found]
    assert not wrong, "\n".join(map(str, wrong))


def replacements(told: list[Diagnostic]) -> list[str]:
    """The code that each help says to write."""
    assert all(d.help is not None and d.help.startswith("write `") for d in told), told
    return [_CODE.search(d.help or "")[1] for d in told]  # type: ignore[index]


def _with_code(table: dict[str, Way]) -> dict[str, Way]:
    return {name: way for name, way in table.items() if way.code is not None}


def _operands(way: Way) -> tuple[str, ...]:
    code = way.code or ""
    count = 1 + max(map(int, re.findall(r"\{(\d)\}", code)), default=0)
    return way.example[: 2 if "{axis}" in code or "{last}" in code else count]


def _callable(table: dict[str, Way]) -> dict[str, Way]:
    """Those whose example calls nothing that there is."""
    return {n: w for n, w in _with_code(table).items() if n not in ("sub", "view")}


@pytest.mark.parametrize("form", ["{0}({all})", "{0}.{1}({rest})", "tl.{0}({all})"])
def test_what_replaces_a_function_or_method_compiles(form):
    uses = []
    for name, way in _with_code(FUNCTIONS).items():
        first, *rest = _operands(way)
        if form.startswith("{0}.{1}"):
            # An `arange` is no method, and what is not a name cannot be a receiver.
            receiver = first if first.isidentifier() else "t"
            uses.append(f"{receiver}.{name}({', '.join(rest)})")
        else:
            uses.append(form.format(name, all=", ".join((first, *rest))))
    expect_accepted(replacements(told(uses)))


def test_operands_are_written_as_they_were():
    uses = ["(t + u).relu()", "relu(t + u)", "fma(t + u, v, u - v)", "t.softmax::<0>()",
            "softmax(t, 0)", "t.softmax(-1)", "t.pow(2)", "t.pow(0.5)", "torch.mean(t, 0)",
            "arange(0, M)", "tl.exp(t)", "np.sum(t, 1)", "exp(t - u)", "f32::max(n, m)",
            "std::cmp::min(n, m)", "t.where_(c)"]  # fmt: skip
    said = [d.help for d in told(uses)]
    assert said == [
        "write `(t + u).max(0.0)`",
        "write `(t + u).max(0.0)`",
        "write `(t + u).mul_add(v, u - v)`",
        "write `{ let e = (t - t.max::<0>()).exp(); e / e.sum::<0>() }`",
        "write `{ let e = (t - t.max::<0>()).exp(); e / e.sum::<0>() }`",
        "write `{ let e = (t - t.max::<{-1}>()).exp(); e / e.sum::<{-1}>() }`",
        "write `t.powi(2)`",
        "write `t.powf(0.5)`",
        "write `t.sum::<0>() / 16.0`",
        "write `iota::<i32, M>()`",
        "write `t.exp()`",
        "write `t.sum::<1>()`",
        "write `(t - u).exp()`",
        "write `n.max(m)`",
        "write `n.min(m)`",
        None,
    ]


def test_what_replaces_a_value_compiles():
    found = told(list(VALUES))
    assert [d.help is not None for d in found] == [True] * len(VALUES)
    written = [d for d in found if d.help and d.help.startswith("write `")]
    assert len(written) == len(_with_code(VALUES))
    expect_accepted(replacements(written))


def test_what_replaces_a_field_compiles():
    uses = [f"t.{name}" for name in FIELDS]
    found = told(uses)
    assert [d.help is not None for d in found] == [True] * len(uses)
    expect_accepted(replacements([d for d in found if d.help and d.help.startswith("write `")]))


def test_what_replaces_a_macro_compiles():
    uses = [f"{name}!({', '.join(_operands(way))})" for name, way in _with_code(MACROS).items()]
    expect_accepted(replacements(told([f"{{ {use} }}" for use in uses])))


_TABLES = (FUNCTIONS, TENSORS, VALUES, FIELDS, MACROS)
_NOT_CODE = re.compile(r"…|[A-Z]: [A-Z]|^\w+$|^#\[|^tilec |grid = |B: usize|^use ")


def test_the_code_in_every_note_compiles():
    notes = [w.note for table in _TABLES for w in table.values() if w.note is not None]
    codes = {code for note in notes for code in _CODE.findall(note)}
    named = {code for code in codes if _NOT_CODE.search(code)}
    # What is only named: types, operations and words of the language, and forms with `…` in them.
    assert len(named) < len(codes) / 2, sorted(named)
    made = [f"t{code}" if code.startswith(".") else code for code in sorted(codes - named)]
    made = [code.replace("a.dot(b)", "t.dot(t.t())") for code in made]
    made = [
        code for code in made if not code.startswith(("y.store(", "program_id", "num_programs"))
    ]
    expect_accepted([f"{{ {code} }}" for code in made])


def test_a_name_of_this_program_is_not_foreign():
    uses = ["relu(t)", "pi", "tl"]
    items = "fn relu(t: Tile<f32, 16, 64>) -> Tile<f32, 16, 64> { t }\nconst pi: f32 = 3.0;\n"
    lines = "".join(f"    let r = {use};\n" for use in uses)
    _, found, _ = checked(items + HEAD + "    let tl = t;\n" + lines + "    let r = tl.exp();\n}\n")
    assert found == []
