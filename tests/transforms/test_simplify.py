from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.simplify import simplify

SHARED = 'memref<?xf32, strided<[1]>, {own = "shared"}>'
MODULE = f"""
func.func @k(%s: {SHARED}, %c: index, %n: index) {{
  scf.for %i = %c to %n step %n {{
    %p = "tile.program_id"() {{axis = 0}} : () -> index
    %q = arith.muli %p, %p : index
    %t = "tile.load"(%s, %q) {{operandSegmentSizes = array<i32: 1, 1, 0>, unit = "tile"}}
      : ({SHARED}, index) -> tensor<4xf32>
    %u = arith.addf %t, %t : tensor<4xf32>
    %f = "tile.flip"(%u) {{axis = 0}} : (tensor<4xf32>) -> tensor<4xf32>
    %v = arith.mulf %f, %u : tensor<4xf32>
    %i2 = "tile.program_id"() {{axis = 0}} : () -> index
    %q2 = arith.muli %i2, %i2 : index
    func.call @use(%q2) : (index) -> ()
  }}
  return
}}
func.func private @use(index)
"""


def test_chains_across_dialects_are_removed_merged_and_hoisted() -> None:
    text, _ = rewritten(MODULE, simplify)
    for gone in ("tile.load", "arith.addf", "tile.flip", "arith.mulf"):
        assert gone not in text
    before, _, inside = text.partition("scf.for")
    assert before.count("program_id") == before.count("muli") == 1
    assert "program_id" not in inside and "muli" not in inside
