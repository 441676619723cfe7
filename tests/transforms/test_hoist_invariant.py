from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.hoist_invariant import hoist_invariant

SHARED = 'memref<?xf32, strided<[1]>, {own = "shared"}>'
MUT = 'memref<?xf32, strided<[1]>, {own = "mut"}>'


ATOMIC = 'memref<?xf32, strided<[1]>, {own = "atomic"}>'


def loop(*body: str) -> str:
    lines = "\n".join(body)
    return f"""
func.func @k(%s: {SHARED}, %m: {MUT}, %c: index, %n: index,
    %a: {ATOMIC}, %chosen: tensor<4xindex>) {{
  scf.for %i = %c to %n step %n {{
    scf.for %j = %c to %n step %n {{
{lines}
      func.call @use(%t) : (tensor<4xf32>) -> ()
    }}
  }}
  return
}}
func.func private @use(tensor<4xf32>)
"""


def load(view: str, kind: str, index: str, extra: str = "") -> str:
    return (
        f'%t = "tile.load"({view}, {index}) {{operandSegmentSizes = array<i32: 1, 1, 0>,'
        f' unit = "tile"{extra}}} : ({kind}, index) -> tensor<4xf32>'
    )


def depth(text: str, name: str) -> int:
    """How many loops are around an operation."""
    [line] = [line for line in text.splitlines() if name in line]
    return (len(line) - len(line.lstrip())) // 2 - 2


def test_chains_move_out_of_every_loop() -> None:
    program = '%p = "tile.program_id"() {axis = 0} : () -> index'
    text, changed = rewritten(loop(program, load("%s", SHARED, "%p")), hoist_invariant)
    assert changed
    assert depth(text, "tile.load") == depth(text, "tile.program_id") == 0
    assert not rewritten(text, hoist_invariant)[1]


def test_an_operation_moves_as_far_as_its_operands_let_it() -> None:
    text, _ = rewritten(loop(load("%s", SHARED, "%i")), hoist_invariant)
    assert depth(text, "tile.load") == 1
    text, changed = rewritten(loop(load("%s", SHARED, "%j")), hoist_invariant)
    assert depth(text, "tile.load") == 2 and not changed


def test_what_may_be_written_or_is_unchecked_stays() -> None:
    for body in (load("%m", MUT, "%c"), load("%s", SHARED, "%c", ", unchecked")):
        assert not rewritten(loop(body), hoist_invariant)[1]


def test_what_is_read_atomically_is_read_each_time() -> None:
    body = (
        '%t = "tile.atomic"(%a, %chosen) {operandSegmentSizes = array<i32: 1, 0, 1, 0>,'
        f' tiled = [0], update = "load", ordering = "relaxed"}}'
        f" : ({ATOMIC}, tensor<4xindex>) -> tensor<4xf32>"
    )
    assert not rewritten(loop(body), hoist_invariant)[1]
    gather = (
        '%t = "tile.gather"(%s, %chosen) {operandSegmentSizes = array<i32: 1, 0, 1>, tiled = [0]}'
        f" : ({SHARED}, tensor<4xindex>) -> tensor<4xf32>"
    )
    text, _ = rewritten(loop(gather), hoist_invariant)
    assert depth(text, "tile.gather") == 0
