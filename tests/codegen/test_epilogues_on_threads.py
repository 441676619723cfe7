"""What follows products, thread by thread: loads that begin before, tiles made box by box."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lowered import ALIGNED, ANY, FACTORS, Program, program
from mlir import ir
from overlapped import TIMINGS, TYPES, small, wide
from simt_strands import LATE, Timing

from tilec.ir.walk import operations

BEFORE = "is loaded before the products"


def text(
    bm: int,
    bn: int,
    after: str,
    *,
    element: str = "bf16",
    hint: str = "stages = 2",
    more: str = "",
    before: str = "",
) -> str:
    return f"""#[hint({hint})]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<{element}, M, N>, {bm}, {bn}>,
        x: &Tensor<bf16, M, K>, y: &Tensor<bf16, N, K>, residual: &Tensor<bf16, M, N>,
        bias: &Tensor<bf16, N>, row: &Tensor<f32, M>, column: &Tensor<f32, N>, {more}
    ) {{
        {before}
        let mut sum = Tile::<f32, {bm}, {bn}>::zeros();
        for k in 0..K.div_ceil(32) {{
            sum = dot(x.load::<{bm}, 32>([z.id(0), k]), y.t().load::<32, {bn}>([k, z.id(1)]), sum);
        }}
        {after}
    }}"""


def everything(bm: int, bn: int, element: str = "bf16") -> str:
    return f"""
        let r = row.load::<{bm}>([z.id(0)]).expand::<1>();
        let c = column.load::<{bn}>([z.id(1)]).expand::<0>();
        let b = bias.load::<{bn}>([z.id(1)]).expand::<0>().to::<f32>();
        let t = residual.load_like(&z).to::<f32>() + sum * r * c + b;
        z.store(select(t.gt(0.0), t, t * 0.5).to::<{element}>());
    """


def arguments(m: int, n: int, k: int, element: str = "bf16") -> dict[str, Any]:
    scale = 2.0 ** small(m + n, element="f32")
    return {
        "z": np.full((m, n), 7).astype(TYPES[element]),
        "x": small(m, k), "y": small(n, k), "residual": small(m, n), "bias": small(n),
        "row": scale[:m].astype(np.float32), "column": scale[m:].astype(np.float32),
    }  # fmt: skip


def wanted_of(given: dict[str, Any], element: str = "bf16") -> np.ndarray:
    of = {name: wide(value) for name, value in given.items()}
    product = of["x"] @ of["y"].T
    t = of["residual"] + product * of["row"][:, None] * of["column"] + of["bias"]
    return wide(np.where(t > 0, t, t * 0.5).astype(TYPES[element]))


def expect(threads: Program, m: int, n: int, k: int, variant: int, *timings: Timing) -> None:
    for timing in timings:
        given = arguments(m, n, k)
        wanted = wanted_of(given)
        threads.run("k", given, variant, timing=timing)
        np.testing.assert_array_equal(wide(given["z"]), wanted, f"{timing}")


def choices(threads: Program, variant: int = ALIGNED) -> list[str]:
    return [one.what for one in threads.lowered("k", variant)[0].schedule.choices]


def code(threads: Program, variant: int = ALIGNED) -> Iterator[ir.OpView]:
    threads.lowered("k", variant)
    return operations(list(threads.body.operations)[-1])


# ---- what is computed ----------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [ALIGNED, FACTORS])
@pytest.mark.parametrize("size", [(128, 192), (128, 256), (256, 64), (64, 48)], ids=str)
def test_bias_residual_and_scales(size: tuple[int, int], variant: int) -> None:
    """Both warpgroups on one program, and by turns; ends that cut rows, columns and boxes."""
    bm, bn = size
    with program(text(bm, bn, everything(bm, bn))) as threads:
        expect(threads, 2 * bm + 9, bn + 8, 40, variant, LATE)
        expect(threads, bm - 3, 2 * bn - 3, 0, variant, LATE)


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("hint", ["ping_pong, stages = 2", "cluster = 2, stages = 2"])
def test_whatever_happens_first(hint: str, timing: Timing) -> None:
    with program(text(128, 64, everything(128, 64), hint=hint)) as threads:
        expect(threads, 128 * 4 - 5, 64 * 3 - 8, 72, ALIGNED, timing)


@pytest.mark.parametrize(
    "after",
    [
        # Each needs what the other needs: at one place, and at two.
        "let t = sum * 2.0 + 1.0; z.store(t.to::<bf16>()); w.store(t.abs());",
        """let t = sum * 2.0 + 1.0; if z.id(0) % 1 == 0 { w.store(t.abs()); }
        z.store(t.to::<bf16>());""",
        # All of a tile is needed before it leaves.
        """let t = sum * 2.0 + 1.0; let most = (t * 0.0).max::<1>();
        w.store(t.abs() + most); z.store(t.to::<bf16>());""",
    ],
)
def test_what_two_results_are_made_of(after: str) -> None:
    more = "w: Part<&mut Tensor<f32, M, N>, 128, 64>,"
    with program(text(128, 64, after, more=more)) as threads:
        given = arguments(200, 72, 40) | {"w": np.full((200, 72), 7, np.float32)}
        t = wide(given["x"]) @ wide(given["y"]).T * 2 + 1
        threads.run("k", given, ALIGNED)
        np.testing.assert_array_equal(wide(given["z"]), wide(t.astype(TYPES["bf16"])))
        np.testing.assert_array_equal(given["w"], np.abs(t))


# ---- when, and in which pieces -------------------------------------------------------------------


@pytest.mark.parametrize("variant", [ALIGNED, FACTORS])
def test_what_a_box_needs_is_computed_for_it_alone(variant: int) -> None:
    """An access to shared memory takes a few registers; the sums are 192."""
    with program(text(128, 192, everything(128, 192))) as threads:
        steps = [op for op in code(threads, variant) if op.operation.name == "arith.select"]
        counts = [
            ir.VectorType(op.results[0].type).shape[0]
            for op in steps
            if isinstance(op.results[0].type, ir.VectorType)
        ]
        assert sum(counts) == 192
        assert max(counts) <= 8


def test_tiles_of_few_registers_are_loaded_before_the_products() -> None:
    with program(text(128, 192, everything(128, 192))) as threads:
        found = choices(threads)
        # Beside 192 sums there is room for the 24 words of `bias`, not for 48 of `column` too.
        before = [one for one in found if BEFORE in one]
        assert before == [f"`bias` {BEFORE}"]
    with program(text(128, 128, everything(128, 128))) as threads:
        assert len([one for one in choices(threads) if BEFORE in one]) == 3


@pytest.mark.parametrize(
    "after",
    [
        # What the kernel writes, it reads in order.
        "let t = z.load().to::<f32>(); z.store((sum + t).to::<bf16>());",
        # Where it is, the sums say.
        """let i = sum.at([0, 0]).to::<i32>() as usize;
        let t = residual.load_at::<128, 64>([i, 0]).to::<f32>();
        z.store((sum + t).to::<bf16>());""",
    ],
)
def test_what_must_wait_for_products_does(after: str) -> None:
    with program(text(128, 64, after)) as threads:
        assert not [one for one in choices(threads) if BEFORE in one]


def test_nothing_begins_early_where_all_threads_load() -> None:
    with program(text(128, 64, everything(128, 64)), target="sm_80") as threads:
        assert not [one for one in choices(threads, ANY) if BEFORE in one]
