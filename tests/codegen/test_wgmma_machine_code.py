"""What the assembler makes of products by `wgmma`: it neither waits, nor moves, nor spills."""

from __future__ import annotations

import pytest
from mlir import ir
from wgmma_loops import Loop, Made, built, kernel, machine_code, place, put, shared, word

from tilec.ir.dialects import arith, llvm, scf
from tilec.ir.dialects import math as mlir_math
from tilec.layout.wgmma import a_register_layout, accumulator_layout, wgmma_for
from tilec.ops.fragments import i32, pack, splat, unpack, zero
from tilec.ops.lower_wgmma import WgmmaDot, finish, start, words

LOOPS = [
    *(Loop(columns=n) for n in (16, 48, 96, 128, 144, 192, 256)),
    *(Loop(columns=n, b_along=False) for n in (48, 256)),
    Loop(columns=512, element="f16", total="f16"),
    Loop(columns=320, depth=32, element="f16", total="f16"),
    *(Loop(rows=128, columns=n) for n in (48, 144)),
    Loop(rows=128, columns=192, warpgroups=2),
    Loop(rows=128, columns=96, warpgroups=2, a_along=False, b_along=False),
    Loop("f16", "f16", columns=96),
    Loop("tf32", depth=32),
    Loop("f8e4m3", columns=192),
    Loop("f8e5m2", "f16"),
    Loop("i8", "i32", columns=144),
    Loop("u8", "i32", rows=128),
    Loop(a_held=True, columns=192),
    Loop(a_held=True, waits=True, rows=128, warpgroups=2),
    Loop(a_held=True, waits=True, b_along=False),
    Loop("f16", "f16", a_held=True, waits=True, columns=144),
    Loop("tf32", a_held=True, waits=True, depth=32),
    Loop("i8", "i32", a_held=True, waits=True),
    Loop(waits=True, adds=False),
]


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_a_trip_is_its_instructions(loop: Loop) -> None:
    with built(loop) as (module, _):
        made = machine_code(module)
    runs_freely(made)
    assert products(made) == loop.instructions
    # One that begins and one that waits.
    assert count(made, "WARPGROUP") == 2


def runs_freely(made: Made) -> None:
    # C7500 to C7599 say that instructions are serialised.
    assert "C75" not in made.log, made.log
    assert "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in made.log
    # Descriptors come from uniform registers, sums stay where they are.
    assert not any(count(made, name) for name in ("MOV", "IMAD.MOV", "R2UR", "LDL")), made.trip


def count(made: Made, name: str) -> int:
    return sum(f"{found}.".startswith(f"{name}.") for found in made.trip)


def products(made: Made) -> int:
    return sum("GMMA." in name for name in made.trip)


# ---- two products, one of the other --------------------------------------------------------------

ROWS, KEYS, WIDTH = 128, 128, 128


def _chained(out: ir.Value, _: ir.Value, source: ir.Value, trips: ir.Value) -> None:
    """Of each trip the first product is begun before the second of the trip before, and is in
    turn computed with while that one runs."""
    bf16 = wgmma_for("bf16", "bf16", "f32")
    assert bf16 is not None
    queries, keys, values = (shared(n, k, 2, along) for n, k, along in (
        (ROWS, WIDTH, True), (KEYS, WIDTH, True), (WIDTH, KEYS, False)
    ))  # fmt: skip
    scores = WgmmaDot(bf16, accumulator_layout((ROWS, KEYS), 2), queries, keys)
    held = a_register_layout((ROWS, KEYS), 2, 2)
    sums = WgmmaDot(bf16, accumulator_layout((ROWS, WIDTH), 2), held, values)
    thread, group, base = place()
    base = llvm.ptrtoint(word(), base)
    k, v = (arith.addi(base, i32(n * queries.tile.bytes)) for n in (1, 2))
    half = arith.constant(ir.F32Type.get(), 0.5)
    start_p = splat(zero(ir.BF16Type.get()), held.registers)
    start_o = splat(zero(ir.F32Type.get()), sums.sums.registers)
    carried = scf.ForOp(i32(0), trips, i32(1), [start_p, start_o])
    with ir.InsertionPoint(carried.body):
        p, o = carried.inner_iter_args
        s = start(scores, None, base, k, group)
        o = start(sums, words(unpack(o)), p, v)
        weights = [mlir_math.exp2(x) for x in finish(scores, s, 1)]
        o = [arith.mulf(x, half) for x in finish(sums, o)]
        p = [arith.truncf(ir.BF16Type.get(), x) for x in weights]
        scf.yield_([pack(p), pack(o)])
    put(unpack(carried.results[1]), out, thread)


def test_a_product_of_a_product_is_computed_with_while_another_runs() -> None:
    with kernel(256, _chained) as (module, _):
        made = machine_code(module)
    runs_freely(made)
    assert products(made) == WIDTH // 16 + KEYS // 16
    assert count(made, "WARPGROUP") == 4
    assert count(made, "F2FP") == ROWS * KEYS // 256 // 2
