"""How index lists with tiles stand in the IR."""

from __future__ import annotations

import pytest

from tests.interpret.executed import check
from tilec.frontend.emit import emit
from tilec.ir.dialect import context
from tilec.ir.walk import operations

TEXT = """
#[kernel(grid = [1])]
pub fn k<N: Dim>(x: &Tensor<f32, N, N, N>, e: &Tensor<i32, N, N, N>) {{
    let (a, b) = (iota::<u8, 16>(), iota::<i64, 64>());
    let each = e.load::<16, 64, 4>([0, 0, 0]);
    let t = x.gather::<16, 64, 4>({indices});
}}
"""


@pytest.mark.parametrize(
    ("indices", "tiled", "shapes"),
    [
        ("[0, 1, 2]", "[]", []),
        ("[a, 1, 2]", "[0]", [(16, 1, 1)]),
        ("[0, b, 2]", "[1]", [(1, 64, 1)]),
        ("[a, b, 2]", "[0, 1]", [(16, 64, 1)] * 2),
        ("[a, 0, each]", "[0, 2]", [(16, 64, 4)] * 2),
    ],
)
def test_index_tiles_have_one_shape_that_is_no_larger_than_they_need(
    indices: str, tiled: str, shapes: list[tuple[int, ...]]
) -> None:
    (program, instances), found = check(TEXT.format(indices=indices))
    assert not found
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        [kernel] = module.body.operations
        [gather] = [op for op in operations(kernel) if op.operation.name == "tile.gather"]
        _, scalars, tiles = gather.attributes["operandSegmentSizes"]
        assert str(gather.attributes["tiled"]) == tiled
        assert [tuple(v.type.shape) for v in list(gather.operands)[1 + scalars :]] == shapes
        assert (scalars, tiles) == (3 - len(shapes), len(shapes))
