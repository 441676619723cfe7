"""Generated code, thread by thread, does what the CPU execution does: the meaning of the program.

`simt` also fails where a thread touches what is not the tensor's, or what another thread touches
without a barrier between.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lowered
import ml_dtypes
import numpy as np
import pytest
from lowered import ALIGNED, ANY, FIRST_ADDRESS, program
from random_tiles import RandomTiles
from simt import Launch, run_block
from simt_memory import Memory, Segment

from tilec.interpret.run import run_kernel
from tilec.shared_memory.plan_offsets import DoesNotFitError

RANDOM = np.random.default_rng(3)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Small whole numbers: their sums and products are exact in any order."""
    return RANDOM.integers(-8, 8, shape).astype(dtype)


def agree(text: str, grid_x: int | None = None, **arguments: Any) -> None:
    """Both variants of the kernel `k` give what the CPU execution gives."""
    with program(f"#[kernel]\n{text}" if "#[kernel" not in text else text) as compiled:
        wanted = _copies(arguments)
        run_kernel(compiled.instances["k"].function, wanted)
        for vector_bytes in (ANY, ALIGNED):
            got = _copies(arguments)
            compiled.run("k", got, vector_bytes, grid_x=grid_x)
            for name, value in got.items():
                if isinstance(value, np.ndarray):
                    pair = _comparable(value), _comparable(wanted[name])
                    np.testing.assert_array_equal(*pair, f"{name}, {vector_bytes}")


def _comparable(values: np.ndarray) -> np.ndarray:
    """NumPy takes NaN of f8 for different ones."""
    is_f8 = values.dtype.itemsize == 1 and values.dtype.kind in "fV"
    return values.astype(np.float64) if is_f8 else values


def _copies(arguments: dict[str, Any]) -> dict[str, Any]:
    return {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in arguments.items()}


FAR = (2**62, -(2**62), 2**63 - 1, -(2**63))

# ---- where an access begins and ends -------------------------------------------------------------


@pytest.mark.parametrize("first", [-1, 0, 3, 64, -64, -70, -(10**6), *FAR])
def test_loads_at_any_element(first: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, i: i64) {
            z.store(x.load_at::<64>([z.offset(0) + i as usize]));
        }""",
        z=numbers(200), x=numbers(200), i=first,
    )  # fmt: skip


@pytest.mark.parametrize("index", [-1, 0, 2, 3, 4, 2**58, -(2**58), *FAR])
def test_loads_of_any_tile(index: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, i: i64) {
            z.store(x.load_or::<64>([i as usize], 5.0));
        }""",
        z=numbers(200), x=numbers(200), i=index,
    )  # fmt: skip


@pytest.mark.parametrize("fours", [-1, 0, 3, -17, 50, 2**62])
def test_vectors_that_begin_or_end_outside(fours: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, i: i64) {
            z.store(x.load_at::<64>([z.offset(0) + i as usize * 4]));
        }""",
        z=numbers(203), x=numbers(203), i=fours,
    )  # fmt: skip


@pytest.mark.parametrize("extent", [0, 1, 63, 64, 65, 66, 67, 68, 127])
def test_every_remainder_of_a_group(extent: int) -> None:
    for dtype, name in ((np.int8, "i8"), (ml_dtypes.bfloat16, "bf16"), (np.float64, "f64")):
        agree(
            f"""pub fn k<N: Dim>(z: Part<&mut Tensor<{name}, N>, 64>, x: &Tensor<{name}, N>) {{
                z.store(x.load_like(&z));
            }}""",
            z=numbers(extent, dtype=dtype), x=numbers(extent, dtype=dtype),
        )  # fmt: skip


@pytest.mark.parametrize("index", [-4, -1, 0, 3, 4, 2**62, -(2**63)])
def test_parts_of_parts_are_empty_where_the_part_has_none(index: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, i: i64) {
            let s = z.sub::<16>([i as usize]);
            s.store(s.load() + 1.0);
        }""",
        z=numbers(200), i=index,
    )  # fmt: skip


def test_two_tensors_of_different_length_at_one_index() -> None:
    agree(
        """pub fn k<N: Dim, M: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, M>) {
            z.store(x.load::<64>([z.id(0)]));
        }""",
        z=numbers(130), x=numbers(65),
    )  # fmt: skip


def test_extents_of_odd_multiples_of_sixteen() -> None:
    agree(
        """pub fn k<M: Dim>(z: Part<&mut Tensor<f32, M, 144>, 16, 144>, x: &Tensor<f32, M, 144>) {
            let t = x.load_like(&z);
            z.store(t - t.sum::<1>() + t.max::<0>());
        }""",
        z=numbers(21, 144), x=numbers(21, 144),
    )  # fmt: skip


