"""Results that leave box by box through shared memory, thread by thread: by copies, and by rows."""

from __future__ import annotations

import numpy as np
import pytest
from lowered import ALIGNED, FACTORS, Program, program
from mlir import ir
from overlapped import TIMINGS, TYPES, small, wide
from simt import Code
from simt_memory import SimtError
from simt_strands import LATE, Timing

from tilec.codegen.lower_tiles import SHARED
from tilec.ir.walk import operations
from tilec.shared_memory.accesses import Alloc, Skeleton, skeleton_of
from tilec.shared_memory.resolve import resolve
from tilec.shared_memory.verify import problems_of

SEND = "nvvm.cp.async.bulk.tensor.global.shared.cta"


def text(element: str, bm: int, bn: int, *, total: str = "f32", after: str = "") -> str:
    factor = "i8" if total == "i32" else "bf16"
    return f"""#[hint(stages = 2)]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<{element}, M, N>, {bm}, {bn}>,
        x: &Tensor<{factor}, M, K>, y: &Tensor<{factor}, N, K>,
    ) {{
        let mut sum = Tile::<{total}, {bm}, {bn}>::zeros();
        for k in 0..K.div_ceil(32) {{
            sum = dot(x.load::<{bm}, 32>([z.id(0), k]), y.t().load::<32, {bn}>([k, z.id(1)]), sum);
        }}
        {after}
        z.store(sum.to::<{element}>());
    }}"""


