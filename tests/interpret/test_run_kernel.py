"""Whole kernels in the tile dialect, executed on the CPU, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlir import ir

from tilec.interpret.contract import BrokenContract, Parameter, bind
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context


def launch(
    text: str, kernel: str, order: Any = None, observer: Any = None, **arguments: Any
) -> None:
    with context():
        module = ir.Module.parse(text)
        [function] = [
            op
            for op in module.body.operations
            if ir.StringAttr(op.attributes["sym_name"]).value == kernel
        ]
        run_kernel(function, arguments, order, observer)


def pointer(name: str, own: str = "shared", element: str = "f32") -> str:
    slot = f'{{tile.slot = {{kind = "pointer", name = "{name}", element = "{element}"}}}}'
    return f'%{name}: memref<{element}, {{own = "{own}"}}> {slot}'


def stride(name: str, axis: int = 0) -> str:
    slot = f'{{tile.slot = {{kind = "stride", name = "{name}", axis = {axis}}}}}'
    return f"%{name}_s{axis}: index {slot}"


def number(name: str, kind: str) -> str:
    return f'%{name}: {kind} {{tile.slot = {{kind = "scalar", name = "{name}"}}}}'


def extent(name: str) -> str:
    return f'%{name}: index {{tile.slot = {{kind = "extent", name = "{name}"}}}}'


def tensor(name: str, extents: str, element: str = "f32") -> str:
    return f'{{name = "{name}", kind = "tensor", element = "{element}", extents = [{extents}]}}'


VECTOR = 'memref<?xf32, strided<[1]>, {own = "%s"}>'
PART = 'memref<?xf32, strided<[1], offset: ?>, {own = "part", block = [4]}>'


def vector(name: str, own: str = "shared") -> str:
    return (
        f"%{name}v = memref.reinterpret_cast %{name} to offset: [0], sizes: [%N], strides: [1] :"
        f' memref<f32, {{own = "{own}"}}> to {VECTOR % own}'
    )


ADD = f"""
func.func @add({pointer("z", "mut")}, {pointer("x")}, {pointer("y")}, {extent("N")}) attributes {{
  tile.kernel, tile.parameters = [{tensor("z", '"N"')}, {tensor("x", '"N"')}, {tensor("y", '"N"')}]
}} {{
  {vector("z", "mut")}
  {vector("x")}
  {vector("y")}
  %p = "tile.part"(%zv) {{block = [4]}} : ({VECTOR % "mut"}) -> {PART}
  %o = "tile.part_offset"(%p) {{axis = 0}} : ({PART}) -> index
  %a = "tile.load"(%xv, %o) {{operandSegmentSizes = array<i32: 1, 1, 0>, unit = "element"}}
    : ({VECTOR % "shared"}, index) -> tensor<4xf32>
  %b = "tile.load"(%yv, %o) {{operandSegmentSizes = array<i32: 1, 1, 0>, unit = "element"}}
    : ({VECTOR % "shared"}, index) -> tensor<4xf32>
  %s = arith.addf %a, %b : tensor<4xf32>
  %c0 = arith.constant 0 : index
  "tile.store"(%p, %s, %c0) {{unit = "tile"}} : ({PART}, tensor<4xf32>, index) -> ()
  return
}}
"""


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 16, 33])
@pytest.mark.parametrize("order", [None, 3])
def test_every_element_is_added_and_nothing_else_touched(length: int, order: int | None) -> None:
    x = np.arange(length, dtype=np.float32)
    y = np.float32(1) / (x + 1)
    buffer = np.full(length + 8, 77, np.float32)
    launch(ADD, "add", order, z=buffer[4 : length + 4], x=x, y=y)
    np.testing.assert_array_equal(buffer[4 : length + 4], x + y)
    assert (buffer[:4] == 77).all() and (buffer[length + 4 :] == 77).all()


def test_the_contract_is_checked_before_anything_runs() -> None:
    x = np.ones(8, np.float32)
    z = np.zeros(8, np.float32)
    for arguments, message in (
        (
            {"z": z, "x": x, "y": np.ones(7, np.float32)},
            "axis 0 of `y` is `N`, which is 8 by axis 0 of `z`, got 7",
        ),
        ({"z": z, "x": x}, "no argument for `y`"),
        ({"z": z, "x": x, "y": x, "w": x}, "no parameter `w`"),
        ({"z": z, "x": x, "y": x.astype(np.float64)}, "`y` has elements `f32`, got float64"),
        ({"z": z, "x": x, "y": x[None]}, "`y` has rank 1, got rank 2"),
        ({"z": z, "x": x, "y": np.ones(16, np.float32)[::2]}, "the last stride of `y` is 1, got 2"),
        ({"z": z, "x": x, "y": 3.0}, "`y` is a tensor, got float"),
    ):  # fmt: skip
        with pytest.raises(BrokenContract) as caught:
            launch(ADD, "add", **arguments)
        assert message in str(caught.value)
    assert not z.any()


@pytest.mark.parametrize("sign", [1, -1])
def test_strides_keep_a_tensor_within_64_bits(sign: int) -> None:
    """Launchers refuse the same."""
    parameters = (Parameter("x", "f32", ("M", 4), "shared"),)
    far = (2**63 - 16) // 3 // 4 * 4  # bytes, of three strides and four elements
    taken, beyond = (
        np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (4, 4), (sign * stride, 4))
        for stride in (far, far + 4)
    )
    bind(parameters, {"x": taken})
    bind(parameters, {"x": beyond[:1]})
    bind(parameters, {"x": beyond[:0]})
    with pytest.raises(BrokenContract, match=f"`x`: strides .* over {3 * (far + 4) + 16} bytes"):
        bind(parameters, {"x": beyond})


class Touches:
    """Which elements were read and written."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def starts(self, program: tuple[int, ...]) -> None:
        self.seen.append(program)

    def touched(self, op: Any, tensor: str, elements: Any, *, written: bool, outside: int) -> None:
        self.seen.append((tensor, written, list(elements), outside))


