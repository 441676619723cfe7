"""Pipelines whose numbers reach 64 bits, from the source to the CPU: as launchers have it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emit.limits import LIMITED
from tilec.compilation import Options
from tilec.driver import front_end
from tilec.interpret.contract import BrokenContract
from tilec.interpret.pipeline import make_ready
from tilec.interpret.pipeline_run import run_pipeline
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.sources import Sources

PROGRAM = """\
#[kernel(grid = [1])]
pub fn put(whole: &mut Tensor<i64>, plain: &mut Tensor<u64>, n: usize, i: i64, u: u64) {
    whole.store([], (n as i64) ^ i);
    plain.store([], u);
}

#[pipeline]
pub fn limited(whole: &mut Tensor<i64>, plain: &mut Tensor<u64>, n: usize, m: usize) {
    put(whole, plain, n * m / 3, (n as i64) * (n as i64), (m as u64) - (n as u64));
}

#[kernel(grid = [n + 1 - n])]
pub fn asks(whole: &mut Tensor<i64>, n: usize) {
    requires!(n < 9 || n * n > 80);
    whole.store([], 1);
}
"""


@pytest.fixture(scope="module")
def front():
    with context():
        source = SourceFile("case.tile", PROGRAM)
        found = front_end(Sources(source, {}, {}, {}), Options())
        assert not found.compiled.diagnostics
        yield found


@pytest.mark.parametrize(("name", "n", "m", "wanted"), [x for x in LIMITED if x[0] == "limited"])
def test_numbers_that_64_bits_do_not_hold_are_refused(name, n, m, wanted, front):
    outputs = {"whole": np.zeros((), np.int64), "plain": np.zeros((), np.uint64)}

    def run():
        ready = make_ready(front.pipelines, front.module, name, {**outputs, "n": n, "m": m})
        run_pipeline(ready, None)
        return ready.tensors

    if isinstance(wanted, str):
        with pytest.raises(BrokenContract) as refused:
            run()
        assert wanted.format(n=n, m=m) in str(refused.value)
        return
    tensors = run()
    assert int(tensors["whole"]) == wanted["usize_"] ^ wanted["i64_"]
    assert int(tensors["plain"]) == wanted["u64_"]


@pytest.mark.parametrize(
    ("n", "refused"),
    [
        (8, None),
        (9, None),
        (3037000499, None),
        (3037000500, "`requires!(n < 9 || n * n > 80)` does not hold: `n * n` is too large"),
        (2**63 - 1, "`requires!(n < 9 || n * n > 80)` does not hold: `n * n` is too large"),
    ],
)
def test_a_precondition_that_64_bits_do_not_hold_does_not_hold(n, refused, front):
    [function] = [one.function for one in front.proofs if "asks" in str(one.function.name)]
    whole = np.zeros((), np.int64)
    if refused is None:
        run_kernel(function, {"whole": whole, "n": n})
        assert whole == 1
        return
    with pytest.raises(BrokenContract) as broken:
        run_kernel(function, {"whole": whole, "n": n})
    assert refused in str(broken.value)