def test_transposed_and_permuted_views() -> None:
    agree(
        """pub fn k<A: Dim, B: Dim, C: Dim>(
            z: Part<&mut Tensor<f32, A, B, C>, 2, 8, 16>, x: &Tensor<f32, C, B, A>,
        ) {
            z.store(x.permute::<2, 1, 0>().load_like(&z));
        }""",
        z=numbers(3, 9, 20), x=numbers(20, 9, 3),
    )  # fmt: skip


def test_rows_far_apart_lie_beyond_two_to_the_thirty_one() -> None:
    text = """#[kernel]
    pub fn k<M: Dim, N: Dim>(z: Part<&mut Tensor<i8, M, N>, 4, 32>, x: &Tensor<i8, M, N>) {
        z.store(x.load_like(&z) + 1i8);
    }"""
    x, z = numbers(6, 40, dtype=np.int8), numbers(6, 40, dtype=np.int8)
    far = {"x": (2**31 + 16,), "z": (2**33,)}
    for vector_bytes in (ANY, ALIGNED):
        with program(text) as compiled:
            compiled.run("k", {"z": z, "x": x}, vector_bytes, strides=far)
        np.testing.assert_array_equal(z, x + np.int8(1))


def test_tensors_of_one_element() -> None:
    agree(
        """pub fn k(z: Part<&mut Tensor<f32>>, s: f32) {
            z.store(z.load() + s);
            z.store(z.load() * s);
        }""",
        z=np.asarray(3.0, np.float32), s=2.0,
    )  # fmt: skip


def test_rows_that_are_one_row() -> None:
    text = """#[kernel]
    pub fn k<M: Dim, N: Dim>(z: Part<&mut Tensor<f32, M, N>, 4, 32>, x: &Tensor<f32, M, N>) {
        z.store(x.load_like(&z));
    }"""
    x = np.broadcast_to(numbers(1, 40), (6, 40))
    for vector_bytes in (ANY, ALIGNED):
        z = numbers(6, 40)
        with program(text) as compiled:
            compiled.run("k", {"z": z, "x": x}, vector_bytes, strides={"x": (0,)})
        np.testing.assert_array_equal(z, x)


# ---- the grid ------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid_x", [None, 7])
def test_a_grid_of_three_axes_as_it_is_and_folded_into_rows_of_blocks(grid_x: int | None) -> None:
    agree(
        """pub fn k<A: Dim, B: Dim, C: Dim>(
            z: Part<&mut Tensor<i32, A, B, C>, 1, 4, 16>,
        ) {
            z.store(Tile::<i32, 1, 4, 16>::full((z.id(0) * 100 + z.id(1) * 10 + z.id(2)) as i32));
        }""",
        grid_x=grid_x, z=numbers(3, 9, 40, dtype=np.int32),
    )  # fmt: skip


@pytest.mark.parametrize(
    "shape",
    [(5, 16), (1, 40), (7, 40), (1, 1), (0, 16), (5, 0)],
    ids=lambda s: "x".join(map(str, s)),
)
@pytest.mark.parametrize("grid_x", [None, 3])
def test_a_grid_of_two_axes_of_any_extents(shape: tuple[int, int], grid_x: int | None) -> None:
    if 0 in shape and grid_x is not None:
        return  # nothing is launched
    agree(
        """pub fn k<A: Dim, B: Dim>(z: Part<&mut Tensor<i32, A, B>, 1, 16>) {
            z.store(Tile::<i32, 1, 16>::full((z.id(0) * 100 + z.id(1)) as i32));
        }""",
        grid_x=grid_x, z=numbers(*shape, dtype=np.int32),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3, 2, 20), (3, 1, 4, 5)], ids=str)
@pytest.mark.parametrize("grid_x", [None, 5])
def test_a_grid_of_four_axes(shape: tuple[int, ...], grid_x: int | None) -> None:
    agree(
        """pub fn k<A: Dim, B: Dim, C: Dim, D: Dim>(
            z: Part<&mut Tensor<i32, A, B, C, D>, 1, 1, 2, 16>,
        ) {
            let i = (z.id(0) * 10 + z.id(1)) * 100 + z.id(2) * 10 + z.id(3);
            z.store(Tile::<i32, 1, 1, 2, 16>::full(i as i32));
        }""",
        grid_x=grid_x, z=numbers(*shape, dtype=np.int32),
    )  # fmt: skip