def test_an_observer_hears_of_programs_and_of_the_elements_inside_and_outside() -> None:
    x, touches = np.ones(6, np.float32), Touches()
    launch(ADD, "add", [1, 0], touches, z=np.zeros(6, np.float32), x=x, y=x)
    assert touches.seen == [
        (1,), ("x", False, [4, 5], 2), ("y", False, [4, 5], 2), ("z", True, [4, 5], 2),
        (0,), *((name, name == "z", [0, 1, 2, 3], 0) for name in "xyz"),
    ]  # fmt: skip


MATRIX = 'memref<?x?xi32, strided<[?, 1]>, {own = "shared"}>'
TURNED = 'memref<?x?xi32, strided<[1, ?]>, {own = "shared"}>'
OUT = 'memref<?x?xi32, strided<[?, 1]>, {own = "mut"}>'
BLOCK = 'memref<?x?xi32, strided<[?, 1], offset: ?>, {own = "part", block = [4, 2]}>'
SUB = 'memref<?x?xi32, strided<[?, 1], offset: ?>, {own = "part", block = [2, 2]}>'

TURN = f"""
func.func private @halves(%k: index, %t: tensor<4x2xi32>) -> (index, tensor<4x2xi32>) {{
  return %k, %t : index, tensor<4x2xi32>
}}
func.func @turn({pointer("z", "mut", "i32")}, {stride("z")},
    {pointer("x", "shared", "i32")}, {stride("x")},
    {number("q", "i32")}, {extent("M")}, {extent("N")}) attributes {{
  tile.kernel, tile.parameters = [
    {tensor("z", '"N", "M"', "i32")}, {tensor("x", '"M", "N"', "i32")},
    {{name = "q", kind = "scalar", element = "i32"}}]
}} {{
  %zv = memref.reinterpret_cast %z to offset: [0], sizes: [%N, %M], strides: [%z_s0, 1]
    : memref<i32, {{own = "mut"}}> to {OUT}
  %xv = memref.reinterpret_cast %x to offset: [0], sizes: [%M, %N], strides: [%x_s0, 1]
    : memref<i32, {{own = "shared"}}> to {MATRIX}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %even = arith.remsi %N, %c2 : index
  %ok = arith.cmpi eq, %even, %c0 : index
  "tile.assume"(%ok) {{text = "N % 2 == 0"}} : (i1) -> ()
  %p = "tile.part"(%zv) {{block = [4, 2]}} : ({OUT}) -> {BLOCK}
  %i = "tile.part_id"(%p) {{axis = 0}} : ({BLOCK}) -> index
  %j = "tile.part_id"(%p) {{axis = 1}} : ({BLOCK}) -> index
  %t = memref.transpose %xv (a, b) -> (b, a) : {MATRIX} to {TURNED}
  %minus = arith.constant -1 : i32
  %a = "tile.load"(%t, %i, %j, %minus) {{operandSegmentSizes = array<i32: 1, 2, 1>, unit = "tile"}}
    : ({TURNED}, index, index, i32) -> tensor<4x2xi32>
  %n, %b = func.call @halves(%c2, %a) : (index, tensor<4x2xi32>) -> (index, tensor<4x2xi32>)
  %qs = tensor.splat %q : tensor<4x2xi32>
  %c = arith.addi %b, %qs : tensor<4x2xi32>
  scf.for %k = %c0 to %n step %c1 {{
    %s = "tile.sub"(%p, %k, %c0) {{block = [2, 2]}} : ({BLOCK}, index, index) -> {SUB}
    %h = scf.if %ok -> tensor<2x2xi32> {{
      %o = tensor.extract_slice %c[0, 0] [2, 2] [1, 1] : tensor<4x2xi32> to tensor<2x2xi32>
      scf.yield %o : tensor<2x2xi32>
    }} else {{
      %o = tensor.extract_slice %c[2, 0] [2, 2] [1, 1] : tensor<4x2xi32> to tensor<2x2xi32>
      scf.yield %o : tensor<2x2xi32>
    }}
    "tile.store"(%s, %h, %c0, %c0) {{unit = "tile"}} : ({SUB}, tensor<2x2xi32>, index, index) -> ()
  }}
  return
}}
"""


