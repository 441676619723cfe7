"""Each row of `bounds` is [inside, nonnegative, divisor of the start, divisor of the extent]."""

from __future__ import annotations

import pytest
from mlir import ir

from tilec.ir.dialect import context
from tilec.ir.walk import operations
from tilec.proofs.mark import mark
from tilec.proofs.proof import Proof
from tilec.transforms.find_access_facts import find_access_facts

SHARED = 'memref<?xf32, strided<[1]>, {own = "shared"}>'
STATIC = 'memref<128xf32, strided<[1]>, {own = "shared"}>'
MUT = 'memref<?xf32, strided<[1]>, {own = "mut"}>'


def part(block: int) -> str:
    return f'memref<?xf32, strided<[1], offset: ?>, {{block = [{block}], own = "part"}}>'


START = f"""
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %zv = memref.reinterpret_cast %z to offset: [0], sizes: [%N], strides: [1]
      : memref<f32, {{own = "mut"}}> to {MUT}
  %xv = memref.reinterpret_cast %x to offset: [0], sizes: [%N], strides: [1]
      : memref<f32, {{own = "shared"}}> to {SHARED}
  %wv = memref.reinterpret_cast %x to offset: [0], sizes: [%M], strides: [1]
      : memref<f32, {{own = "shared"}}> to {SHARED}
  %sv = memref.reinterpret_cast %x to offset: [0], sizes: [128], strides: [1]
      : memref<f32, {{own = "shared"}}> to {STATIC}
  %p = "tile.part"(%zv) {{block = [64]}} : ({MUT}) -> {part(64)}
  %id = "tile.part_id"(%p) {{axis = 0}} : ({part(64)}) -> index
  %off = "tile.part_offset"(%p) {{axis = 0}} : ({part(64)}) -> index
"""


def divides(value: str, divisor: str) -> str:
    """`requires!(value % divisor == 0)`."""
    name = f"{value.strip('%')}_{divisor.strip('%')}"
    return f"""
  %r_{name} = arith.remsi {value}, {divisor} : index
  %e_{name} = arith.cmpi eq, %r_{name}, %c0 : index
  "tile.assume"(%e_{name}) {{text = ""}} : (i1) -> ()
"""


def load(view: str, kind: str, index: str, size: int = 64, unit: str = "tile") -> str:
    return (
        f'%t = "tile.load"({view}, {index}) {{operandSegmentSizes = array<i32: 1, 1, 0>,'
        f' unit = "{unit}"}} : ({kind}, index) -> tensor<{size}xf32>\n'
    )


def bounds(*body: str) -> tuple[bool, bool, int, int, bool]:
    """Of the one access of a kernel with these operations."""
    text = f"""
func.func @k(
  %z: memref<f32, {{own = "mut"}}> {{tile.slot = {{kind = "pointer", name = "z"}}}},
  %x: memref<f32, {{own = "shared"}}> {{tile.slot = {{kind = "pointer", name = "x"}}}},
  %i: index {{tile.slot = {{kind = "stride", name = "i"}}}},
  %u: index {{tile.slot = {{kind = "scalar", name = "u", element = "usize"}}}},
  %j: i32 {{tile.slot = {{kind = "scalar", name = "j", element = "i32"}}}},
  %N: index {{tile.slot = {{kind = "extent", name = "N"}}}},
  %M: index {{tile.slot = {{kind = "extent", name = "M"}}}}
) attributes {{tile.kernel}} {{ {START} {"".join(body)} return }}
"""
    with context():
        module = ir.Module.parse(text)
        [function] = module.body.operations
        mark(Proof(function))
        find_access_facts(function)
        [row] = [op.attributes["bounds"][0] for op in operations(function) if _is_access(op)]
        inside, nonnegative, begins, divisor, extent = (
            ir.IntegerAttr(n).value for n in ir.ArrayAttr(row)
        )
        assert begins or not inside
        return bool(inside), bool(nonnegative), divisor, extent, bool(begins)


def _is_access(op: ir.OpView) -> bool:
    return "bounds" in op.attributes


def test_where_the_first_element_is_inside() -> None:
    at_id, at_offset = load("%xv", SHARED, "%id"), load("%xv", SHARED, "%off", unit="element")
    for access in (at_id, at_offset, load("%p", part(64), "%c0")):
        assert bounds(access)[4]
    # Where anything may be, or the tile that follows.
    after = "%c1 = arith.constant 1 : index\n%next = arith.addi %id, %c1 : index\n"
    assert not bounds(load("%xv", SHARED, "%i"))[4]
    assert not bounds(after, load("%xv", SHARED, "%next"))[4]