def test_a_program_beyond_two_to_the_thirty_one() -> None:
    text = """#[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<i8, N>, 4>, x: &Tensor<i8, N>) {
        z.store(x.load_like(&z) + 1i8);
    }"""
    across, extent = 2**31 - 1, 2**34 + 3
    number = 2**32  # the last program, of three elements
    first = 4 * number
    memory = Memory()
    x, z = FIRST_ADDRESS, FIRST_ADDRESS << 1
    content = numbers(3, dtype=np.int8).view(np.uint8)
    memory.add(Segment("x", x + first, content, is_read_only=True))
    result = Segment("z", z + first, np.zeros(3, np.uint8), is_read_only=False)
    memory.add(result)
    with program(text) as compiled:
        point, code = compiled.lowered("k", ANY)
        for block in range(2):  # and the one after it, which does nothing
            at = (number + block) % across, 0, (number + block) // across
            launch = Launch(point.threads, at, (across, 1, 3), point.smem_bytes)
            run_block(code, [z, x, extent], launch, memory)
    np.testing.assert_array_equal(result.bytes, content + np.uint8(1))


def test_a_grid_over_unsigned_scalars() -> None:
    agree(
        """#[kernel(grid = [n as usize, 2])]
        pub fn k<N: Dim>(z: &mut Tensor<f32, N>, n: u32) {
            let p = program_id();
            unsafe { z.store::<16>([p[0] * 2 + p[1]], Tile::<f32, 16>::full(p[1] as f32)); }
        }""",
        z=numbers(90), n=3,
    )  # fmt: skip


# ---- program order -------------------------------------------------------------------------------


def test_a_part_is_rewritten_in_another_order() -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>) {
            z.store(z.load().reshape::<16, 16>().t().reshape::<256>());
        }""",
        z=numbers(300),
    )  # fmt: skip


def test_what_was_stored_is_loaded_in_another_shape() -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N, 1024>, 1, 1024>) {
            for i in 0..4 {
                let p = z.sub::<1, 256>([0, i]);
                p.store(z.load().max::<1>().broadcast::<1, 256>() + 1.0);
            }
        }""",
        z=numbers(3, 1024),
    )  # fmt: skip


def test_every_thread_reads_one_element_that_is_then_written() -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {
            for i in 0..3 {
                let first = z.sub::<1>([i]).load().item();
                if i != 1 {
                    z.store(z.load() + first);
                }
            }
        }""",
        z=numbers(150),
    )  # fmt: skip


# ---- control flow --------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [-3, 0, 1, 4])
def test_loops_of_every_kind(turns: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: i32) {
            let mut a = Tile::<f32, 64>::zeros();
            let mut i = 0i32;
            while i < n {
                a = a + x.load::<64>([i]);
                i += 1;
                if i % 2 == 0 { a = a * 2.0; }
            }
            for j in (0..n).rev() { a = a - x.load_at::<64>([j]); }
            for j in (0..=n).step_by(3) { a = a + x.load_at::<64>([j * 2 - 5]); }
            z.store(a);
        }""",
        z=numbers(100), x=numbers(100), n=turns,
    )  # fmt: skip


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_loop_variables_that_change_places_and_layouts(turns: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: i32) {
            let mut a = Tile::<f32, 64>::zeros();
            let mut b = x.load_like(&z);
            let mut c = iota::<f32, 64>();
            for i in 0..n {
                let t = a;
                a = b;
                b = c.reshape::<8, 8>().t().reshape::<64>();
                c = t + b;
            }
            z.store(a + b + c);
        }""",
        z=numbers(100), x=numbers(100), n=turns,
    )  # fmt: skip


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_branches_that_make_a_value_in_different_layouts(turns: int) -> None:
    agree(
        """pub fn k<M: Dim, N: Dim>(
            z: Part<&mut Tensor<f32, M, N>, 16, 32>, x: &Tensor<f32, N, M>, n: i32,
        ) {
            let mut a = Tile::<f32, 16, 32>::zeros();
            for i in 0..n {
                if i % 2 == 0 {
                    a = a + x.t().load_like(&z);
                } else {
                    a = a + x.load::<32, 16>([z.id(1), z.id(0)]).t();
                }
                a = a - a.max::<0>() + a.sum::<1>().min::<0>();
            }
            z.store(a);
        }""",
        z=numbers(20, 40), x=numbers(40, 20), n=turns,
    )  # fmt: skip


# ---- between threads -----------------------------------------------------------------------------


def test_both_halves_of_a_product_in_a_layout_that_its_use_asks_for() -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<u32, N>, 64>) {
            let a = iota::<u32, 64>() * 100000000u32;
            z.store(a.mul_hi(a));
        }""",
        z=numbers(100, dtype=np.uint32),
    )  # fmt: skip


