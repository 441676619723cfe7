"""What operations do, as every pass asks it: of each operation that programs are made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lowered import program
from mlir import ir

from tilec.ir.dialect import context, declarations
from tilec.ir.effects import Effect, computes_numbers, effect_of, is_of_numbers, only_computes
from tilec.ir.walk import operations

PROGRAMS = sorted(Path(__file__).parents[1].joinpath("programs").glob("*.tile"))
# What begins, ends and calls functions does what no name says.
FUNCTIONS = {"func.func", "func.return", "func.call"}

TEXT = """
func.func @f(%view: memref<?xf32>, %i: index, %c: i1, %tile: tensor<4xf32>, %t: memref<4xf32>) {
  %sum = arith.addi %i, %i : index
  %root = math.sqrt %tile : tensor<4xf32>
  %one = tensor.extract %tile[%i] : tensor<4xf32>
  %extent = memref.dim %view, %i : memref<?xf32>
  %part = memref.subview %view[%i] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
  %read = memref.load %view[%i] : memref<?xf32>
  memref.store %read, %view[%i] : memref<?xf32>
  memref.copy %t, %t : memref<4xf32> to memref<4xf32>
  %room = memref.alloc() : memref<4xf32>
  %updated = memref.atomic_rmw addf %read, %view[%i] : (f32, memref<?xf32>) -> f32
  %chosen = scf.if %c -> (index) {
    scf.yield %i : index
  } else {
    scf.yield %sum : index
  }
  %choice = scf.if %c -> (tensor<4xf32>) {
    scf.yield %tile : tensor<4xf32>
  } else {
    scf.yield %root : tensor<4xf32>
  }
  gpu.barrier
  func.call @f(%view, %i, %c, %tile, %t)
    : (memref<?xf32>, index, i1, tensor<4xf32>, memref<4xf32>) -> ()
  return
}
"""


@pytest.fixture(scope="module")
def ops() -> Iterator[dict[str, list[ir.OpView]]]:
    with context():
        module = ir.Module.parse(TEXT)
        found: dict[str, list[ir.OpView]] = {}
        for op in operations(module.operation.opview):
            found.setdefault(op.operation.name, []).append(op)
        yield found


@pytest.mark.parametrize(
    ("effect", "names"),
    [
        (Effect.NONE, "arith.addi math.sqrt tensor.extract memref.dim memref.subview"),
        (Effect.REGIONS, "scf.if scf.yield"),
        (Effect.READS, "memref.load"),
        (Effect.WRITES, "memref.store"),
        (Effect.OTHER, "memref.copy memref.alloc memref.atomic_rmw gpu.barrier func.call"),
    ],
)
def test_operations_of_others_do_what_their_names_say(
    ops: dict[str, list[ir.OpView]], effect: Effect, names: str
) -> None:
    for name in names.split():
        assert {effect_of(op) for op in ops[name]} == {effect}, name


def test_tiles_are_no_numbers(ops: dict[str, list[ir.OpView]]) -> None:
    assert [computes_numbers(ops[n][0]) for n in ("arith.addi", "memref.dim")] == [True, True]
    assert [only_computes(ops[n][0]) for n in ("math.sqrt", "tensor.extract")] == [True, True]
    assert not any(computes_numbers(ops[n][0]) for n in ("math.sqrt", "tensor.extract", "scf.if"))
    assert [is_of_numbers(op) for op in ops["scf.if"]] == [True, False]
    assert not any(is_of_numbers(ops[n][0]) for n in ("memref.load", "memref.store", "gpu.barrier"))


def test_what_is_declared_pure_reads_and_writes_nothing() -> None:
    for name, declared in declarations().items():
        assert not (declared.pure and (declared.reads or declared.writes or declared.updates)), name


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_is_known_what_each_operation_of_a_program_does(path: Path) -> None:
    with program(path.read_text()) as compiled:
        for instance in compiled.instances.values():
            for op in operations(instance.function):
                name = op.operation.name
                is_ours = name in declarations()
                assert is_ours or name in FUNCTIONS or effect_of(op) is not Effect.OTHER, name