def given(
    element: str, m: int, n: int, k: int, *, factor: str = "bf16"
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Arguments, and what `z` is to be."""
    x, y = small(m, k, element=factor), small(n, k, element=factor)
    z = np.full((m, n), 7).astype(TYPES[element])
    return {"z": z, "x": x, "y": y}, wide((wide(x) @ wide(y).T).astype(TYPES[element]))


def expect(
    threads: Program, m: int, n: int, k: int, variant: int, *timings: Timing, element: str = "bf16"
) -> None:
    for timing in timings:
        arguments, wanted = given(element, m, n, k)
        threads.run("k", arguments, variant, timing=timing)
        np.testing.assert_array_equal(wide(arguments["z"]), wanted, f"{timing}")


def has_copies(threads: Program, variant: int = ALIGNED) -> bool:
    point, _ = threads.lowered("k", variant)
    return any(one.writes for one in point.tensor_maps)


@pytest.mark.parametrize("variant", [ALIGNED, FACTORS])
@pytest.mark.parametrize(
    ("element", "bm", "bn"),
    [
        ("bf16", 128, 256), ("bf16", 128, 192), ("f16", 256, 64), ("f32", 128, 96),
        ("bf16", 64, 64), ("f32", 64, 32), ("bf16", 64, 48), ("bf16", 128, 80), ("bf16", 64, 16),
    ],
)  # fmt: skip
def test_tiles_of_any_size(element: str, bm: int, bn: int, variant: int) -> None:
    """Several programs a block, cut at both ends; rows of whole pieces of 16 bytes."""
    with program(text(element, bm, bn)) as threads:
        assert has_copies(threads, variant) == (variant == ALIGNED)
        expect(threads, 2 * bm + 9, 2 * bn + 8, 70, variant, LATE, element=element)


@pytest.mark.parametrize("n", [1, 7, 63, 65, 130])
@pytest.mark.parametrize("k", [0, 8, 40])
def test_rows_that_end_anywhere(n: int, k: int) -> None:
    """Factors are aligned, results are not: the launcher takes the variant that stores by rows."""
    with program(text("bf16", 64, 64)) as threads:
        expect(threads, 65, n, k, ALIGNED, LATE)


def test_integers() -> None:
    with program(text("i32", 64, 64, total="i32")) as threads:
        assert has_copies(threads)
        arguments, wanted = given("i32", 100, 68, 64, factor="i8")
        threads.run("k", arguments, ALIGNED)
        np.testing.assert_array_equal(wide(arguments["z"]), wanted)


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("variant", [ALIGNED, FACTORS])
def test_whatever_happens_first(timing: Timing, variant: int) -> None:
    """One block does several programs, whose copies meet."""
    with program(text("bf16", 128, 192)) as threads:
        expect(threads, 128 * 3, 192 * 2, 32, variant, timing)


# ---- what is not sent ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        # What a copy does is in no order with what the program does.
        text("f32", 64, 64, after="z.store(sum * 2.0);"),
        text("f32", 64, 64, after="sum = sum + z.load();"),
        text("f32", 64, 64, after="for i in 0..2 { z.store(sum); }"),
        # Its end is no end of the tensor.
        text("f32", 64, 64).replace("z.store(sum", "z.sub::<64, 64>([0, 0]).store(sum"),
    ],
)
def test_what_the_program_does_more_with_is_stored_in_order(kernel: str) -> None:
    with program(kernel) as threads:
        assert not has_copies(threads)
        assert threads.lowered("k", ALIGNED)[0].tensor_maps


def test_two_results_and_one_in_a_branch() -> None:
    kernel = """#[hint(stages = 2)]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<bf16, M, N>, 128, 64>, w: Part<&mut Tensor<f32, M, N>, 128, 64>,
        x: &Tensor<bf16, M, K>, y: &Tensor<bf16, N, K>,
    ) {
        let mut sum = Tile::<f32, 128, 64>::zeros();
        for k in 0..K.div_ceil(32) {
            sum = dot(x.load::<128, 32>([z.id(0), k]), y.t().load::<32, 64>([k, z.id(1)]), sum);
        }
        if z.id(0) % 2 == 1 {
            w.store(sum + 1.0);
        }
        z.store(sum.to::<bf16>());
    }"""
    with program(kernel) as threads:
        maps = threads.lowered("k", ALIGNED)[0].tensor_maps
        assert {one.param for one in maps if one.writes} == {"z", "w"}
        for timing in TIMINGS:
            arguments, wanted = given("bf16", 384, 128, 96)
            arguments["w"] = np.full((384, 128), 7, np.float32)
            threads.run("k", arguments, ALIGNED, timing=timing)
            np.testing.assert_array_equal(wide(arguments["z"]), wanted)
            exact = wide(arguments["x"]) @ wide(arguments["y"]).T + 1
            exact[:128] = exact[256:] = 7
            np.testing.assert_array_equal(wide(arguments["w"]), exact)


# ---- what goes wrong is found --------------------------------------------------------------------

# Of what is around a copy: nothing may be left out, but what another one stands for.
AROUND = (
    "nvvm.fence.proxy",
    "nvvm.cp.async.bulk.wait_group",
    "nvvm.cp.async.bulk.commit.group",
    "nvvm.bar.warp.sync",
)


def every(function: ir.OpView, name: str) -> list[ir.OpView]:
    return [op for op in operations(function) if op.operation.name == name]


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("tile", [(128, 192), (128, 128), (64, 64)], ids=str)
def test_the_verifier_finds_what_goes_wrong_and_nothing_else(
    name: str, tile: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    unresolved: list[ir.OpView] = []

    def keep(skeleton: Skeleton, symbol: str) -> None:
        unresolved.append(function_of(skeleton).clone().opview)
        resolve(skeleton, symbol)

    monkeypatch.setattr("tilec.shared_memory.finish.resolve", keep)
    together = "#[hint(ping_pong = false)]"
    with program(f"{together}{text('bf16', *tile)}") as threads:
        point, _ = threads.lowered("k", ALIGNED)
        [function] = unresolved
        warps = point.threads // 32 - 4
        assert len(every(function, SEND)) == tile[1] // 64
        assert not list(problems_of(skeleton_of(function), warps=warps))
        seen = []
        for number in range(len(every(function, name))):
            mutant = function.operation.clone().opview
            every(mutant, name)[number].operation.erase()
            found = [problem.what for problem in problems_of(skeleton_of(mutant), warps=warps)]
            resolve(skeleton_of(mutant), SHARED)
            threads.take("k", ALIGNED, point, Code(mutant))
            wrong = what_goes_wrong(threads, *tile)
            assert bool(found) == (wrong is not None), (number, found, wrong)
            seen.append(bool(found))
            mutant.operation.erase()
        # A wait in a block that does one program waits for nothing, and one may cover for another.
        assert all(seen) if name != "nvvm.cp.async.bulk.wait_group" else any(seen)


def function_of(skeleton: Skeleton) -> ir.Operation:
    first = skeleton[0]
    around = (first.buffer if isinstance(first, Alloc) else first).op.operation
    while around.name != "llvm.func":
        around = around.parent
    return around


def what_goes_wrong(threads: Program, bm: int, bn: int) -> str | None:
    for timing in (LATE, Timing(seed=3)):
        try:
            expect(threads, 5 * bm, bn, 32, ALIGNED, timing)
        except SimtError as error:
            return str(error)
    return None
