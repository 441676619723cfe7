from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.inline_helpers import inline_helpers

MODULE = """
func.func private @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %y, %z = func.call @once(%x) : (tensor<4xf32>) -> (tensor<4xf32>, index)
  %s = arith.addf %y, %y : tensor<4xf32>
  return %s, %z : tensor<4xf32>, index
}
func.func private @once(%x: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %c = arith.constant 3 : index
  return %x, %c : tensor<4xf32>, index
}
func.func @k(%x: tensor<4xf32>, %more: i1) -> (tensor<4xf32>, index) attributes {tile.kernel} {
  %r:2 = scf.if %more -> (tensor<4xf32>, index) {
    %a:2 = func.call @twice(%x) : (tensor<4xf32>) -> (tensor<4xf32>, index)
    %b:2 = func.call @twice(%a#0) : (tensor<4xf32>) -> (tensor<4xf32>, index)
    scf.yield %b#0, %a#1 : tensor<4xf32>, index
  } else {
    %a:2 = func.call @once(%x) : (tensor<4xf32>) -> (tensor<4xf32>, index)
    scf.yield %a#0, %a#1 : tensor<4xf32>, index
  }
  return %r#0, %r#1 : tensor<4xf32>, index
}
"""


def test_helpers_are_inlined_through_each_other_and_into_branches() -> None:
    text, _ = rewritten(MODULE, inline_helpers)
    assert "call" not in text and "private" not in text
    assert text.count("arith.addf") == 2
    # The second sum takes the first one's result, the other branch the argument itself.
    first, second = (line.split(" = ") for line in text.splitlines() if "addf" in line)
    assert second[1].startswith(f"arith.addf {first[0].strip()}, ")


def test_constants_of_helpers_are_there_once_before_all_uses() -> None:
    text, _ = rewritten(MODULE, inline_helpers)
    assert text.count("arith.constant") == 1
    assert text.index("arith.constant 3") < text.index("scf.if")


def test_constants_that_differ_stay_apart() -> None:
    helpers = "".join(
        f"func.func private @{name}() -> {type} {{\n"
        f"  %c = arith.constant {value} : {type}\n  return %c : {type}\n}}\n"
        for name, value, type in (("a", "1", "i32"), ("b", "1", "i64"), ("c", "2", "i32"))
    )
    calls = """func.func @k() -> (i32, i64, i32, i32) attributes {tile.kernel} {
      %a = func.call @a() : () -> i32
      %b = func.call @b() : () -> i64
      %c = func.call @c() : () -> i32
      %d = func.call @a() : () -> i32
      return %a, %b, %c, %d : i32, i64, i32, i32
    }"""
    text, _ = rewritten(helpers + calls, inline_helpers)
    lines = [line.split(" = ") for line in text.splitlines() if " = arith.constant" in line]
    names = {value.strip(): name.strip() for name, value in lines}
    one, long, two = (names[f"arith.constant {v}"] for v in ("1 : i32", "1 : i64", "2 : i32"))
    assert len(lines) == 3
    assert f"return {one}, {long}, {two}, {one} :" in text
