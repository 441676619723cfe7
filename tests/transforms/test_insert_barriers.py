from __future__ import annotations

import pytest
from mlir import ir

from tilec.ir.dialect import context
from tilec.ops.rules import Placing
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.insert_barriers import insert_barriers
from tilec.transforms.place_layouts import place_layouts

MUT = 'memref<?xf32, strided<[1]>, {own = "mut"}>'
ATOMIC = 'memref<?xf32, strided<[1]>, {own = "atomic"}>'
SHARED = 'memref<?xf32, strided<[1]>, {own = "shared"}>'


def load(
    result: str, index: str = "%c0", size: int = 128, view: str = "%z", unit: str = "tile"
) -> str:
    kind = SHARED if view == "%x" else MUT
    return (
        f'{result} = "tile.load"({view}, {index}) {{operandSegmentSizes = array<i32: 1, 1, 0>,'
        f' unit = "{unit}"}} : ({kind}, index) -> tensor<{size}xf32>\n'
    )


def store(
    tile: str, index: str = "%c0", size: int = 128, view: str = "%z", unit: str = "tile"
) -> str:
    operands = f'"tile.store"({view}, {tile}, {index})'
    return f'{operands} {{unit = "{unit}"}} : ({MUT}, tensor<{size}xf32>, index) -> ()\n'


def gather(result: str, view: str = "%z") -> str:
    kind = SHARED if view == "%x" else MUT
    return (
        f'{result} = "tile.gather"({view}, %each) {{operandSegmentSizes = array<i32: 1, 0, 1>,'
        f" tiled = [0]}} : ({kind}, tensor<128xindex>) -> tensor<128xf32>\n"
    )


def scatter(tile: str, view: str = "%z") -> str:
    return (
        f'"tile.scatter"({view}, {tile}, %each) {{operandSegmentSizes = array<i32: 1, 1, 0, 1>,'
        f" tiled = [0]}} : ({MUT}, tensor<128xf32>, tensor<128xindex>) -> ()\n"
    )


def add(tile: str, view: str = "%a0", ordering: str = "relaxed") -> str:
    return (
        f'"tile.atomic"({view}, %each, {tile}) {{operandSegmentSizes = array<i32: 1, 0, 1, 1>,'
        f' tiled = [0], update = "add", ordering = "{ordering}"}}'
        f" : ({ATOMIC}, tensor<128xindex>, tensor<128xf32>) -> tensor<128xf32>\n"
    )


def base(own: str) -> str:
    return f'memref<f32, {{own = "{own}"}}>'


def viewed(pointer: str, own: str) -> str:
    cast = f"memref.reinterpret_cast {pointer} to offset: [0], sizes: [%n], strides: [1]"
    return f"{cast} : {base(own)}"


def lines(*body: str, warps: int = 4) -> list[str]:
    """The accesses (L, S), barriers (B) and braces of the function after the pass."""
    text = f"""
func.func @k(%z0: {base("mut")}, %y0: {base("mut")}, %x0: {base("shared")}, %i: index, %n: index,
    %more: i1, %a0: {ATOMIC}, %a1: {ATOMIC}) {{
  %z = {viewed("%z0", "mut")} to {MUT}
  %y = {viewed("%y0", "mut")} to {MUT}
  %x = {viewed("%x0", "shared")} to {SHARED}
  %c0 = arith.constant 0 : index
  %each = arith.constant dense<7> : tensor<128xindex>
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %few = arith.constant dense<1.0> : tensor<64xf32>
  {"".join(body)}
  return
}}
"""
    with context():
        module = ir.Module.parse(text)
        [function] = module.body.operations
        find_access_facts(function)
        place_layouts(function, Placing(warps, 1))
        insert_barriers(function)
        assert function.operation.verify()
        return [_mark(line) for line in str(function).splitlines()[1:-1]]


def _mark(line: str) -> str:
    if line.strip() == "}":
        return "}"
    marks = {
        "tile.load": "L", "tile.store": "S", "tile.gather": "G", "tile.scatter": "C",
        "tile.atomic": "A", "tile.barrier": "B", "} else": "|", "} do": "|",
    }  # fmt: skip
    loops = {"scf.for": "{", "scf.while": "{", "scf.if": "{"}
    return next((mark for name, mark in {**marks, **loops}.items() if name in line), "")


def order(*body: str, warps: int = 4) -> str:
    return "".join(lines(*body, warps=warps))


