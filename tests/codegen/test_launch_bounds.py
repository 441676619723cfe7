"""What machine code says of its launches, so that the driver refuses others."""

from __future__ import annotations

import re

import pytest
from lowered import program

from tilec.machine_code import Tools, compile_kernels
from tilec.ops.parameter_space import parameter_bytes
from tilec.target.resolve import TARGETS, resolve
from tilec.target.toolchain import libdevice, ptxas

TEXT = """
#[kernel]
pub fn vector<N: Dim>(a: bool, z: Part<&mut Tensor<f32, N>, 64>, b: u16, c: f32, d: usize, e: i8) {
    z.store(z.load() * c);
}
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
def bytes_passed() -> dict[tuple[str, int], int]:
    """What the parameters take, by kernel and number of tensor maps."""
    return {}


@pytest.fixture(scope="module")
def made(bytes_passed):
    with program(TEXT) as kernels:
        instances = list(kernels.instances.values())
        for symbol, one in kernels.instances.items():
            for count in range(4):
                bytes_passed[symbol, count] = parameter_bytes(one.function, count)
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


# `.param .u64 .ptr .global .align 16 name`, `.param .align 64 .b8 name[128]`
_PARAM = re.compile(r"\.param (?:\.align (\d+) )?\.[bfus](\d+) [^,\n]*?(?:\[(\d+)\])?,?$", re.M)


def test_parameters_take_the_bytes_that_are_counted(made, bytes_passed) -> None:
    for kernel in made.kernels:
        for variant in kernel.variants:
            head = made.ptx.partition(f".entry {variant.symbol}(")[2].partition("\n)")[0]
            end, found = 0, _PARAM.findall(head)
            assert len(found) == len(variant.slots)
            for alignment, bits, count in found:
                size = int(bits) // 8
                step = int(alignment or size)
                end = -(-end // step) * step + size * int(count or 1)
            assert end == bytes_passed[kernel.symbol, len(variant.tensor_maps)]
    assert bytes_passed["vector", 0] == 8 + 8 + 4 + 4 + 8 + 8 + 8  # e is alone in 8 bytes


def test_code_is_written_in_a_ptx_with_room_for_parameters() -> None:
    """PTX ISA, "Kernel Function Parameters": 32764 bytes came with 8.1."""
    assert min(target.ptx_version for target in TARGETS.values()) >= 81
