"""Pipelines that are called as before are not executed again, and nothing is different for that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frontend.front_end import loaded
from tilec.diagnostics import Diagnostic
from tilec.frontend.check import check_all
from tilec.frontend.pipeline import calls
from tilec.frontend.pipeline.values import traced
from tilec.ir.dialect import context

KERNEL = """\
#[kernel]
pub fn copy<T: Num, M: Dim, N: Dim, const B: usize>(
    z: Part<&mut Tensor<T, M, N>, 1, B>,
    x: &Tensor<T, M, N>,
    by: u8,
) {
    z.store(x.load_like(&z) + by.to::<T>());
}
"""
# `two` is called as it was, and in ways that are new: types, extents, one tensor twice.
PROGRAM = (
    KERNEL
    + """
#[pipeline]
#[instance(T = f32)]
pub fn one<T: Num, M: Dim, N: Dim>(y: &mut Tensor<T, M, N>, x: &Tensor<T, M, N>) {
    copy::<T, 64>(y, x, 1);
}

#[pipeline]
#[instance(T = f32)]
pub fn two<T: Num, M: Dim, N: Dim>(
    y: &mut Tensor<T, M, N>,
    z: &mut Tensor<T, M, N>,
    x: &Tensor<T, M, N>,
    w: &Tensor<T, M, N>,
) {
    one(y, x);
    for i in 0..2 {
        one(z, w);
    }
    one(y, w);
}

#[pipeline]
pub fn with_a_temporary<K: Dim>(y: &mut Tensor<f32, K, K>, x: &Tensor<f32, K, K>) {
    let mut t = Tensor::<f32, K, K>::uninit();
    two(y, &mut t, x, x);
    two(&mut t, y, x, x);
    one(y, &t);
}

#[pipeline]
pub fn all<A: Dim, B: Dim>(
    y: &mut Tensor<f32, A, B>,
    z: &mut Tensor<f32, A, B>,
    u: &mut Tensor<f32, 8, 8>,
    v: &mut Tensor<f32, 8, 8>,
    h: &mut Tensor<i16, A, B>,
    i: &mut Tensor<i16, A, B>,
    x: &Tensor<f32, A, B>,
    w: &Tensor<f32, B, A>,
    k: &Tensor<f32, 8, 8>,
    g: &Tensor<i16, A, B>,
) {
    two(y, z, x, x);
    two(z, y, x, x);
    two(u, v, k, k);
    two(h, i, g, g);
    with_a_temporary(u, k);
    with_a_temporary(v, k);
}

#[pipeline]
pub fn last<N: Dim>(y: &mut Tensor<f32, N, N>, z: &mut Tensor<f32, N, N>, x: &Tensor<f32, N, N>) {
    two(z, y, x, x);
    with_a_temporary(y, z);
}
"""
)


def plans(text: str) -> tuple[list[Any], list[Diagnostic], list[str]]:
    """What comes of each pipeline, what is wrong, and which kernels are built."""
    program, found = loaded(text)
    checked = check_all(program)
    with context():
        made = [traced(one, program.sources) for one in checked.pipelines]
    symbols = [kernel.symbol for kernel in checked.kernels]
    return made, [*found, *checked.diagnostics], symbols


def executed(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """How many calls of pipelines are executed."""
    count = 0

    def counted(trace: Any) -> Any:
        nonlocal count
        count += 1
        return real(trace)

    real = calls.before
    monkeypatch.setattr(calls, "before", counted)
    plans(text)
    monkeypatch.undo()
    return count


@pytest.mark.parametrize("text", [PROGRAM, PROGRAM.replace("T: Num", "T: Float")])
def test_plans_are_what_they_are_without(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    again = plans(text)
    assert not again[1] or "Float" in text
    few = executed(monkeypatch, text)
    monkeypatch.setattr(calls, "key_of", lambda *_: None)
    # As they are printed: unknowns are themselves only.
    assert repr(again) == repr(plans(text))
    assert few < executed(monkeypatch, text) / 2


def chain(count: int) -> str:
    text = """
#[pipeline]
pub fn p{number}<M: Dim, N: Dim>(y: &mut Tensor<f32, M, N>, x: &Tensor<f32, M, N>) {{
    {call}(y, x{by});
}}
"""
    first = text.format(number=0, call="copy::<f32, 64>", by=", 2")
    return (
        KERNEL
        + first
        + "".join(text.format(number=n, call=f"p{n - 1}", by="") for n in range(1, count))
    )


def test_of_a_chain_each_is_executed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executed(monkeypatch, chain(40)) == 0
    made, found, _ = plans(chain(40))
    assert not found
    last = made[-1][0]
    assert [launch.given[0].argument.tensor for launch in last.launches] == ["y"]
    assert len(last.launches[0].calls) == 39


def test_what_calls_too_many_is_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 20)
    _, found, _ = plans(chain(40))
    [one] = found
    assert one.code == "E0803"


def test_what_is_wrong_is_told_of_each_call() -> None:
    wrong = (
        chain(4)
        + """
#[pipeline]
pub fn q<N: Dim>(y: &mut Tensor<f32, N, 4>, x: &Tensor<f32, N, 8>) {
    p3(y, x);
}
"""
    )
    _, found, _ = plans(wrong)
    assert [one.code for one in found] == ["E0301"]
