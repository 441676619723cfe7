"""Which kernels have a variant that asks for aligned tensors: those that gain by wider accesses."""

from __future__ import annotations

import pytest
from lowered import program

from tilec.units import units_of

_HEAD = "fn f0(x: Tile<f32, 64>) -> Tile<f32, 64> { x * 1.5 }\n" + "".join(
    f"fn f{n}(x: Tile<f32, 64>) -> Tile<f32, 64> {{ f{n - 1}(f{n - 1}(x)) }}\n"
    for n in range(1, 10)
)
_SIGNATURE = "pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: i32)"


def _variants(body: str) -> int:
    text = f"{_HEAD}#[kernel]\n{_SIGNATURE} {{\n{body}\n}}\n"
    with program(text) as made:
        [instance] = made.instances.values()
        return len(units_of(instance))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("z.store(f4(x.load_like(&z)));", 2),  # 16 operations for two accesses
        ("z.store(f8(x.load_like(&z)));", 2),  # 256
        ("z.store(f9(x.load_like(&z)));", 1),  # 512
        # A loop that reads counts by itself, however much stands before it.
        (
            "let mut t = f9(x.load_like(&z));\n"
            "for i in 0..n { t = t + x.load::<64>([i]); }\nz.store(t);",
            2,
        ),
        (
            "let mut t = x.load_like(&z);\n"
            "for i in 0..n { t = f9(t + x.load::<64>([i])); }\nz.store(f9(t));",
            1,
        ),
        ("z.store(x.load_at::<1>([n]).item());", 2),  # for `z` is stored in wide pieces
        # Nothing is read in a loop that only computes.
        ("let mut t = x.load_like(&z);\nfor _ in 0..n { t = f1(t); }\nz.store(f9(t));", 1),
    ],
)
def test_one_variant_where_hundreds_of_operations_stand_beside_each_access(
    body: str, count: int
) -> None:
    assert _variants(body) == count


def test_single_elements_are_accessed_in_one_way() -> None:
    text = """
#[kernel(grid = [1])]
pub fn k<N: Dim>(z: &mut Tensor<f32, N>, x: &Tensor<f32, N>) {
    z.store_at::<1>([0], x.load_at::<1>([1]) + x.load_at::<1>([2]));
}
"""
    with program(text) as made:
        [instance] = made.instances.values()
        assert len(units_of(instance)) == 1