# ---- inside --------------------------------------------------------------------------------------


def test_a_part_is_never_clipped_where_its_block_divides_the_extent() -> None:
    at_id, at_offset = load("%xv", SHARED, "%id"), load("%xv", SHARED, "%off", unit="element")
    for access in (at_id, at_offset, load("%p", part(64), "%c0")):
        assert bounds(divides("%N", "%c64"), access)[0]
        assert not bounds(access)[0]
        assert not bounds(divides("%N", "%c8"), access)[0]
        assert not bounds(divides("%N", "%c96"), access)[0]


def test_preconditions_add_up_and_may_stand_after_the_access() -> None:
    access = load("%xv", SHARED, "%id")
    three = "%c3 = arith.constant 192 : index\n"
    assert bounds(access, three, divides("%N", "%c3"))[0]
    assert bounds(access, divides("%N", "%c64"), divides("%N", "%c96"))[3] == 192


@pytest.mark.parametrize(
    "access",
    [
        load("%wv", SHARED, "%id"),  # another extent
        load("%xv", SHARED, "%id", size=128),  # tiles of another size than the part's
        load("%xv", SHARED, "%off"),
        load("%xv", SHARED, "%i"),
        "%n = arith.addi %id, %c8 : index\n" + load("%xv", SHARED, "%n"),
    ],
)
def test_what_says_nothing_of_the_access(access: str) -> None:
    assert not bounds(divides("%N", "%c64"), divides("%M", "%c64"), access)[0]


@pytest.mark.parametrize(
    "access",
    [
        load("%xv", SHARED, "%id", size=32),  # the first half of as many tiles
        load("%xv", SHARED, "%id", unit="element"),  # id + 64 <= 64 (id + 1)
    ],
)
def test_what_is_inside_all_the_more(access: str) -> None:
    assert bounds(divides("%N", "%c64"), access)[0]


def test_the_id_of_a_smaller_part_is_none_of_the_grid() -> None:
    sub = f"""
  %s = "tile.sub"(%p, %i) {{block = [64]}} : ({part(64)}, index) -> {part(64)}
  %sid = "tile.part_id"(%s) {{axis = 0}} : ({part(64)}) -> index
"""
    assert not bounds(divides("%N", "%c64"), sub, load("%xv", SHARED, "%sid"))[0]
    assert not bounds(divides("%N", "%c64"), sub, load("%s", part(64), "%c0"))[0]


def test_static_extents() -> None:
    assert bounds(load("%sv", STATIC, "%c0", size=128))[0]
    assert not bounds(load("%sv", STATIC, "%c0", size=256))[0]
    assert not bounds(load("%sv", STATIC, "%c8", size=128, unit="element"))[0]
    assert not bounds(load("%xv", SHARED, "%c0"))[0]


# ---- signs ---------------------------------------------------------------------------------------


def nonnegative(index: str, *body: str) -> bool:
    return bounds(*body, load("%xv", SHARED, index))[1]


def test_numbers_that_are_not_below_zero() -> None:
    assert nonnegative("%u")  # launchers pass no other
    assert nonnegative("%N") and nonnegative("%id") and nonnegative("%off") and nonnegative("%c8")
    assert nonnegative("%a", "%a = arith.addi %N, %id : index\n")
    assert nonnegative("%a", "%a = arith.divsi %N, %c8 : index\n")
    assert nonnegative("%a", "%a = arith.remsi %N, %c8 : index\n")


def test_numbers_that_may_be() -> None:
    assert not nonnegative("%i")
    assert not nonnegative("%a", "%a = arith.subi %N, %c8 : index\n")
    assert not nonnegative("%a", "%a = arith.index_cast %j : i32 to index\n")
    assert not nonnegative("%a", "%a = arith.remsi %i, %c8 : index\n")
    # 41 bits and 41 bits: the product may reach the sign.
    assert not nonnegative("%a", "%a = arith.muli %N, %M : index\n")
    # i32 wraps below.
    wraps = """
  %big = arith.constant 2147483647 : i32
  %sum = arith.addi %big, %big : i32
  %a = arith.index_cast %sum : i32 to index
"""
    assert not nonnegative("%a", wraps)


