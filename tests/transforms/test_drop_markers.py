from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.drop_markers import drop_markers

PART = 'memref<?xf32, strided<[1], offset: ?>, {own = "part", block = [4]}>'
MODULE = f"""
func.func @k(%p: {PART}, %t: tensor<4xf32>, %c: index) {{
  %b = "tile.borrow"(%p) {{mutable = true}} : ({PART}) -> {PART}
  %m = "tile.move"(%b) : ({PART}) -> {PART}
  "tile.store"(%m, %t, %c) {{unit = "tile"}} : ({PART}, tensor<4xf32>, index) -> ()
  return
}}
"""


def test_uses_are_of_the_part_itself() -> None:
    text, _ = rewritten(MODULE, drop_markers)
    assert "tile.move" not in text and "tile.borrow" not in text
    assert '"tile.store"(%arg0, ' in text