@pytest.mark.parametrize(("rows", "columns"), [(5, 6), (1, 2), (8, 4), (3, 0)])
def test_views_parts_loops_branches_and_helpers(rows: int, columns: int) -> None:
    wide = np.arange(rows * (columns + 3), dtype=np.int32).reshape(rows, columns + 3)
    x = wide[:, 1 : columns + 1]
    z = np.zeros((columns, rows), np.int32)
    launch(TURN, "turn", z=z, x=x, q=100)
    # Both sub-parts take the first half of the tile.
    expected = x.T + 100
    for start in range(0, columns, 4):
        second = expected[start + 2 : start + 4]
        second[:] = expected[start : start + 2][: len(second)]
    np.testing.assert_array_equal(z, expected)


def test_a_precondition_is_checked_even_if_there_is_no_program() -> None:
    x = np.zeros((0, 3), np.int32)
    with pytest.raises(BrokenContract, match="N % 2 == 0"):
        launch(TURN, "turn", z=np.zeros((3, 0), np.int32), x=x, q=1)


@pytest.mark.parametrize("given", [2**31, 1.5, float("nan"), float("inf"), True, np.float32(2)])
def test_scalars_must_fit_their_type(given: object) -> None:
    x = np.zeros((2, 2), np.int32)
    with pytest.raises(BrokenContract, match=r"`q`: expected a.* of type `i32`"):
        launch(TURN, "turn", z=x.copy(), x=x, q=given)


