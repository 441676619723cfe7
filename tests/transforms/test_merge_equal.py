from __future__ import annotations

from rewriting import rewritten

from tilec.transforms.merge_equal import merge_equal

SHARED = 'memref<?xf32, strided<[1]>, {own = "shared"}>'
MUT = 'memref<?xf32, strided<[1]>, {own = "mut"}>'


def load(result: str, view: str, kind: str, index: str = "%c", unit: str = "tile") -> str:
    return (
        f'{result} = "tile.load"({view}, {index}) {{operandSegmentSizes = array<i32: 1, 1, 0>,'
        f' unit = "{unit}"}} : ({kind}, index) -> tensor<4xf32>'
    )


ATOMIC = 'memref<?xf32, strided<[1]>, {own = "atomic"}>'


def gather(result: str, view: str, kind: str) -> str:
    return (
        f'{result} = "tile.gather"({view}, %chosen) {{operandSegmentSizes = array<i32: 1, 0, 1>,'
        f" tiled = [0]}} : ({kind}, tensor<4xindex>) -> tensor<4xf32>"
    )


def read_atomically(result: str) -> str:
    return (
        f'{result} = "tile.atomic"(%a, %chosen) {{operandSegmentSizes = array<i32: 1, 0, 1, 0>,'
        f' tiled = [0], update = "load", ordering = "relaxed"}}'
        f" : ({ATOMIC}, tensor<4xindex>) -> tensor<4xf32>"
    )


def module(*body: str) -> str:
    lines = "\n".join(body)
    return f"""
func.func @k(%s: {SHARED}, %m: {MUT}, %c: index, %d: index, %b: i1,
    %a: {ATOMIC}, %chosen: tensor<4xindex>) {{
{lines}
  return
}}
func.func private @use(tensor<4xf32>)
"""


def use(value: str) -> str:
    return f"func.call @use({value}) : (tensor<4xf32>) -> ()"


def test_equal_loads_of_a_shared_tensor_are_one() -> None:
    text, changed = rewritten(
        module(load("%x", "%s", SHARED), load("%y", "%s", SHARED), use("%x"), use("%y")),
        merge_equal,
    )
    assert changed and text.count("tile.load") == 1
    assert not rewritten(text, merge_equal)[1]


def test_what_differs_or_may_be_written_stays() -> None:
    text, changed = rewritten(
        module(
            load("%x", "%s", SHARED), load("%y", "%s", SHARED, unit="element"),
            load("%z", "%s", SHARED, "%d"), load("%v", "%m", MUT), load("%w", "%m", MUT),
            *map(use, ("%x", "%y", "%z", "%v", "%w")),
        ),
        merge_equal,
    )  # fmt: skip
    assert not changed and text.count("tile.load") == 5


def test_gathers_are_as_loads_and_what_is_read_atomically_is_read_each_time() -> None:
    text, changed = rewritten(
        module(
            gather("%x", "%s", SHARED), gather("%y", "%s", SHARED), gather("%z", "%m", MUT),
            gather("%v", "%m", MUT), read_atomically("%o"), read_atomically("%p"),
            *map(use, ("%x", "%y", "%z", "%v", "%o", "%p")),
        ),
        merge_equal,
    )  # fmt: skip
    assert changed and text.count("tile.gather") == 3 and text.count("tile.atomic") == 2


def test_a_block_knows_what_is_before_it_and_not_what_is_in_its_neighbour() -> None:
    outer = load("%o", "%s", SHARED)
    inner = [
        "scf.if %b {", load("%x", "%s", SHARED), load("%y", "%s", SHARED, "%d"), use("%x"),
        use("%y"), "} else {", load("%x", "%s", SHARED, "%d"), use("%x"), "}",
    ]  # fmt: skip
    text, _ = rewritten(module(outer, use("%o"), *inner), merge_equal)
    assert text.count("tile.load") == 3
