from __future__ import annotations

from mlir import ir

from tilec.ir.dialect import context
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.layout import Layout, blocked
from tilec.ops.encoding import layout_of
from tilec.ops.rules import Placing
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.place_layouts import place_layouts

SHARED = 'memref<?x?xf32, strided<[?, 1]>, {own = "shared"}>'
TURNED = 'memref<?x?xf32, strided<[1, ?]>, {own = "shared"}>'
MUT = 'memref<?x?xf32, strided<[?, 1]>, {own = "mut"}>'
TURNED_MUT = 'memref<?x?xf32, strided<[1, ?]>, {own = "mut"}>'
BASE = 'memref<f32, {own = "shared"}>'
CAST = "memref.reinterpret_cast"
WINDOW = "offset: [0], sizes: [%n, %n], strides: [%n, 1]"
TILE = "tensor<32x32xf32>"


def load(result: str, view: str, kind: str, index: str = "%c0") -> str:
    return (
        f'{result} = "tile.load"({view}, {index}, {index})'
        f' {{operandSegmentSizes = array<i32: 1, 2, 0>, unit = "tile"}}'
        f" : ({kind}, index, index) -> {TILE}\n"
    )


def store(tile: str, view: str = "%z", index: str = "%c0") -> str:
    operands = f'"tile.store"({view}, {tile}, {index}, {index})'
    kind = MUT if view == "%z" else TURNED_MUT
    return f'{operands} {{unit = "tile"}} : ({kind}, {TILE}, index, index) -> ()\n'


class Placed:
    """A function after the pass."""

    def __init__(self, function: ir.OpView) -> None:
        assert function.operation.verify()
        self.text = str(function)
        self.ops = [
            (op.operation.name, [layout_of(r.type) for r in op.results if is_tile(r)])
            for op in operations(function)
        ]

    def count(self, name: str) -> int:
        return sum(found == name for found, _ in self.ops)

    def layouts(self, name: str) -> list[Layout]:
        return [layout for found, layouts in self.ops if found == name for layout in layouts]


def placed(*body: str, vector_bytes: int = 16) -> Placed:
    text = f"""
func.func @k(%x0: {BASE}, %z0: memref<f32, {{own = "mut"}}>, %n: index, %more: i1) {{
  %x = {CAST} %x0 to {WINDOW} : {BASE} to {SHARED}
  %t = memref.transpose %x (a, b) -> (b, a) : {SHARED} to {TURNED}
  %z = {CAST} %z0 to {WINDOW} : memref<f32, {{own = "mut"}}> to {MUT}
  %y = memref.transpose %z (a, b) -> (b, a) : {MUT} to {TURNED_MUT}
  %c0 = arith.constant 0 : index
  {"".join(body)}
  return
}}
"""
    with context():
        module = ir.Module.parse(text)
        [function] = module.body.operations
        find_access_facts(function)
        place_layouts(function, Placing(4, vector_bytes))
        # Every tile has a layout, and every operation verifies with it.
        return Placed(function)


ROWS = blocked((32, 32), 4, (1, 0), 4)  # 16 bytes of f32 a thread
COLUMNS = blocked((32, 32), 4, (0, 1), 4)


def test_accesses_are_as_wide_as_their_memory() -> None:
    found = placed(load("%a", "%x", SHARED), store("%a"))
    assert found.layouts("tile.load") == [ROWS] and not found.count("tile.layout")
    narrow = placed(load("%a", "%x", SHARED), store("%a"), vector_bytes=1)
    assert narrow.layouts("tile.load") == [blocked((32, 32), 4, (1, 0), 1)]


def test_a_view_the_other_way_is_read_along_its_rows_and_converted_once() -> None:
    found = placed(load("%a", "%t", TURNED), store("%a"))
    assert found.layouts("tile.load") == [COLUMNS] and found.layouts("tile.layout") == [ROWS]


def test_constants_are_made_wherever_they_are_wanted() -> None:
    found = placed(
        load("%a", "%x", SHARED), load("%b", "%t", TURNED),
        f"%one = arith.constant dense<1.0> : {TILE}\n",
        f"%u = arith.addf %a, %one : {TILE}\n%v = arith.addf %b, %one : {TILE}\n",
        store("%u"), store("%v", "%y"),
    )  # fmt: skip
    assert found.layouts("arith.constant") == [ROWS, COLUMNS]
    assert not found.count("tile.layout")


