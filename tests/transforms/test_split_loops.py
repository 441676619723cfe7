"""Split loops compute the same, and the steady part has no mask: executed on the CPU."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from mlir import ir

from tests.on_cpu import compiled_text
from tilec.interpret.run import run_kernel
from tilec.ir.walk import operations
from tilec.target.resolve import resolve
from tilec.transforms.split_loops import split_loops

TARGET = resolve("sm_90a")
assert TARGET.rates is not None
RATES = TARGET.rates
COLUMNS = 16
SCALARS = (-(2**31), -70, -1, 0, 1, 13, 14, 15, 16, 17, 30, 31, 40, 64, 100, 2**31 - 1)
PREDICATES = ("lt", "le", "gt", "ge", "eq")


def _kernel(body: str, loop: str = "0..N.div_ceil(16)") -> str:
    return f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<f32, 4>, 4>, x: &Tensor<f32, N>, n: i32, w: i32) {{
        let row = iota::<i32, 4>().expand::<1>() + z.id(0) as i32;
        let mut a = Tile::<f32, 4, {COLUMNS}>::ones();
        for j in {loop} {{
            {body}
        }}
        z.store(a.sum::<1>().squeeze::<1>());
    }}"""


def _masked(mask: str, kind: str = "i32") -> str:
    return f"""
        let column = iota::<{kind}, {COLUMNS}>().expand::<0>() + (j * 16) as {kind};
        let mask = {mask};
        a = select(mask, a * 0.5 + (j as f32), a - 1.0);"""


CAUSAL = _masked("(row + n).ge(column)")
WINDOW = _masked("(row + n).ge(column) & column.gt(row + w)")
TAIL = _masked("column.lt(N as i32)")


def _results(function: ir.OpView, length: int, scalars: list[tuple[int, int]]) -> list[Any]:
    found = []
    for n, w in scalars:
        z, x = np.zeros(4, np.float32), np.zeros(length, np.float32)
        run_kernel(function, {"z": z, "x": x, "n": np.int32(n), "w": np.int32(w)})
        found.append(z)
    return found


def _split(function: ir.OpView) -> int:
    """How many loops were split."""
    with function.location:
        found = split_loops(function, RATES)
    assert function.operation.verify()
    return len(found)


def _masks_of_loops(function: ir.OpView) -> list[int]:
    """The comparisons that each loop has."""
    loops = [op for op in operations(function) if op.operation.name == "scf.for"]
    return [sum(x.operation.name == "arith.cmpi" for x in operations(loop)) for loop in loops]


@pytest.mark.parametrize(
    ("body", "masks"), [(CAUSAL, [0, 1]), (WINDOW, [2, 0, 2]), (TAIL, [0, 1])],
    ids=["causal", "window", "tail"],
)  # fmt: skip
def test_the_steady_part_has_no_mask(body: str, masks: list[int]) -> None:
    scalars = [(n, w) for n in SCALARS for w in (-(2**31), -40, 0, 33)]
    with compiled_text("k.tile", _kernel(body)) as found:
        [function] = found.kernels.values()
        wanted = [_results(function, length, scalars) for length in (0, 1, 16, 100)]
        assert _split(function) == 1
        assert _masks_of_loops(function) == masks
        made = [_results(function, length, scalars) for length in (0, 1, 16, 100)]
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize(
    ("body", "loop"),
    [
        (CAUSAL, "0..N.div_ceil(16)"),
        (WINDOW, "0..N.div_ceil(16)"),
        (TAIL, "0..N.div_ceil(16)"),
        (CAUSAL, "(2..N.div_ceil(16)).step_by(3)"),
        (WINDOW, "(1..N.div_ceil(16)).step_by(2)"),
    ],
)
def test_masked_iterations_are_those_that_the_mask_cuts(body: str, loop: str) -> None:
    """What the source says, by NumPy."""
    with compiled_text("k.tile", _kernel(body, loop)) as found:
        [function] = found.kernels.values()
        assert _split(function) == 1
        for length in (1, 40, 150):
            for n, w in ((40, 3), (-1, -9), (200, 64)):
                [z] = _results(function, length, [(n, w)])
                np.testing.assert_array_equal(z, _by_numpy(body, loop, length, n, w))


def _by_numpy(body: str, loop: str, length: int, n: int, w: int) -> np.ndarray:
    blocks = -(-length // COLUMNS)
    first, step = (int(loop[1]), int(loop[-2])) if "step_by" in loop else (0, 1)
    row, a = np.arange(4)[:, None], np.ones((4, COLUMNS), np.float32)
    for j in range(first, blocks, step):
        column = np.arange(COLUMNS)[None] + j * COLUMNS
        mask = {CAUSAL: row + n >= column, WINDOW: (row + n >= column) & (column > row + w),
                TAIL: (column < length) | (row < 0)}[body]  # fmt: skip
        a = np.where(mask, a * np.float32(0.5) + np.float32(j), a - np.float32(1))
    return a.sum(1)


KINDS = ("i8", "i16", "i32", "i64", "u8", "u32", "u64", "usize")


@pytest.mark.parametrize("seed", range(60))
def test_masks_of_any_type_that_wrap_anywhere(seed: int) -> None:
    random = Random(seed)
    kind = random.choice(KINDS)
    other = random.choice(
        ("(n) as KIND", "(n * 2 - w) as KIND", "(j * 5) as KIND + (n as KIND)", "(w as KIND) * 3",
         "(w - n) as KIND - (j * 20) as KIND", "7 as KIND", "(N * 3) as KIND")
    ).replace("KIND", kind)  # fmt: skip
    sign = random.choice(("+", "-"))
    column = f"(({other}) {sign} iota::<{kind}, {COLUMNS}>().expand::<0>())"
    body = f"""
        let rows = iota::<{kind}, 4>().expand::<1>() * {random.choice((1, 3, 60))};
        let edge = rows + (j * 16) as {kind};
        let mask = {column}.{random.choice(PREDICATES)}(edge);
        a = select(mask, a * 0.5 + (j as f32), a - 1.0);"""
    loop = random.choice(("0..N.div_ceil(16)", "(1..N.div_ceil(8)).step_by(5)", "0..N"))
    scalars = [(random.choice(SCALARS), random.choice(SCALARS)) for _ in range(12)]
    with compiled_text("k.tile", _kernel(body, loop)) as found:
        [function] = found.kernels.values()
        wanted = [_results(function, length, scalars) for length in (0, 7, 64, 100)]
        _split(function)
        made = [_results(function, length, scalars) for length in (0, 7, 64, 100)]
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize(
    "mask",
    ["row.ge(n)", "x.load::<4>([0]).expand::<1>().gt(0.0)", "(column * column).lt(n)",
     "column.ne(n)", "column.eq(n)", "(column / 3).lt(n)"],
)  # fmt: skip
def test_other_masks_split_nothing(mask: str) -> None:
    """What does not depend on the iteration, is data, or is not linear."""
    mask = f"{mask} & Tile::<bool, 4, {COLUMNS}>::ones()"
    with compiled_text("k.tile", _kernel(_masked(mask))) as found:
        [function] = found.kernels.values()
        before = str(function)
        assert _split(function) == 0
        assert str(function) == before
