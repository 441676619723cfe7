"""What has a meaning but no code for the GPU is refused at its own place, and the rest is not."""

from __future__ import annotations

import pytest

from tilec.checks.check_gpu_code import check_gpu_code
from tilec.compilation import Options
from tilec.driver import front_end
from tilec.ir.dialect import context
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.transforms.inline_helpers import inline_helpers

PROGRAM = """\
fn helper(t: Tile<f32, 16, 16>) -> Tile<f32, 16, 16> {{
    {helper}
}}

#[kernel]
pub fn k<M: Dim, N: Dim>(z: Part<&mut Tensor<f32, M, N>, 16, 16>) {{
    let t = helper(z.load());
    z.store({stored});
}}
"""


def found(stored: str, helper: str = "t") -> list[tuple[str, str]]:
    text = PROGRAM.format(stored=stored, helper=helper)
    with context():
        front = front_end(Sources(SourceFile("k.tile", text), {}, {}, {}), Options())
        assert front.module is not None
        inline_helpers(front.module)
        findings = list(check_gpu_code(front.module, front.sources))
    return [(d.code, text[d.span.start : d.span.end]) for d in findings]


class _WithoutCode(OpRules):
    name = "linalg.matmul"


@pytest.fixture
def no_code_for_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products as an operation that has a meaning and nothing else."""
    monkeypatch.setitem(rules(), "linalg.matmul", _WithoutCode())


@pytest.mark.usefixtures("no_code_for_products")
@pytest.mark.parametrize("stored", ["t.dot(t)", "dot(t, t, t)"])
def test_an_operation_without_code_is_refused(stored: str) -> None:
    assert found(stored) == [("E0103", stored)]


@pytest.mark.usefixtures("no_code_for_products")
def test_each_place_is_reported_once_in_helpers_too() -> None:
    assert found("helper(t)", "t.dot(t)") == [("E0103", "t.dot(t)")]


def test_what_has_code_is_taken() -> None:
    assert found("t.dot(t.exp()) * t.t() + t.sum::<0>()") == []
