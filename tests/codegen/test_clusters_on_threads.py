"""Blocks that share what they copy, thread by thread, for every form of factor and any grid."""

from __future__ import annotations

import numpy as np
import pytest
from lowered import ALIGNED, program
from overlapped import EARLY, LATE, Timing, expect, small, wide

TIMINGS = (LATE, EARLY, Timing(seed=7), Timing(seed=8, split=True))
FACTORS = {
    "nn": ("M, K", "K, N", "x.load::<128, 32>([z.id(0), k])", "y.load::<32, 64>([k, z.id(1)])"),
    "nt": ("M, K", "N, K", "x.load::<128, 32>([z.id(0), k])", "y.load::<64, 32>([z.id(1), k]).t()"),
    "tn": ("K, M", "K, N", "x.load::<32, 128>([k, z.id(0)]).t()", "y.load::<32, 64>([k, z.id(1)])"),
}


def text_of(form: str, cluster: str, stages: int = 2, end: str = "z.store(sum);") -> str:
    left, right, a, b = FACTORS[form]
    return f"""#[hint(cluster = {cluster}, stages = {stages})]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 128, 64>, x: &Tensor<bf16, {left}>,
        y: &Tensor<bf16, {right}>,
    ) {{
        let mut sum = Tile::<f32, 128, 64>::zeros();
        for k in 0..K.div_ceil(32) {{ sum = dot({a}, {b}, sum); }}
        {end}
    }}"""


def multiply(
    form: str,
    cluster: str,
    extents: tuple[int, int, int],
    *timings: Timing,
    blocks: int,
    stages: int = 2,
) -> None:
    m, n, k = extents
    x = small(*((k, m) if form[0] == "t" else (m, k)))
    y = small(*((n, k) if form[1] == "t" else (k, n)))
    product = wide(x.T if form[0] == "t" else x) @ wide(y.T if form[1] == "t" else y)
    with program(text_of(form, cluster, stages)) as threads:
        assert threads.lowered("k", ALIGNED)[0].cluster == blocks
        given = {"z": small(m, n, element="f32"), "x": x, "y": y}
        expect(threads, "k", given, {"z": product}, *timings)


@pytest.mark.parametrize("form", FACTORS)
@pytest.mark.parametrize(
    ("cluster", "blocks"), [("[2, 1]", 2), ("[1, 2]", 2), ("[4, 1]", 4), ("[2, 2]", 4)]
)
def test_blocks_share_factors_of_any_order(form: str, cluster: str, blocks: int) -> None:
    multiply(form, cluster, (520, 72, 70), Timing(seed=3, split=True), blocks=blocks)


