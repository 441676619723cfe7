"""The front end's work grows as programs do; what it cannot take is an error with its place.

Work is the number of calls of Python functions, which is the same in every run.
"""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from front_end import checked, loaded, refusals
from large_programs import GROWING, Program

from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.size import MOST_OPERATIONS
from tilec.ir.dialect import context
from tilec.transforms.inline_helpers import inline_helpers


def work(text: str) -> int:
    """How many calls it takes to parse, check, emit and inline a program."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    with context():
        sys.setprofile(note)
        try:
            program, found = loaded(text)
            instances, wrong = check_program(program)
            if not found and not wrong:
                inline_helpers(emit(instances, program.sources))
        finally:
            sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", GROWING)
def test_work_grows_as_programs_do(form):
    program = GROWING[form]
    work(program(2))  # tables that are made once
    small, large = work(program(12)), work(program(48))
    assert large < 4.4 * small


def _doubling(depth: int) -> str:
    helpers = "".join(
        f"fn h{i}(x: f32) -> f32 {{ h{i - 1}(x) + h{i - 1}(x) }}\n" for i in range(1, depth + 1)
    )
    return f"""fn h0(x: f32) -> f32 {{ x + 1.0 }}
{helpers}
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, s: f32) {{
    z.store(h{depth}(s));
}}
"""


def test_inlining_costs_what_its_result_is_large():
    work(_doubling(2))
    assert work(_doubling(9)) < 2.2 * work(_doubling(8))


LONG: dict[str, int] = {
    "constants in a row": 1600, "constants that double": 60,
    "constants before what they are made of": 60, "helpers in a row": 1000,
    "variables that double": 300, "else if": 300,
}  # fmt: skip


@pytest.mark.parametrize("form", LONG)
def test_chains_may_be_long(form):
    assert refusals(GROWING[form](LONG[form])) == []


NESTED = ("brackets", "signs", "operators", "methods", "else if", "nested branches",
          "nested values of branches", "nested conditions", "nested arrays", "nested combiners",
          "constant comparisons")  # fmt: skip


@pytest.mark.parametrize("form", NESTED)
def test_what_nests_too_deep_is_an_error_that_names_the_limit(form):
    _, found, _ = checked(GROWING[form](10_000))
    assert [d.code for d in found] == ["E0101"]
    assert found[0].message in (
        "more than 256 nested brackets", "the program nests more than 1000 levels deep",
    )  # fmt: skip


def _circle(item: str, count: int) -> str:
    return "".join(item.format(i, (i + 1) % count) + "\n" for i in range(count))


@pytest.mark.parametrize("item", [
    "const A{0}: u64 = A{1} + 1;", "fn h{0}(x: f32) -> f32 {{ h{1}(x) }}",
])  # fmt: skip
def test_a_long_circle_is_one_error(item):
    assert [code for code, _ in refusals(_circle(item, 500))] == ["E0102"]


def _grown_generics(depth: int) -> str:
    helpers = "".join(
        f"fn h{i}<const B: i32>(x: f32) -> f32 {{\n"
        f"    h{i - 1}::<{{B + 1}}>(x) + h{i - 1}::<{{B * 2}}>(x)\n}}\n"
        for i in range(1, depth)
    )
    return f"""fn h0<const B: i32>(x: f32) -> f32 {{ x + (B as f32) }}
{helpers}
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {{ z.store(h{depth - 1}::<1>(1.0)); }}
"""


def _views(depth: int) -> str:
    view = "x: &Tensor<f32, M, N>) -> &Tensor<f32, M, N>"
    helpers = "".join(
        f"fn v{i}<M: Dim, N: Dim>({view} {{ v{i - 1}(x) }}\n" for i in range(1, depth)
    )
    return f"""fn v0<M: Dim, N: Dim>({view} {{ x }}
{helpers}
#[kernel]
pub fn k<M: Dim, N: Dim>(z: Part<&mut Tensor<f32, M, N>, 16, 16>, x: &Tensor<f32, M, N>) {{
    z.store(v{depth - 1}(x).load_like(&z));
}}
"""


def _tuples(depth: int) -> str:
    lines = "".join(f"    let s{i} = (s{i - 1}, s{i - 1});\n" for i in range(1, depth))
    return f"""#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {{
    let s0 = (1.0, 2.0);
{lines}    let s = if N == 1 {{ s{depth - 1} }} else {{ s{depth - 1} }};
    z.store(0.0);
}}
"""


def _lines_of(text: str, needle: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if needle in line]


def _nested_helpers(depth: int) -> str:
    before, after = "if x > 0.0 { " * 100, " } else { 1.0 }" * 100
    helpers = "".join(
        f"fn h{i}(x: f32) -> f32 {{ {before}h{i - 1}(x){after} }}\n" for i in range(1, depth + 1)
    )
    return f"""fn h0(x: f32) -> f32 {{ x }}
{helpers}
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, s: f32) {{
    z.store(h{depth}(s));
}}
"""


LIMITS: dict[str, tuple[Program, int, int, str, str]] = {
    # How a program grows, the largest that is taken, one that is not, its code, where it is.
    "operations": (_doubling, 14, 40, "E0702", "z.store(h40(s));"),
    "depth": (_nested_helpers, 10, 11, "E0702", "z.store(h11(s));"),
    "instances of helpers": (_grown_generics, 6, 30, "E0702", "{B * 2}"),
    "helpers that return views": (_views, 16, 40, "E0102", "fn v"),
    "values in a tuple": (_tuples, 10, 40, "E0203", "let s10 ="),
    "guards": (GROWING["guards"], 256, 300, "E0102", "if f == 256.0 {"),
}  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS)
def test_what_grows_without_end_is_an_error_at_its_place(limit):
    program, most, above, code, place = LIMITS[limit]
    assert refusals(program(most)) == []
    text = program(above)
    [(found, line)] = refusals(text)
    assert found == code
    assert line in _lines_of(text, place)


def test_the_operations_are_counted_as_they_are_emitted():
    for depth in (0, 3, 6):
        instances, found, program = checked(_doubling(depth))
        assert found == []
        with context():
            module = emit(instances, program.sources)
            inline_helpers(module)
            text = str(module)
        # Two additions and a literal less than one for each call of `h0`.
        assert text.count("arith.addf") == 2 ** (depth + 1) - 1
    _, [refused], _ = checked(_doubling(15))
    assert refused.message.startswith(f"`k` has {3 * 2**15} operations")
    assert 3 * 2**14 <= MOST_OPERATIONS < 3 * 2**15
