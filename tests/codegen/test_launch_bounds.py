"""What machine code says of its launches, so that the driver refuses others."""

from __future__ import annotations

import re

import pytest
from lowered import program

from tilec.machine_code import Tools, compile_kernels
from tilec.target.resolve import resolve
from tilec.target.toolchain import libdevice, ptxas

TEXT = """
#[kernel]
pub fn vector<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) { z.store(z.load() * 2.0); }
#[hint(stages = 2, cluster = 2)]
#[kernel]
pub fn product<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 128, 64>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, 128, 64>::zeros();
    for k in 0..K.div_ceil(32) {
        sum = dot(x.load::<128, 32>([z.id(0), k]), y.load::<32, 64>([k, z.id(1)]), sum);
    }
    z.store(sum);
}
"""


@pytest.fixture(scope="module")
def made():
    with program(TEXT) as kernels:
        instances = list(kernels.instances.values())
        return compile_kernels(instances, resolve("sm_90a"), Tools(ptxas(), libdevice()))


def test_entries_have_the_threads_and_clusters_that_the_manifest_says(made) -> None:
    clusters = set()
    for variant in (v for kernel in made.kernels for v in kernel.variants):
        head = made.ptx.partition(f".entry {variant.symbol}(")[2].partition("\n{")[0]
        assert re.search(r"\.maxntid (\d+)", head)[1] == str(variant.threads)
        told = re.search(r"\.reqnctapercluster (\d+), (\d+), (\d+)", head)
        cluster = tuple(map(int, told.groups())) if told else (1, 1, 1)
        assert cluster == variant.cluster
        clusters.add(cluster)
    assert clusters == {(1, 1, 1), (2, 1, 1)}
