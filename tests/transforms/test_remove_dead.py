from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.remove_dead import remove_dead

VIEW = 'memref<?xf32, strided<[1]>, {own = "mut"}>'
ATOMIC = 'memref<?xf32, strided<[1]>, {own = "atomic"}>'
MODULE = f"""
func.func @k(%v: {VIEW}, %c: index, %ok: i1, %n: index, %a: {ATOMIC}, %one: f32) {{
  %chosen = arith.constant dense<1> : tensor<4xindex>
  %p = "tile.program_id"() {{axis = 0}} : () -> index
  %t = "tile.load"(%v, %p) {{operandSegmentSizes = array<i32: 1, 1, 0>, unit = "tile"}}
      : ({VIEW}, index) -> tensor<4xf32>
  %f = "tile.flip"(%t) {{axis = 0}} : (tensor<4xf32>) -> tensor<4xf32>
  scf.for %i = %c to %n step %n {{
    %j = "tile.iota"() : () -> tensor<4xi32>
    %u = "tile.load"(%v, %i) {{operandSegmentSizes = array<i32: 1, 1, 0>, unit = "tile"}}
      : ({VIEW}, index) -> tensor<4xf32>
    %before = "tile.atomic"(%a, %c, %one) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>,
      tiled = [], update = "add", ordering = "relaxed"}} : ({ATOMIC}, index, f32) -> f32
    %g = "tile.gather"(%v, %chosen) {{operandSegmentSizes = array<i32: 1, 0, 1>, tiled = [0]}}
      : ({VIEW}, tensor<4xindex>) -> tensor<4xf32>
    "tile.scatter"(%v, %u, %chosen) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>, tiled = [0]}}
      : ({VIEW}, tensor<4xf32>, tensor<4xindex>) -> ()
    "tile.store"(%v, %u, %i) {{unit = "tile"}} : ({VIEW}, tensor<4xf32>, index) -> ()
  }}
  "tile.assume"(%ok) {{text = "x"}} : (i1) -> ()
  "tile.assert"(%ok) {{text = "x"}} : (i1) -> ()
  "tile.grid"(%n) : (index) -> ()
  return
}}
"""


def test_chains_without_users_go_and_effects_stay() -> None:
    text, changed = rewritten(MODULE, remove_dead)
    assert changed
    for gone in ("program_id", "flip", "iota", "gather"):
        assert gone not in text
    for kept in (
        "tile.load", "tile.store", "tile.atomic", "tile.scatter", "tile.assume", "tile.assert",
        "tile.grid",
    ):  # fmt: skip
        assert text.count(f'"{kept}"') == 1
    assert not rewritten(text, remove_dead)[1]
