"""Products whose second factor threads write to shared memory, thread by thread.

Factors are small whole numbers, so that sums are exact; NumPy gives them.
"""

from __future__ import annotations

import numpy as np
import pytest
from overlapped import LATE, TIMINGS, Timing, run, small, wide
from simt_memory import SimtError
from test_computed_factors import nothing, turns

from tilec.layout import LANES
from tilec.layout.banks import bank_conflicts, least_wavefronts
from tilec.layout.swizzled import SwizzledTile
from tilec.ops.slot_read import by_tensor, reads_of
from tilec.ops.staged_factor import RULES, layout_for

SPLIT = Timing(seed=3, split=True)
BOTH = (LATE, SPLIT)
# How a factor lies in its tensor: the tile of a step, of so many rows or columns.
LEFT = {"M, K": "x.load::<{m}, 32>([z.id(0), k])", "K, M": "x.load::<32, {m}>([k, z.id(0)]).t()"}
RIGHT = {"K, N": "y.load::<32, {n}>([k, z.id(1)])", "N, K": "y.load::<{n}, 32>([z.id(1), k]).t()"}


def product(
    forms: tuple[str, str],
    extents: tuple[int, int, int],
    element: str = "bf16",
    factor: str = "{}.max(0.0)",
    tile: tuple[int, int] = (64, 16),
    hints: str = "",
) -> tuple[str, dict[str, np.ndarray], np.ndarray]:
    """A program, its arguments, and what it gives if factors are as they are in their tensors."""
    (m, n), (rows, columns, k) = tile, extents
    left, right = LEFT[forms[0]].format(m=m), RIGHT[forms[1]].format(n=n)
    tensors = f"x: &Tensor<{element}, {forms[0]}>, y: &Tensor<{element}, {forms[1]}>,"
    program = turns(factor.format(left), factor.format(right), tensors, tile, hints)
    x, y = small(rows, k, element=element), small(k, columns, element=element)
    stored = {
        "x": x if forms[0] == "M, K" else np.ascontiguousarray(x.T),
        "y": y if forms[1] == "K, N" else np.ascontiguousarray(y.T),
    }
    values = [np.maximum(wide(a), 0) if "max" in factor else wide(a) for a in (x, y)]
    return program, {"z": nothing(rows, columns), **stored}, values[0] @ values[1]


FORMS = [(left, right) for left in LEFT for right in RIGHT]


@pytest.mark.parametrize("forms", FORMS, ids=" ".join)
@pytest.mark.parametrize("extents", [(64, 16, 32), (72, 24, 200)])
def test_both_are_computed(forms: tuple[str, str], extents: tuple[int, int, int]) -> None:
    program, given, wanted = product(forms, extents)
    run(program, given, {"z": wanted}, *TIMINGS)


@pytest.mark.parametrize("forms", FORMS, ids=" ".join)
@pytest.mark.parametrize("tile", [(64, 16), (64, 64)])
def test_tf32_lies_any_way(forms: tuple[str, str], tile: tuple[int, int]) -> None:
    program, given, wanted = product(forms, (72, 24, 104), "f32", "{}.to::<tf32>()", tile)
    run(program, given, {"z": wanted}, *BOTH)


@pytest.mark.parametrize("k", [0, 32, 104])
@pytest.mark.parametrize("cluster", ["", "cluster = 2, "])
def test_two_warpgroups_write_together(k: int, cluster: str) -> None:
    program, given, wanted = product(
        ("K, M", "K, N"),
        (260, 40, k),
        "f32",
        "{}.to::<tf32>()",
        (128, 32),
        f"#[hint({cluster}stages = 2)]",
    )
    run(program, given, {"z": wanted}, *TIMINGS)


@pytest.mark.parametrize("forms", FORMS, ids=" ".join)
def test_i8_lies_any_way(forms: tuple[str, str]) -> None:
    program, given, wanted = product(forms, (72, 32, 80), "i8", "{}", (64, 32))
    run(program.replace("f32", "i32"), given | {"z": small(72, 32, element="i32")}, {"z": wanted})


def test_numbers_are_rounded_on_the_way_as_by_threads() -> None:
    """Ties go to even, of copies and of threads, as products of the identity show."""
    program, given, _ = product(("M, K", "N, K"), (64, 16, 32), "f32", "{}.to::<tf32>()")
    exact = 1 + np.arange(16 * 32).reshape(16, 32) * 2.0**-12
    y = exact.astype(np.float32)
    rounded = np.rint(exact * 1024) / 1024
    given |= {"x": np.eye(64, 32, dtype=np.float32), "y": y}
    run(program, given, {"z": (np.eye(64, 32) @ rounded.T).astype(np.float32)})
    program, given, _ = product(("M, K", "K, N"), (64, 16, 32), "f32", "{}.to::<tf32>()")
    given |= {"x": np.eye(64, 32, dtype=np.float32), "y": np.ascontiguousarray(y.T)}
    run(program, given, {"z": (np.eye(64, 32) @ rounded.T).astype(np.float32)})


def test_one_second_factor_of_all_turns() -> None:
    program = turns(
        "x.load::<64, 32>([z.id(0), k]).max(0.0)",
        "right",
        "x: &Tensor<bf16, M, K>, y: &Tensor<bf16, 32, N>,",
    ).replace("for k in", "let right = y.load::<32, 16>([0, z.id(1)]).max(0.0);\n for k in")
    x, y = small(64, 96), small(32, 16)
    turned = np.maximum(wide(x), 0).reshape(64, 3, 32).sum(axis=1)
    run(
        program,
        {"z": nothing(64, 16), "x": x, "y": y},
        {"z": turned @ np.maximum(wide(y), 0)},
        *TIMINGS,
    )


# ---- what orders it ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["warp.show", "warp.join_warps"])
@pytest.mark.parametrize("timing", [LATE, SPLIT], ids=["in lock-step", "apart"])
def test_each_step_is_needed(name: str, timing: Timing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fence, or without the barrier, products read what may not be there."""
    [rule] = [rule for rule in RULES if rule.name == name]
    monkeypatch.setattr(type(rule), "lower", lambda *_: [])
    program, given, wanted = product(
        ("M, K", "K, N"), (128, 16, 96), tile=(128, 16), hints="#[hint(stages = 2)]"
    )
    what = "without a fence" if name == "warp.show" else "without a barrier|nobody said so"
    with pytest.raises(SimtError, match=what):
        run(program, given, {"z": wanted}, timing)


# ---- layouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("shape", [(64, 256), (32, 128), (64, 192), (128, 64), (16, 16), (32, 8)])
@pytest.mark.parametrize("warps", [4, 8])
def test_writes_have_no_bank_conflicts(
    element_bytes: int, shape: tuple[int, int], warps: int
) -> None:
    """Of (k, n) to memory along k: 16 bytes a thread, as few wavefronts as there can be."""
    tile = SwizzledTile.of(shape[::-1], element_bytes)
    if tile is None:
        return
    width, axes = 16 // element_bytes, (1, 0)
    layout = layout_for(shape, axes, width, warps)
    accesses = reads_of(layout, tile, axes)
    assert accesses.width == width
    for elements in accesses.registers:
        first = elements[0][0]
        for warp in range(warps):
            places = [
                tile.offset_of(by_tensor(layout.coordinates(first, lane, warp), axes))
                for lane in range(LANES)
            ]
            assert bank_conflicts(places, 16) == least_wavefronts(places, 16)
