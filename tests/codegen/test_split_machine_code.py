"""Kernels whose programs several blocks do, as machine code: what launchers know of them."""

from __future__ import annotations

import pytest

from tilec.artifact.expression import evaluate
from tilec.artifact.manifest import Manifest, from_json
from tilec.compilation import Options
from tilec.driver import compile_sources
from tilec.source import SourceFile
from tilec.sources import Sources

TEXT = """
#[kernel]
#[instance(BM = 64, BN = 64)]
#[instance(BM = 64, BN = 64, hint(split = 2))]
#[instance(BM = 64, BN = 64, hint(split = 8))]
pub fn product<M: Dim, N: Dim, K: Dim, const BM: usize, const BN: usize>(
    c: Part<&mut Tensor<f32, M, N>, BM, BN>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, BM, BN>::zeros();
    for k in 0..K.div_ceil(64) {
        sum = dot(a.load::<BM, 64>([c.id(0), k]), b.load::<64, BN>([k, c.id(1)]), sum);
    }
    c.store(sum);
}
"""
EXTENTS = {"M": 64, "N": 2048, "K": 64 * 20}


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    sources = Sources(SourceFile("split.tile", TEXT), {}, {"split.tile": "0" * 64}, {})
    compiled = compile_sources(sources, Options())
    assert not compiled.is_refused
    return from_json(compiled.outputs["split.json"])


def test_a_cluster_does_a_program(manifest: Manifest) -> None:
    found = [
        [(one.split, one.cluster, one.cost.blocks_per_program) for one in kernel.variants]
        for kernel in manifest.kernels
    ]
    # Where hardware does not copy factors, each block does all.
    alone = (1, (1, 1, 1), 1)
    assert found == [[(blocks, (blocks, 1, 1), blocks)] * 2 + [alone] for blocks in (1, 2, 8)]


def test_turns_are_those_of_one_block(manifest: Manifest) -> None:
    turns = [
        int(evaluate(one.variants[0].cost.parts[1].turns, EXTENTS)) for one in manifest.kernels
    ]
    assert turns == [20, 10, 3]


def test_long_loops_of_few_programs_are_split(manifest: Manifest) -> None:
    def fastest(programs: int, k: int) -> int:
        costs = [one.variants[0].cost for one in manifest.kernels]
        cycles = [cost.cycles(programs, {**EXTENTS, "K": k}, 132) for cost in costs]
        return (1, 2, 8)[cycles.index(min(cycles))]

    assert fastest(16, 1 << 14) == 8
    assert fastest(64, 1 << 13) > 1
    assert fastest(132, 64) == 1
    assert fastest(1320, 1 << 12) == 1
