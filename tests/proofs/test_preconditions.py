"""A `requires!` is a precondition of the launch, whatever guard it stands behind."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from tests.frontend.front_end import checked
from tilec.frontend.emit import emit
from tilec.interpret.contract import BrokenContract
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.proofs.account import accesses_of
from tilec.proofs.proof import Proof

# Launchers compute the minimum for every `n`; behind the guard it is 8.
BEHIND_A_GUARD = """#[kernel(grid = [1])]
pub fn k<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, 10>, m: i32, n: i32) {
    if n <= 10 {
        y.store([0], x.load_at::<1>([m]));
        return;
    }
    let least = n.min(8);
    if n == 12 { return; }
    requires!(N > 0 && m == least);
    requires!(m != 7);
    y.store([0], x.load_at::<1>([m]));
}
"""


def kernel(text: str) -> tuple[ir.Module, ir.OpView]:
    instances, found, program = checked(text)
    assert not found
    module = emit(instances, program.sources)
    return module, module.body.operations[0]


def test_what_follows_from_a_guard_is_not_known_where_it_does_not_hold() -> None:
    with context():
        module, function = kernel(BEHIND_A_GUARD)
        assert module.operation.verify()
        verdicts = [(a.line, a.verdict) for a in accesses_of(Proof(function)) if a.what == "load"]
    # At n = -5 the first one is at -5; behind the guard m is 8.
    assert verdicts == [(4, "launch-checked"), (11, "proved")]


@pytest.mark.parametrize(
    ("m", "n", "broken"),
    [(8, 20, None), (8, 12, None), (3, 20, "m == least"), (3, 12, "m == least"),
     (3, 5, "m == least"), (5, 5, None), (7, 7, "m != 7")],
)  # fmt: skip
def test_it_is_asked_before_the_launch_whatever_the_guard_says(
    m: int, n: int, broken: str | None
) -> None:
    arguments = {"y": np.zeros(4, "f4"), "x": np.ones(10, "f4"), "m": m, "n": n}
    with context():
        _, function = kernel(BEHIND_A_GUARD)
        if broken is None:
            run_kernel(function, arguments)
            return
        with pytest.raises(BrokenContract, match=broken):
            run_kernel(function, arguments)