def test_the_same_tiles_need_none() -> None:
    # One shape, one layout: wherever they are, an element is always of one thread.
    assert order(load("%a"), store("%a"), load("%b"), store("%b", "%i")) == "LSLS"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Another shape, read after written and written after read.
        ((store("%few", size=64), load("%a"), store("%a", view="%y")), "SBLS"),
        ((load("%a"), store("%few", size=64), store("%a", view="%y")), "LBSS"),
        ((store("%few", size=64), store("%one")), "SBS"),
        # Tiles that begin anywhere.
        ((store("%one"), load("%a", "%i", unit="element"), store("%a", view="%y")), "SBLS"),
    ],
)
def test_tiles_that_meet_other_threads(body: tuple[str, ...], expected: str) -> None:
    assert order(*body) == expected


def test_reads_and_other_tensors_need_none() -> None:
    assert order(load("%a"), load("%b", size=64), store("%a", view="%y"),
                 store("%b", view="%y", size=64)) == "LLSBS"  # fmt: skip
    assert order(store("%few", size=64), load("%a", view="%x"), store("%a", view="%y")) == "SLS"


def test_a_tile_that_several_threads_hold_is_read_by_all_of_them() -> None:
    # 128 elements, 128 threads: each its own. With twice the threads, two hold each element.
    assert order(load("%a"), store("%a")) == "LS"
    assert order(load("%a"), store("%a"), warps=8) == "LBS"
    assert order(store("%one"), store("%one"), warps=8) == "SS"


def test_where_indices_are_values_any_thread_may_touch_anything() -> None:
    assert order(gather("%a"), gather("%b"), store("%a"), store("%b", "%i")) == "GGBSS"
    assert order(scatter("%one"), scatter("%one"), load("%a"), store("%a")) == "CBCBLS"
    assert order(scatter("%one"), scatter("%one", "%y"), gather("%a", "%x"), add("%a")) == "CCGA"
    # One update is done before the next, as everything else of the program is.
    assert order(add("%one"), add("%one"), add("%one", "%a1")) == "ABAA"


def test_what_acquires_and_releases_is_ordered_with_every_tensor() -> None:
    ordered = add("%one", ordering="acq_rel")
    assert order(store("%one"), ordered, load("%a"), load("%b", view="%y"),
                 store("%a"), store("%b", view="%y")) == "SBABLLSS"  # fmt: skip
    assert order(store("%one"), ordered, ordered, add("%one", "%a1"), store("%one")) == "SBABABAS"
    # Shared tensors are written by nobody.
    assert order(load("%a", view="%x"), ordered, load("%b", view="%x"),
                 store("%a"), store("%b")) == "LALBSS"  # fmt: skip
    loop = "scf.for %k = %c0 to %n step %n {\n"
    assert order(loop, ordered, store("%one"), "}\n") == "{BABS}"
    branch = "scf.if %more {\n"
    assert order(branch, ordered, "}\n", store("%one")) == "{A}BS"


def test_a_barrier_serves_all_that_was_before() -> None:
    body = (store("%few", size=64), store("%few", size=64, view="%y"), load("%a"),
            store("%a", view="%y"))  # fmt: skip
    assert order(*body) == "SSBLS"


def test_branches() -> None:
    in_one = (
        "scf.if %more {\n",
        store("%few", size=64),
        "} else {\n",
        store("%one", view="%y"),
        "}\n",
    )
    assert order(*in_one, load("%a"), store("%a", view="%y")) == "{S|S}BLS"
    before = (store("%few", size=64), "scf.if %more {\n", load("%a"), store("%a", view="%y"), "}\n")
    assert order(*before, store("%one", view="%y")) == "S{BLS}S"
    # The branch may not have been taken.
    assert order(*before, store("%one")) == "S{BLS}BS"


def test_loops_meet_what_the_turn_before_left() -> None:
    loop = "scf.for %k = %c0 to %n step %n {\n"
    body = (load("%a", "%k"), store("%a", "%k"), store("%few", "%k", size=64))
    assert order(loop, *body, "}\n") == "{BLSBS}"
    assert order(loop, load("%a", "%k"), store("%a", "%k"), "}\n") == "{LS}"
    # After a loop that may not have run.
    assert order(store("%few", size=64), loop, store("%one", view="%y"), "}\n", load("%a"),
                 store("%a", view="%y")) == "S{S}BLS"  # fmt: skip


def test_both_halves_of_a_while_loop() -> None:
    loop = ("scf.while : () -> () {\n", load("%a", size=64), store("%a", size=64, view="%y"),
            "scf.condition(%more)\n} do {\n", store("%one"), "scf.yield\n}\n")  # fmt: skip
    assert order(*loop).replace("}", "") == "{BLS|BS"