COUNT = f"""
func.func @count({pointer("z", "mut", "i64")}, {extent("N")}) attributes {{
  tile.kernel, tile.parameters = [{tensor("z", '"N"', "i64")}]
}} {{
  %zv = memref.reinterpret_cast %z to offset: [0], sizes: [%N], strides: [1]
    : memref<i64, {{own = "mut"}}> to memref<?xi64, strided<[1]>, {{own = "mut"}}>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  "tile.grid"(%N, %c2) : (index, index) -> ()
  %i = "tile.program_id"() {{axis = 0}} : () -> index
  %j = "tile.program_id"() {{axis = 1}} : () -> index
  %g = "tile.num_programs"() {{axis = 1}} : () -> index
  %k = "tile.num_programs"() {{axis = 2}} : () -> index
  %one = arith.constant 1 : i64
  %r:2 = scf.while (%n = %i, %f = %one) : (index, i64) -> (index, i64) {{
    %more = arith.cmpi sgt, %n, %c0 : index
    scf.condition(%more) %n, %f : index, i64
  }} do {{
  ^bb0(%n: index, %f: i64):
    %m = arith.index_cast %n : index to i64
    %product = arith.muli %f, %m : i64
    %less = arith.subi %n, %c1 : index
    scf.yield %less, %product : index, i64
  }}
  %gk = arith.muli %g, %k : index
  %scale = arith.index_cast %gk : index to i64
  %value = arith.muli %r#1, %scale : i64
  %t = tensor.splat %value : tensor<1xi64>
  %first = arith.cmpi eq, %j, %c0 : index
  scf.if %first {{
    "tile.store"(%zv, %t, %i) {{operandSegmentSizes = array<i32: 1, 1, 1>, unit = "element"}}
      : (memref<?xi64, strided<[1]>, {{own = "mut"}}>, tensor<1xi64>, index) -> ()
  }}
  return
}}
"""


def test_a_grid_of_programs() -> None:
    z = np.zeros(6, np.int64)
    launch(COUNT, "count", z=z)
    np.testing.assert_array_equal(z, [2, 2, 4, 12, 48, 240])


WILD = f"""
func.func @wild({pointer("z", "mut")}, {pointer("x")},
    {number("i", "index")}, {extent("N")}) attributes {{
  tile.kernel, tile.parameters = [{tensor("z", '"N"')}, {tensor("x", '"N"')},
    {{name = "i", kind = "scalar", element = "i64"}}]
}} {{
  {vector("z", "mut")}
  {vector("x")}
  %p = "tile.part"(%zv) {{block = [4]}} : ({VECTOR % "mut"}) -> {PART}
  %seven = arith.constant 7.0 : f32
  %a = "tile.load"(%xv, %i, %seven) {{operandSegmentSizes = array<i32: 1, 1, 1>, unit = "UNIT"}}
    : ({VECTOR % "shared"}, index, f32) -> tensor<4xf32>
  %c0 = arith.constant 0 : index
  "tile.store"(%p, %a, %c0) {{unit = "tile"}} : ({PART}, tensor<4xf32>, index) -> ()
  return
}}
"""


@pytest.mark.parametrize("unit", ["tile", "element"])
@pytest.mark.parametrize("index", [-(2**62), -5, -4, -3, -1, 0, 1, 2, 3, 4, 5, 2**62, 2**63 - 1])
def test_each_element_of_an_access_is_inside_or_outside_by_itself(unit: str, index: int) -> None:
    x = np.arange(1, 5, dtype=np.float32)
    z = np.zeros(4, np.float32)
    launch(WILD.replace("UNIT", unit), "wild", z=z, x=x, i=index)
    start = index * (4 if unit == "tile" else 1)
    expected = [x[i] if 0 <= i < 4 else 7 for i in range(start, start + 4)]
    np.testing.assert_array_equal(z, expected)