@pytest.mark.parametrize(
    ("lower", "upper", "holds"), [("%c0", "%N", True), ("%i", "%N", False), ("%c8", "%i", True)]
)
def test_counters(lower: str, upper: str, holds: bool) -> None:
    access = load("%xv", SHARED, "%n")
    loop = f"scf.for %n = {lower} to {upper} step %c8 {{ {access} }}\n"
    assert bounds(loop)[1] is holds


def test_a_counter_without_a_known_end_may_be_large() -> None:
    loop = f"""scf.for %n = %c0 to %i step %c8 {{
    %twice = arith.addi %n, %n : index
    {load("%xv", SHARED, "%twice")} }}
"""
    assert not bounds(loop)[1]


# ---- divisors ------------------------------------------------------------------------------------


def divisor(index: str, *body: str, unit: str = "element") -> int:
    return bounds(*body, load("%xv", SHARED, index, unit=unit))[2]


def test_divisors_follow_through_arithmetic() -> None:
    assert divisor("%i") == 1 and divisor("%off") == 64 and divisor("%c0") == 0
    assert divisor("%i", unit="tile") == 64
    assert divisor("%a", "%a = arith.muli %i, %c8 : index\n") == 8
    assert divisor("%b", "%a = arith.muli %i, %c8 : index\n%b = arith.subi %off, %a : index\n") == 8
    assert divisor("%b", "%a = arith.muli %i, %c8 : index\n%b = arith.addi %a, %i : index\n") == 1


def test_what_may_wrap_keeps_powers_of_two() -> None:
    # i * 96 wraps at 2^64, which 3 does not divide.
    assert divisor("%a", "%a = arith.muli %i, %c96 : index\n") == 32


def test_widths() -> None:
    wide = """
  %c16 = arith.constant 16 : i32
  %m = arith.muli %j, %c16 : i32
  %a = arith.index_cast %m : i32 to index
"""
    assert divisor("%a", wide) == 16


def test_counters_have_the_divisor_of_start_and_step() -> None:
    for lower, step, expected in (("%c8", "%c64", 8), ("%c0", "%c96", 32), ("%off", "%c64", 64)):
        access = load("%xv", SHARED, "%n", unit="element")
        assert bounds(f"scf.for %n = {lower} to %N step {step} {{ {access} }}\n")[2] == expected


def test_an_access_to_a_part_counts_from_the_tensor() -> None:
    assert bounds(load("%p", part(64), "%c8", unit="element"))[2] == 8
    assert bounds(load("%p", part(64), "%c0"))[2] == 64
    sub = f'%s = "tile.sub"(%p, %i) {{block = [16]}} : ({part(64)}, index) -> {part(16)}\n'
    assert bounds(sub, load("%s", part(16), "%c0", size=16))[2] == 16


def test_the_extent_of_a_part() -> None:
    assert bounds(load("%p", part(64), "%c0"))[3] == 1
    assert bounds(divides("%N", "%c8"), load("%p", part(64), "%c0"))[3] == 8
    sub = f'%s = "tile.sub"(%p, %i) {{block = [4]}} : ({part(64)}, index) -> {part(4)}\n'
    assert bounds(divides("%N", "%c8"), sub, load("%s", part(4), "%c0", size=4))[3] == 4


def test_conditions_joined_in_every_form_are_both_taken() -> None:
    both = """
  %r8 = arith.remsi %N, %c8 : index
  %e8 = arith.cmpi eq, %r8, %c0 : index
  %r96 = arith.remsi %N, %c96 : index
  %e96 = arith.cmpi eq, %r96, %c0 : index
  %no = arith.constant false
"""
    joined = {
        "%j1 = arith.andi %e8, %e96 : i1\n": 96,
        "%j1 = arith.select %e8, %e96, %no : i1\n": 96,
        "%j1 = arith.ori %e8, %e96 : i1\n": 1,
        "%j1 = arith.xori %e8, %e96 : i1\n": 1,
        "%j1 = arith.cmpi ne, %r96, %c0 : index\n": 1,
        "%j1 = arith.cmpi eq, %r96, %c8 : index\n": 1,
    }
    access = load("%xv", SHARED, "%id")
    for condition, expected in joined.items():
        claim = '"tile.assume"(%j1) {text = ""} : (i1) -> ()\n'
        assert bounds(both, condition, claim, access)[3] == expected, condition
