"""What launchers choose members by: turns of loops, and cycles by the rates of a target."""

from __future__ import annotations

import pytest

from tilec.artifact.expression import evaluate
from tilec.artifact.manifest import from_json
from tilec.compilation import Options
from tilec.driver import compile_sources
from tilec.source import SourceFile
from tilec.sources import Sources

TEXT = """
#[kernel]
#[instance(BM = 64, BN = 64)]
#[instance(BM = 128, BN = 256)]
#[instance(BM = 128, BN = 160)]
pub fn product<M: Dim, N: Dim, K: Dim, const BM: usize, const BN: usize>(
    c: Part<&mut Tensor<f32, M, N>, BM, BN>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, BM, BN>::zeros();
    for k in 0..K.div_ceil(64) {
        sum = dot(a.load::<BM, 64>([c.id(0), k]), b.load::<64, BN>([k, c.id(1)]), sum);
    }
    c.store(sum);
}

#[kernel]
pub fn upto<M: Dim, N: Dim>(z: Part<&mut Tensor<f32, M, N>, 16, 128>, x: &Tensor<f32, M, N>) {
    let mut sum = Tile::<f32, 16, 128>::zeros();
    for j in 0..z.offset(0) + 16 {
        for i in 0..j {
            sum = sum + x.load::<16, 128>([i, z.id(1)]);
        }
    }
    z.store(sum);
}

#[kernel]
pub fn counted<N: Dim>(z: Part<&mut Tensor<f32, N>, 1024>, x: &Tensor<f32, N>, n: usize) {
    let mut sum = x.load_like(&z);
    for _ in 0..n {
        sum = sum.exp();
    }
    z.store(sum);
}

#[kernel(grid = [n, M])]
pub fn gridded<M: Dim>(z: &Atomic<Tensor<f32, M>>, x: &Tensor<f32, M>, n: u32) {
    let [p, q, _] = program_id();
    let mut sum = 0.0;
    for j in 0..p + (n as usize) + M {
        sum = sum + x.load::<128>([j]).sum_all();
    }
    z.fetch_add([q], sum);
}

#[kernel]
pub fn unknown<N: Dim>(z: Part<&mut Tensor<i32, N>, 1024>, x: &Tensor<i32, N>) {
    let mut sum = x.load_like(&z);
    while sum.max_all() > 3 {
        sum = sum - 1;
    }
    z.store(sum);
}
"""
LATENCY = 800


@pytest.fixture(scope="module")
def kernels():
    sources = Sources(SourceFile("costs.tile", TEXT), {}, {"costs.tile": "0" * 64}, {})
    compiled = compile_sources(sources, Options())
    assert not compiled.diagnostics
    told = from_json(compiled.outputs["costs.json"])
    return {kernel.symbol: kernel.variants for kernel in told.kernels}


def loop_of(variant):
    """The part that is in the innermost loop."""
    return variant.cost.parts[-1]


@pytest.mark.parametrize(
    ("symbol", "cycles"),
    [
        # Bytes of 128 a cycle in shared memory: 16 KiB written, 64 x 64 of each factor read.
        ("product__64_64", (16384 + 16384) / 128),
        # 128 x 256 x 64 products of 2 bytes, 4096 a cycle, of which 90 % are kept up.
        ("product__128_256", 128 * 256 * 64 * 2 / 4096 / 0.9),
        # Shared memory, 128 bytes a cycle: 16 KiB of a and 20 KiB of b are filled; a is read once, b
        # for each 64 rows. (Two blocks share b, whose rows of 64 bytes come as lines of 128.)
        ("product__128_160", (16384 + 20480 + 16384 + 2 * 20480) / 128),
    ],
)
def test_a_turn_that_overlaps_takes_as_long_as_its_busiest_unit(kernels, symbol, cycles):
    aligned, *_ = kernels[symbol]
    turns = ("ceildiv", "K", 64)
    part = loop_of(aligned)
    assert (part.turns, max(part.busy_cycles), part.alone_cycles) == (turns, *[round(cycles)] * 2)


def test_what_all_threads_copy_ahead_takes_as_long_as_its_busiest_unit(kernels):
    aligned, *_, general = kernels["product__64_64"]
    part = loop_of(general)
    assert part.alone_cycles == max(part.busy_cycles) > loop_of(aligned).alone_cycles


def test_a_block_has_a_multiprocessor_to_itself_or_what_fits(kernels):
    aligned, *_, general = kernels["product__64_64"]
    assert aligned.cost.blocks_per_sm == 1  # 128 KiB of shared memory each
    assert general.cost.blocks_per_sm > 1


def test_warpgroups_that_do_programs_by_turns_are_as_two_blocks(kernels):
    assert kernels["product__128_160"][0].cost.blocks_per_sm == 2
    assert kernels["product__128_256"][0].cost.blocks_per_sm == 1


def test_a_programs_own_index_counts_as_the_middle(kernels):
    part = loop_of(kernels["upto"][0])
    # 64 programs along M, the middle one ends at row 32 * 16 + 16; the inner loop at half of that.
    assert evaluate(part.turns, {"M": 1024, "N": 128}) == (32 * 16 + 16) * (32 * 16 + 16) // 2
    # 16 x 128 numbers of 4 bytes come at 64 bytes a cycle, and are added by 128 lanes.
    assert part.memory_cycles == 16 * 128 * 4 // 64
    assert part.thread_cycles == 16 * 128 // 128
    assert part.alone_cycles == 16 * 128 * 4 // 64 + 16 * 128 // 128 + LATENCY


def test_arguments_and_data_have_no_say_in_the_choice(kernels):
    assert loop_of(kernels["counted"][0]).turns == 1024
    assert loop_of(kernels["unknown"][0]).turns == 8


def test_arguments_in_a_grid_have_no_say_either(kernels):
    # In the middle of 1024 programs, then 1024, then M.
    assert evaluate(loop_of(kernels["gridded"][0]).turns, {"M": 100}) == 512 + 1024 + 100


def test_functions_cost_more_than_sums(kernels):
    assert loop_of(kernels["counted"][0]).thread_cycles == 1024 * 10 // 128