def test_a_value_that_is_used_in_two_layouts_is_converted_once_for_each() -> None:
    found = placed(
        load("%a", "%x", SHARED), load("%b", "%t", TURNED),
        f"%u = arith.subf %b, %a : {TILE}\n%v = arith.mulf %b, %a : {TILE}\n",
        store("%u"), store("%v"),
    )  # fmt: skip
    assert found.count("tile.load") == 2
    assert found.layouts("tile.layout") == [ROWS]


def test_what_a_loop_does_not_change_is_converted_before_it() -> None:
    found = placed(
        load("%a", "%x", SHARED), load("%b", "%t", TURNED),
        f"%r = scf.for %i = %c0 to %n step %n iter_args(%s = %a) -> ({TILE}) {{\n",
        f"%u = arith.addf %s, %b : {TILE}\nscf.yield %u : {TILE}\n}}\n",
        store("%r"),
    )  # fmt: skip
    before, _, inside = found.text.partition("scf.for")
    assert "tile.layout" in before and "tile.layout" not in inside


def test_a_loop_variable_has_one_layout_that_its_body_makes() -> None:
    # It starts as a constant; the body adds what was read by columns.
    found = placed(
        f"%start = arith.constant dense<0.0> : {TILE}\n",
        f"%r = scf.for %i = %c0 to %n step %n iter_args(%s = %start) -> ({TILE}) {{\n",
        load("%b", "%t", TURNED, "%i"),
        f"%u = arith.addf %b, %s : {TILE}\nscf.yield %u : {TILE}\n}}\n",
        store("%r"),
    )  # fmt: skip
    assert found.layouts("scf.for") == [COLUMNS]
    inside = found.text.partition("scf.for")[2].partition("}\n")[0]
    assert "tile.layout" not in inside


def test_both_branches_give_one_layout() -> None:
    found = placed(
        f"%r = scf.if %more -> ({TILE}) {{\n", load("%a", "%x", SHARED),
        f"scf.yield %a : {TILE}\n}} else {{\n", load("%a", "%t", TURNED),
        f"scf.yield %a : {TILE}\n}}\n", store("%r"),
    )  # fmt: skip
    assert len(set(found.layouts("scf.if"))) == 1


def test_a_while_loop_that_swaps_what_it_carries() -> None:
    found = placed(
        load("%a", "%x", SHARED), load("%b2", "%t", TURNED),
        f"%r:2 = scf.while (%p = %a, %q = %b2) : ({TILE}, {TILE}) -> ({TILE}, {TILE}) {{\n",
        f"scf.condition(%more) %q, %p : {TILE}, {TILE}\n}} do {{\n",
        f"^bb0(%p: {TILE}, %q: {TILE}):\nscf.yield %p, %q : {TILE}, {TILE}\n}}\n",
        store("%r#0"), store("%r#1"),
    )  # fmt: skip
    assert found.count("scf.while") == 1


def test_both_results_of_an_operation_come_in_the_layout_asked_for() -> None:
    tile = "tensor<32x32xi32>"
    found = placed(
        f"%o = arith.constant dense<7> : {tile}\n%l, %h = arith.mulsi_extended %o, %o : {tile}\n",
        f"%s = arith.addi %l, %h : {tile}\n%f = arith.sitofp %s : {tile} to {TILE}\n", store("%f"),
    )  # fmt: skip
    assert found.layouts("arith.mulsi_extended") == [ROWS, ROWS]


def test_what_is_written_in_the_launch_is_read_once() -> None:
    found = placed(
        load("%a", "%z", MUT), load("%b", "%t", TURNED),
        f"%u = arith.subf %b, %a : {TILE}\n%v = arith.subf %a, %b : {TILE}\n",
        store("%u"), store("%v"),
    )  # fmt: skip
    assert found.count("tile.load") == 2


def test_what_nobody_uses_is_gone() -> None:
    found = placed(load("%a", "%x", SHARED), load("%b", "%x", SHARED), store("%a"))
    assert found.count("tile.load") == 1
