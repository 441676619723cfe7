"""What launchers choose members by: turns of loops, and cycles by the rates of a target."""

from __future__ import annotations

import pytest

from tilec.artifact.expression import evaluate
from tilec.artifact.family import Part
from tilec.artifact.manifest import from_json
from tilec.compilation import Options
from tilec.driver import compile_sources
from tilec.schedule.cost import Work, cost_of
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve

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
#[instance(BM = 64, BN = 64)]
#[instance(BM = 128, BN = 256)]
pub fn layer<L: Dim, M: Dim, N: Dim, K: Dim, const BM: usize, const BN: usize>(
    c: Part<&mut Tensor<f32, M, N>, BM, BN>, a: &Tensor<bf16, M, K>,
    b: &Tensor<bf16, L, K, N>, l: usize,
) {
    requires!(l < L);
    let mut sum = Tile::<f32, BM, BN>::zeros();
    for k in 0..K.div_ceil(64) {
        let t = b.load::<1, 64, BN>([l, k, c.id(1)]).reshape::<64, BN>();
        sum = dot(a.load::<BM, 64>([c.id(0), k]), t, sum);
    }
    c.store(sum);
}

#[kernel]
#[hint(stages = 2)]
#[instance(BM = 64, BN = 64)]
pub fn shallow<M: Dim, N: Dim, K: Dim, const BM: usize, const BN: usize>(
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
    assert not compiled.is_refused  # what spills is built all the same
    told = from_json(compiled.outputs["costs.json"])
    return {kernel.symbol: kernel.variants for kernel in told.kernels}


def loop_of(variant):
    """The part that is in the innermost loop, whatever the extents are."""
    return [part for part in variant.cost.parts if "select" not in str(part.turns)][-1]


def more_of(variant, **extents):
    """What a turn of the loop takes more at these extents: of L2, and alone."""
    turns = evaluate(loop_of(variant).turns, extents)
    more = [part for part in variant.cost.parts if "select" in str(part.turns)]
    counts = [evaluate(part.turns, extents) for part in more]
    assert set(counts) <= {0, turns}
    held = [part for part, count in zip(more, counts, strict=True) if count]
    return sum(part.memory_cycles for part in held), sum(part.alone_cycles for part in held)


@pytest.mark.parametrize(
    ("symbol", "cycles"),
    [
        # 16 KiB from L2, 64 bytes a cycle, of which 90 % are kept up.
        ("product__64_64", 16384 / 64 / 0.9),
        # 128 x 256 x 64 products of 2 bytes, 4096 a cycle, of which 90 % are kept up.
        ("product__128_256", 128 * 256 * 64 * 2 / 4096 / 0.9),
        # 16 KiB of a and 20 KiB of b from L2, which gives whole lines for rows of 64 bytes of b.
        ("product__128_160", (16384 + 2 * 20480) / 64 / 0.9),
    ],
)
def test_a_turn_that_overlaps_takes_as_long_as_its_busiest_unit(kernels, symbol, cycles):
    aligned, *_ = kernels[symbol]
    turns = ("ceildiv", "K", 64)
    part = loop_of(aligned)
    assert (part.turns, max(part.busy_cycles), part.alone_cycles) == (turns, *[round(cycles)] * 2)


def test_rows_that_begin_anywhere_touch_two_lines(kernels):
    aligned, *_ = kernels["product__64_64"]
    # 8 KiB of each factor in rows of 128 bytes, which begin at one of eight places in a line: of
    # these only one touches no second line. L2 keeps up 90 % of 64 bytes a cycle.
    extra = 8192 * 7 / 8 / (64 * 0.9)
    assert more_of(aligned, M=100, N=4096, K=4096) == (0, 0)
    # Nothing took longer than copies before: all of it is waited for.
    assert more_of(aligned, M=100, N=4096, K=4104) == pytest.approx((extra, extra), abs=2)
    assert more_of(aligned, M=100, N=4104, K=4096) == pytest.approx((extra, extra), abs=2)
    assert more_of(aligned, M=100, N=4104, K=4104) == pytest.approx((2 * extra, 2 * extra), abs=3)


def test_what_tensor_cores_hide_of_second_lines_is_not_waited_for(kernels):
    aligned, *_ = kernels["product__128_256"]
    products = 128 * 256 * 64 * 2 / 4096 / 0.9
    # 16 KiB of a, and half of 32 KiB of b, which two blocks share.
    copies = 32768 / 64 / 0.9
    second = 16384 * 7 / 8 / 64 / 0.9
    assert copies + 2 * second < products
    assert more_of(aligned, M=1, N=4096, K=4104) == pytest.approx((second, 0), abs=2)
    assert more_of(aligned, M=1, N=4104, K=4104) == pytest.approx((2 * second, 0), abs=3)


def test_short_rings_make_turns_wait(kernels):
    # Each of two slots is filled 700 cycles after it was free, and used for what a turn takes.
    turn = 16384 / 64 / 0.9
    shallow = loop_of(kernels["shallow__64_64"][0])
    assert shallow.alone_cycles == round((700 + turn) / 2) > turn
    assert loop_of(kernels["product__64_64"][0]).alone_cycles == round(turn)


def test_what_nobody_read_before_is_waited_for_by_all_blocks_together(kernels):
    cost = kernels["product__64_64"][0].cost
    extents = {"M": 64, "N": 4096, "K": 2048}
    # b has more tiles than a. They come from memory, to one of eight slots.
    waits = round((1900 + 16384 / 64 / 0.9) / 8)
    assert evaluate(cost.first_cycles, extents) == 32 * 64 * waits


def test_what_is_read_comes_from_memory_once(kernels):
    cost = kernels["product__64_64"][0].cost
    extents = {"M": 64, "N": 4096, "K": 2048}
    assert evaluate(cost.memory_cycles, extents) == -(-2 * (64 * 2048 + 2048 * 4096) // 2300)


def test_of_a_stack_a_layer_is_read(kernels):
    extents = {"L": 80, "M": 64, "N": 4096, "K": 2048}
    for tile in ("64_64", "128_256"):
        one, alone = kernels[f"layer__{tile}"][0].cost, kernels[f"product__{tile}"][0].cost
        for what in ("memory_cycles", "first_cycles"):
            cycles = evaluate(getattr(one, what), extents)
            assert cycles == evaluate(getattr(alone, what), extents) > 0
    # And so members differ in what they take, which a whole stack would hide.
    took = {kernels[f"layer__{t}"][0].cost.cycles(64, extents, 132) for t in ("64_64", "128_256")}
    assert len(took) == 2


def test_elements_that_go_through_registers_cost_instructions(kernels):
    aligned, *_, general = kernels["product__64_64"]
    part = loop_of(general)
    # 16 for each of 8192 elements on 128 lanes; four warps issue every other cycle.
    assert part.thread_cycles == 8192 * 16 // 128 == max(part.busy_cycles)
    assert part.alone_cycles > 2 * part.thread_cycles + LATENCY
    assert loop_of(aligned).thread_cycles == 0


def test_what_spills_is_outside_of_loops_in_which_only_products_go_on():
    epilogue, products = Part(1, 0, 10, 0, 50, 100), Part(32, 500, 400, 300, 0, 500)
    target = resolve("sm_90a")
    work = Work((epilogue, products), 1, spilling=0, threads=256)
    first, second = cost_of(work, 1, 384, 128, target).parts
    assert second == products
    # 256 threads move 128 bytes each; of 32 words, one waits 32 cycles, two warps at a time.
    assert first.shared_cycles == 10 + 256 * 128 // 128
    assert first.alone_cycles == 100 + 256 * 128 // 128 + 32 * 32 // 2
    anywhere = Work((epilogue, products))
    assert cost_of(anywhere, 1, 384, 128, target).parts[0] == epilogue


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
