"""Row sums that are exchanged after their loop: which, and that they are right."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from tests.on_cpu import compiled_text
from tilec.interpret.run import run_kernel
from tilec.ir.walk import operations
from tilec.transforms.sink_row_sums import sink_row_sums

ROWS, COLUMNS = 4, 16


def _text(body: str, start: str = "zeros()", after: str = "sum") -> str:
    return f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<f32, 4, 1>, 4, 1>, x: &Tensor<f32, 4, N>) {{
        let mut sum = Tile::<f32, 4, 1>::{start};
        let mut most = Tile::<f32, 4, 1>::zeros();
        for i in 0..N.div_ceil(16) {{
            let t = x.load::<4, 16>([0, i]);
            let scale = most * 0.25 + 0.5;
            {body}
            most = t.max::<1>();
        }}
        z.store({after});
    }}"""


# What is added up, and the sum after a turn by the one before, the scale and the row's own sum.
LINEAR = {
    "sum = sum + t.sum::<1>();": lambda sum_, scale, row: sum_ + row,
    "sum = t.sum::<1>() + sum * scale;": lambda sum_, scale, row: row + sum_ * scale,
    "sum = sum.mul_add(scale, t.sum::<1>());": lambda sum_, scale, row: sum_ * scale + row,
    "sum = sum * scale + t.sum::<1>() * 2.0;": lambda sum_, scale, row: sum_ * scale + row * 2,
    "sum = (sum + t.sum::<1>()) * scale;": lambda sum_, scale, row: (sum_ + row) * scale,
}
OTHER = (
    _text("sum = sum.max(t.sum::<1>());"),
    _text("sum = sum * sum + t.sum::<1>();"),
    _text("sum = sum * t.sum::<1>();"),
    _text("sum = sum + 1.0;"),
    _text("sum = sum + (t.sum::<1>() + most);"),
    _text("let row = t.sum::<1>(); sum = sum + row + row;"),
    _text("sum = sum + t.sum::<1>();", start="ones()"),
    _text("sum = sum + t.max::<1>();"),
)


def _loop_of(function: ir.OpView) -> ir.OpView:
    [loop] = [op for op in operations(function) if op.operation.name == "scf.for"]
    return loop


@pytest.mark.parametrize("body", LINEAR)
def test_row_sums_are_exchanged_after_the_loop(body: str) -> None:
    with compiled_text("k.tile", _text(body)) as found:
        [function] = found.kernels.values()
        with function.location:
            loop = sink_row_sums(_loop_of(function))
        assert loop is not None and function.operation.verify()
        sums = [r for r in loop.results if list(ir.RankedTensorType(r.type).shape) == [ROWS, 4]]
        assert len(sums) == 1
        for columns in (0, 1, COLUMNS, 5 * COLUMNS + 3):
            x = np.random.default_rng(columns).integers(-2, 3, (ROWS, columns)).astype(np.float32)
            z = np.zeros((ROWS, 1), np.float32)
            run_kernel(function, {"z": z, "x": x})
            sum_ = most = np.zeros((ROWS, 1))
            for first in range(0, columns, COLUMNS):
                block = np.zeros((ROWS, COLUMNS))
                block[:, : min(COLUMNS, columns - first)] = x[:, first : first + COLUMNS]
                sum_ = LINEAR[body](sum_, most * 0.25 + 0.5, block.sum(axis=1, keepdims=True))
                most = block.max(axis=1, keepdims=True)
            np.testing.assert_allclose(z, sum_, rtol=1e-5)


@pytest.mark.parametrize("text", OTHER, ids=range(len(OTHER)))
def test_other_variables_stay(text: str) -> None:
    with compiled_text("k.tile", text) as found:
        [function] = found.kernels.values()
        before = str(function)
        with function.location:
            assert sink_row_sums(_loop_of(function)) is None
        assert str(function) == before
