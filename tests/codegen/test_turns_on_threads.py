"""Programs that warpgroups do by turns, thread by thread: each one's results, whoever is first.

A block does several programs, of which there are more than twice as many as blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_results_on_threads as results
from lowered import ALIGNED, FACTORS, program
from overlapped import TIMINGS, expect, small, wide
from simt import Code
from simt_memory import SimtError
from simt_strands import EARLY, LATE, Timing

from tilec.ir.walk import operations

F32 = {"element": "f32"}
A, B = "x.load::<64, 16>([z.id(0), k])", "y.load::<16, 32>([k, z.id(1)])"
ZERO = "Tile::<f32, 64, 32>::zeros()"
STEPS = "0..K.div_ceil(16)"
LOOP = f"let mut sum = {ZERO}; for k in {STEPS} {{ sum = dot({A}, {B}, sum); }}"
BOTH = (LATE, Timing(seed=3))


def kernel(body: str, parameters: str = "", element: str = "f32") -> str:
    return f"""
    #[kernel]
    #[hint(ping_pong, stages = 2)]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<{element}, M, N>, 64, 32>, x: &Tensor<bf16, M, K>,
        y: &Tensor<bf16, K, N>, {parameters}
    ) {{
        {body}
    }}"""


def factors(m: int = 136, n: int = 104, k: int = 72, element: str = "f32") -> dict[str, Any]:
    return {"z": small(m, n, element=element), "x": small(m, k), "y": small(k, n)}


def run(text: str, given: dict[str, Any], wanted: np.ndarray, *timings: Timing) -> None:
    with program(text) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        assert "2 math warpgroups by turns" in [one.what for one in point.schedule.choices]
        assert point.threads == 3 * 128 and point.is_persistent
        # Else it is another variant that runs.
        assert not any(given[name].shape[-1] % n for name, n in point.row_multiples.items())
        expect(threads, "k", given, {"z": wanted}, *timings)


@pytest.mark.parametrize("k", [0, 8, 16, 24, 40, 72])
def test_turns_of_any_number(k: int) -> None:
    given = factors(k=k)
    run(kernel(f"{LOOP} z.store(sum);"), given, wide(given["x"]) @ wide(given["y"]), *TIMINGS)


@pytest.mark.parametrize(("m", "n"), [(64, 32), (64, 64), (64, 160), (10, 296)])
def test_programs_of_any_number(m: int, n: int) -> None:
    given = factors(m=m, n=n, k=40)
    run(kernel(f"{LOOP} z.store(sum);"), given, wide(given["x"]) @ wide(given["y"]), *BOTH)


def test_what_follows_the_products_goes_through_shared_memory_of_each_team() -> None:
    given = factors(m=256, n=64)
    text = kernel(f"{LOOP} z.store(sum - sum.max::<1>() + sum.max::<0>());")
    sums = wide(given["x"]) @ wide(given["y"])
    parts = [sums[r : r + 64, c : c + 32] for r in range(0, 256, 64) for c in (0, 32)]
    found = [p - p.max(axis=1, keepdims=True) + p.max(axis=0, keepdims=True) for p in parts]
    run(text, given, np.block([found[i : i + 2] for i in range(0, 8, 2)]), *TIMINGS)


def test_results_of_16_bits() -> None:
    given = factors(element="bf16")
    text = kernel(f"{LOOP} z.store(sum.to::<bf16>());", element="bf16")
    wanted = (wide(given["x"]) @ wide(given["y"])).astype(given["z"].dtype)
    run(text, given, wide(wanted), *BOTH)


@pytest.mark.parametrize(("variant", "n"), [(ALIGNED, 136), (FACTORS, 131)])
def test_results_leave_by_copies_or_by_rows(variant: int, n: int) -> None:
    """Each team has buffers of its own for them."""
    with program(f"#[hint(ping_pong)]{results.text('bf16', 64, 64)}") as threads:
        point, _ = threads.lowered("k", variant)
        assert "2 math warpgroups by turns" in [one.what for one in point.schedule.choices]
        results.expect(threads, 200, n, 72, variant, LATE, Timing(seed=3))


def test_what_is_loaded_around_the_products() -> None:
    given = factors()
    given["b"] = small(104, **F32)
    given["r"] = small(136, 104, **F32)
    bias = "let bias = b.load::<32>([z.id(1)]).expand::<0>();"
    body = f"{bias} {LOOP} z.store(sum + bias + r.load_like(&z));"
    text = kernel(body, "b: &Tensor<f32, N>, r: &Tensor<f32, M, N>,")
    wanted = wide(given["x"]) @ wide(given["y"]) + given["b"] + given["r"]
    run(text, given, wanted, *BOTH)


def test_several_loops_and_products() -> None:
    given = factors()
    given["w"] = small(72, 104)
    second = "w.load::<16, 32>([k, z.id(1)])"
    body = f"""{LOOP} sum = sum * 2.0; let mut gate = {ZERO};
    for k in {STEPS} {{
        let a = {A};
        gate = dot(a, {second}, gate);
        sum = dot(a, {B}, sum);
    }}
    for k in {STEPS} {{ if k != 1 {{ sum = dot({A}, {B}, sum); }} }}
    z.store(sum * gate.max(0.0));"""
    x, y, w = (wide(given[name]) for name in "xyw")
    kept = [k for k in range(72) if not 16 <= k < 32]
    wanted = (3 * (x @ y) + x[:, kept] @ y[kept]) * np.maximum(x @ w, 0)
    run(kernel(body, "w: &Tensor<bf16, K, N>,"), given, wanted, *BOTH)


def test_a_slot_of_its_own_for_the_whole_program() -> None:
    given = {"z": small(136, 104, **F32), "x": small(136, 16), "y": small(5, 16, 104)}
    text = f"""
    #[kernel]
    #[hint(ping_pong, stages = 2)]
    pub fn k<M: Dim, N: Dim, L: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 32>,
        x: &Tensor<bf16, M, 16>, y: &Tensor<bf16, L, 16, N>,
    ) {{
        let a = x.load::<64, 16>([z.id(0), 0]);
        let mut sum = {ZERO};
        for l in 0..L {{
            sum = dot(a, y.load::<1, 16, 32>([l, 0, z.id(1)]).squeeze::<0>(), sum);
        }}
        z.store(sum);
    }}"""
    run(text, given, wide(given["x"]) @ wide(given["y"]).sum(axis=0), *TIMINGS)


def test_a_team_that_does_not_await_its_turn_is_found() -> None:
    """A phase of a slot that was filled for another program is taken for its own."""
    given = factors(k=40)  # three slots a program, of a ring of two
    wanted = wide(given["x"]) @ wide(given["y"])
    text = kernel(f"{LOOP} z.store(sum);").replace("stages = 2", "stages = 2, cluster = 1")
    with program(text) as threads:
        point, code = threads.lowered("k", ALIGNED)
        expect(threads, "k", given, {"z": wanted}, EARLY)
        function = code.body.owner.opview
        waits = [op for op in operations(function) if op.operation.name == "scf.while"]
        # The math warps' are first: for their turn, and for a slot.
        turn, _, loader = waits
        assert loader.operation.parent != turn.operation.parent
        turn.operation.erase()
        threads._lowered["k", ALIGNED] = point, Code(function)
        with pytest.raises((SimtError, AssertionError)):
            for timing in TIMINGS:
                expect(threads, "k", given, {"z": wanted}, timing)