@pytest.mark.parametrize("index", [-1, 0, 63, 64])
def test_one_element_for_all_threads(index: int) -> None:
    agree(
        """pub fn k<N: Dim>(
            z: Part<&mut Tensor<f32, N>, 64>, y: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>,
            i: i32,
        ) {
            let t = x.load_like(&z);
            z.store(t + t.at([i]));
            y.store(t + t.sum::<0>().at([0]));
        }""",
        z=numbers(100), y=numbers(100), x=numbers(100), i=index,
    )  # fmt: skip


def test_bools_and_f8_as_memory_holds_them() -> None:
    agree(
        """pub fn k<N: Dim>(
            z: Part<&mut Tensor<bool, N>, 64>, y: Part<&mut Tensor<f8e4m3, N>, 64>,
            x: &Tensor<bool, N>, w: &Tensor<f8e4m3, N>,
        ) {
            let t = x.load_like(&z);
            z.store(!t);
            y.store(select(t, w.load_like(&y), Tile::<f8e4m3, 64>::ones()));
        }""",
        z=numbers(70) > 0, y=numbers(70, dtype=ml_dtypes.float8_e4m3fn), x=numbers(70) > 0,
        w=numbers(70, dtype=ml_dtypes.float8_e4m3fn),
    )  # fmt: skip


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("shape", [(1, 512), (16, 48), (8, 64), (96, 4)])
def test_scans_keep_the_order_of_the_axis(shape: tuple[int, int], warps: int) -> None:
    tile = f"{shape[0]}, {shape[1]}"
    agree(
        f"""#[kernel]
        #[hint(warps = {warps})]
        pub fn k<M: Dim, N: Dim>(
            y: Part<&mut Tensor<i32, M, N>, {tile}>, z: Part<&mut Tensor<i32, M, N>, {tile}>,
            x: &Tensor<i32, M, N>,
        ) {{
            let t = x.load_like(&y);
            let f = t % 2 * 2 + 1;
            let (a, b) = (f, t).scan::<1>((1, 3), |(a, b), (c, d)| (a * c, b * c + d));
            y.store(a + b);
            let (a, b) = (f, t).scan_rev::<0>((1, 3), |(a, b), (c, d)| (a * c, b * c + d));
            z.store(a - b);
        }}""",
        y=numbers(*shape, dtype=np.int32), z=numbers(*shape, dtype=np.int32),
        x=numbers(*shape, dtype=np.int32),
    )  # fmt: skip


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_scans_that_start_where_the_tile_before_ended(turns: int) -> None:
    agree(
        """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>, x: &Tensor<f32, N>, n: i32) {
            let mut before = 0.0;
            for j in 0..n {
                let t = x.load::<256>([j]).scan::<0>(before, |a, b| a + b);
                before = t.at([255]);
                z.store(t + z.load());
            }
        }""",
        z=numbers(700), x=numbers(700), n=turns,
    )  # fmt: skip


# Two exchanges of 128 bytes and one of 1024.
_ARGMAX = """#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 8>, x: &Tensor<f32, N, 512>, n: i32) {
    let mut r = Tile::<i32, 8>::zeros();
    for i in 0..n {
        let t = x.load::<8, 512>([z.id(0), 0]) * (i as f32);
        r = r + t.argmax::<1>().squeeze::<1>();
        if i % 2 == 0 {
            r = r + t.reshape::<512, 8>().argmin::<0>().squeeze::<0>();
        }
    }
    z.store(r + x.load::<8, 512>([z.id(0), 0]).argmax::<1>().squeeze::<1>());
}"""


@pytest.mark.parametrize("smem_bytes", [1 << 17, 1024])
def test_shared_memory_that_does_not_suffice_is_used_again(
    smem_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace(lowered.resolve("sm_90a"), smem_per_block_bytes=smem_bytes)
    monkeypatch.setattr(lowered, "resolve", lambda _: target)
    agree(_ARGMAX, z=numbers(8, dtype=np.int32), x=numbers(8, 512), n=3)


def test_a_tile_that_shared_memory_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    target = replace(lowered.resolve("sm_90a"), smem_per_block_bytes=63)
    monkeypatch.setattr(lowered, "resolve", lambda _: target)
    with pytest.raises(DoesNotFitError), program(_ARGMAX) as compiled:
        compiled.lowered("k", ANY)


# ---- at random -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_tiles(seed: int) -> None:
    made = RandomTiles(seed)
    dtype = f"i{int(made.element[1:]) // 8}"
    rows, columns = made.shape
    agree(
        made.text,
        z=numbers(made.block + made.block // 2, dtype=dtype),
        x=numbers(2 * rows + 1, columns + 3, dtype=dtype),
        n=seed % 4,
    )
