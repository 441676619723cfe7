"""Numbers that are read from tensors, without tiles on the way."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from tilec.ir.walk import operations
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.read_elements import read_elements

VIEW = 'memref<?x?xi32, strided<[?, 1]>, {own = "%s"}>'


def after(own: str, shape: str, fill: str = "") -> list[str]:
    """The names of what reads, after the pass."""
    view = VIEW % own
    count = 1 if fill else 0
    kinds = f"{view}, index, index{', i32' * count}"
    operands = f"%x, %i, %i{fill}"
    module = f"""
    func.func @f(%x: {view}, %i: index, %c: i32) -> i32 {{
      %t = "tile.load"({operands})
        {{operandSegmentSizes = array<i32: 1, 2, {count}>, unit = "tile"}}
        : ({kinds}) -> tensor<{shape}xi32>
      %0 = arith.constant 0 : index
      %n = tensor.extract %t[%0, %0] : tensor<{shape}xi32>
      return %n : i32
    }}"""
    found: list[str] = []

    def run(module) -> None:  # type: ignore[no-untyped-def]
        [function] = module.body.operations
        find_access_facts(function)
        read_elements(function)
        found.extend(op.operation.name for op in operations(function))

    rewritten(module, run)
    return [name for name in found if name.startswith(("tile.", "tensor."))]


def test_an_element_of_what_is_only_read_is_a_number() -> None:
    assert after("shared", "1x1") == ["tile.element"]


@pytest.mark.parametrize(
    ("own", "shape", "fill"), [("mut", "1x1", ""), ("shared", "1x2", ""), ("shared", "1x1", ", %c")]
)
def test_others_stay(own: str, shape: str, fill: str) -> None:
    assert after(own, shape, fill) == ["tile.load", "tensor.extract"]