@pytest.mark.parametrize(
    "extents",
    [
        (128, 64, 48), (256, 64, 48), (1, 1, 1), (130, 200, 33), (640, 64, 20), (384, 64, 0),
        (0, 8, 8),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("cluster", ["[2, 1]", "[1, 2]"])
def test_grids_that_clusters_do_not_divide(cluster: str, extents: tuple[int, int, int]) -> None:
    multiply("nn", cluster, extents, TIMINGS[0], TIMINGS[3], blocks=2)


@pytest.mark.parametrize(
    "extents",
    [
        (256, 128, 48), (1, 1, 1), (130, 200, 33), (128, 192, 48), (640, 64, 20), (384, 192, 0),
        (0, 8, 8),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("cluster", ["[2, 2]", "[4, 2]"])
def test_grids_that_clusters_of_two_sides_do_not_divide(
    cluster: str, extents: tuple[int, int, int]
) -> None:
    blocks = 4 if cluster == "[2, 2]" else 8
    multiply("nn", cluster, extents, LATE, Timing(seed=8, split=True), blocks=blocks)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("turns", [0, 1, 3, 5])
def test_turns_against_slots(turns: int, stages: int) -> None:
    multiply("nn", "[2, 1]", (384, 64, 32 * turns), *TIMINGS, blocks=2, stages=stages)


# ---- what is done once, although a block does another's program again ----------------------------


@pytest.mark.parametrize("rows", [128, 384, 640])
def test_updates_are_done_once(rows: int) -> None:
    text = text_of("nn", "[2, 1]").replace(
        "z: Part<&mut Tensor<f32, M, N>, 128, 64>",
        "z: Part<&mut Tensor<f32, M, N>, 128, 64>, s: &Atomic<Tensor<f32, N>>",
    )
    text = text.replace(
        "z.store(sum);",
        """z.store(sum);
        s.fetch_add([z.id(1) * 64 + iota::<usize, 64>()], sum.sum::<0>().squeeze::<0>());""",
    )
    x, y = small(rows, 64), small(64, 64)
    product = wide(x) @ wide(y)
    with program(text) as threads:
        assert threads.lowered("k", ALIGNED)[0].cluster == 2
        z, s = small(rows, 64, element="f32"), np.zeros(64, np.float32)
        given = {"z": z, "s": s, "x": x, "y": y}
        expect(threads, "k", given, {"z": product, "s": product.sum(axis=0)}, *TIMINGS)


def test_rows_that_are_known_to_be_whole_are_not_masked() -> None:
    text = text_of("nn", "[2, 1]").replace(") {", ") { requires!(M % 128 == 0 && N % 64 == 0);", 1)
    x, y = small(384, 64), small(64, 64)
    with program(text) as threads:
        assert threads.lowered("k", ALIGNED)[0].cluster == 2
        given = {"z": small(384, 64, element="f32"), "x": x, "y": y}
        expect(threads, "k", given, {"z": wide(x) @ wide(y)}, *TIMINGS)


def test_two_loops_of_which_one_is_shared() -> None:
    """How often the second one turns depends on the row of the program."""
    text = text_of("nn", "[2, 1]").replace(
        "z.store(sum);",
        """
        for k in z.id(0)..K.div_ceil(32) {
            sum = dot(x.load::<128, 32>([z.id(0), k]), y.load::<32, 64>([k, z.id(1)]), sum);
        }
        z.store(sum);""",
    )
    x, y = small(640, 96), small(96, 64)
    wanted = wide(x) @ wide(y)
    for row in range(5):
        own = slice(128 * row, 128 * row + 128)
        wanted[own] += wide(x)[own, 32 * row :] @ wide(y)[32 * row :]
    with program(text) as threads:
        assert threads.lowered("k", ALIGNED)[0].cluster == 2
        given = {"z": small(640, 64, element="f32"), "x": x, "y": y}
        expect(threads, "k", given, {"z": wanted}, *TIMINGS)


# ---- with warpgroups that do programs by turns ---------------------------------------------------


@pytest.mark.parametrize("extents", [(128, 64, 96), (384, 192, 40), (776, 64, 20), (384, 64, 0)])
@pytest.mark.parametrize("cluster", ["[2, 1]", "[1, 2]"])
def test_programs_by_turns(cluster: str, extents: tuple[int, int, int]) -> None:
    m, n, k = extents
    text = text_of("nn", cluster).replace("stages = 2", "stages = 2, ping_pong")
    x, y = small(m, k), small(k, n)
    with program(text) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        assert point.cluster == 2
        assert any("by turns" in one.what for one in point.schedule.choices)
        given = {"z": small(m, n, element="f32"), "x": x, "y": y}
        expect(threads, "k", given, {"z": wide(x) @ wide(y)}, *TIMINGS)


@pytest.mark.parametrize("cluster", ["[1, 2, 1]", "[1, 1, 2]", "2"])
def test_batches(cluster: str) -> None:
    """Neighbours are of one product; the rows or columns that are left are of all of them."""
    text = f"""#[hint(cluster = {cluster}, stages = 2)]
    #[kernel]
    pub fn k<L: Dim, M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, L, M, N>, 1, 128, 64>,
        x: &Tensor<bf16, L, M, K>, y: &Tensor<bf16, L, K, N>,
    ) {{
        let l = z.id(0);
        let mut sum = Tile::<f32, 128, 64>::zeros();
        for k in 0..K.div_ceil(32) {{
            let a = x.load::<1, 128, 32>([l, z.id(1), k]).squeeze::<0>();
            let b = y.load::<1, 32, 64>([l, k, z.id(2)]).squeeze::<0>();
            sum = dot(a, b, sum);
        }}
        z.store(sum.expand::<0>());
    }}"""
    x, y = small(3, 300, 40), small(3, 40, 72)
    with program(text) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        assert point.cluster == 2
        # Results leave by TMA, though their tiles have an axis more than the sums.
        assert [one.param for one in point.tensor_maps if one.writes] == ["z"]
        given = {"z": small(3, 300, 72, element="f32"), "x": x, "y": y}
        expect(threads, "k", given, {"z": wide(x) @ wide(y)}, LATE, Timing(seed=3, split=True))


@pytest.mark.parametrize("cluster", ["[2, 1]", "[1, 2]"])
def test_a_factor_that_threads_compute(cluster: str) -> None:
    """Warps, and not warpgroups, free the slots of all blocks."""
    text = text_of("nn", cluster).replace("[z.id(0), k])", "[z.id(0), k]).max(0.0)")
    x, y = small(384, 100), small(100, 136)
    with program(text) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        assert point.cluster == 2 and point.schedule.products
        given = {"z": small(384, 136, element="f32"), "x": x, "y": y}
        expect(threads, "k", given, {"z": np.maximum(wide(x), 0) @ wide(y)}, *TIMINGS)
