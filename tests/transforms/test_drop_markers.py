from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.drop_markers import drop_markers

PART = 'memref<?xf32, strided<[1], offset: ?>, {own = "part", block = [4]}>'
MODULE = f"""
func.func @k(%p: {PART}, %t: tensor<4xf32>, %c: index, %e: index) {{
  %b = "tile.borrow"(%p) {{mutable = true}} : ({PART}) -> {PART}
  %m = "tile.move"(%b) : ({PART}) -> {PART}
  %i = "tile.in_range"(%c, %e, %e) {{inclusive = false}} : (index, index, index) -> index
  "tile.store"(%m, %t, %i) {{unit = "tile"}} : ({PART}, tensor<4xf32>, index) -> ()
  return
}}
"""


def test_uses_are_of_the_part_and_the_counter_itself() -> None:
    text, _ = rewritten(MODULE, drop_markers)
    assert not any(name in text for name in ("tile.move", "tile.borrow", "tile.in_range"))
    assert '"tile.store"(%arg0, %arg1, %arg2)' in text
