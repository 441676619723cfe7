from __future__ import annotations

import pytest

from tilec.checks.check_preconditions import check_preconditions
from tilec.diagnostics import Diagnostic
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.ir.dialect import context
from tilec.source import SourceFile

KERNEL = """#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, s: f32, u: u32) {{
    requires!({condition});
    z.store(z.load() * s);
}}
"""


def found(condition: str) -> tuple[str, list[Diagnostic]]:
    text = KERNEL.format(condition=condition)
    program, problems = load_program(SourceFile("case.tile", text), parse)
    instances, more = check_program(program)
    assert not problems and not more
    with context():
        return text, list(check_preconditions(emit(instances, program.sources), program.sources))


@pytest.mark.parametrize("condition", ["s < 0.5 && N % 4 == 0", "(u as usize) < N", "u / 3u32 > 1"])
def test_what_launchers_compute_is_accepted(condition: str) -> None:
    assert not found(condition)[1]


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("s * 2.0 < 1.0", "s * 2.0"),
        ("N.ilog2() == 4u32", "N.ilog2()"),
        ("s as i32 > 0", "s as i32"),
    ],
)
def test_what_they_do_not_is_named(condition: str, what: str) -> None:
    text, [problem] = found(condition)
    span = problem.labels[0].span
    assert problem.code == "E0203" and text[span.start : span.end] == what
