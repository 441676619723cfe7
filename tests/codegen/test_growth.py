"""What passes do grows with the program, in whatever way that is long or deep: counted, not timed.

Each case has a program at one size and at twice that. Work that doubles is linear; passes that walk
a loop anew for each turn of all loops around it take 2^n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lowered import program
from mlir import ir

from tilec.codegen import size as code_size
from tilec.compilation import Options
from tilec.driver import compile_sources
from tilec.ir.dialect import context
from tilec.ir.walk import operations
from tilec.layout import blocked
from tilec.ops import comes_as, dot
from tilec.ops.rules import Placing
from tilec.shared_memory.accesses import Loop, Skeleton, Touch, skeleton_of
from tilec.shared_memory.graph import Graph
from tilec.shared_memory.needless_barriers import Flow
from tilec.shared_memory.place_barriers import Walk, place_barriers
from tilec.shared_memory.plan_offsets import plan_offsets
from tilec.shared_memory.verify import problems_of
from tilec.sources import read_sources
from tilec.transforms import insert_barriers
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.place_layouts import place_layouts

# What takes twice as long for a program twice as long, but for what is there once.
LINEAR = 2.3
# A loop deeper, each entry to which may be with one access more.
SQUARE = 4.6

_HEAD = """llvm.func @f(%taken: i1, %long: i64, %x: f32) {
  %n = arith.index_cast %long : i64 to index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
"""
_FOR = "scf.for %i{0} = %zero to %n step %one {{\n{1}\n}} {{warp.uniform}}"
_IF = "scf.if %taken {{\n{1}\n}} {{warp.uniform}}"


def exchange(number: int) -> str:
    return (
        f'%b{number} = "warp.alloc"() {{bytes = 512}} : () -> !llvm.ptr<3>\n'
        f"llvm.store %x, %b{number} : f32, !llvm.ptr<3>\n"
        f"%r{number} = llvm.load %b{number} : !llvm.ptr<3> -> f32"
    )


def in_a_row(size: int) -> str:
    return "\n".join(exchange(number) for number in range(size))


def loops_in_a_row(size: int) -> str:
    return "\n".join(_FOR.format(number, exchange(number)) for number in range(size))


def branches_in_a_row(size: int) -> str:
    return "\n".join(_IF.format(number, exchange(number)) for number in range(size))


def nested(size: int, around: str = _FOR) -> str:
    text = ""
    for number in range(size):
        text = around.format(number, f"{exchange(number)}\n{text}")
    return text


def nested_around_buffers_of_all(size: int) -> str:
    """Each loop uses what was there before all of them: nothing ends with its loop."""
    text = ""
    for number in range(size):
        touched = f"llvm.store %x, %b{number} : f32, !llvm.ptr<3>"
        later = f"%s{number} = llvm.load %b{(number + 1) % size} : !llvm.ptr<3> -> f32"
        text = _FOR.format(number, f"{touched}\n{text}\n{later}")
    allocs = (f'%b{n} = "warp.alloc"() {{bytes = 512}} : () -> !llvm.ptr<3>' for n in range(size))
    return "\n".join((*allocs, text))


SHAPES = [
    in_a_row,
    loops_in_a_row,
    branches_in_a_row,
    nested,
    lambda size: nested(size, _IF),
    nested_around_buffers_of_all,
]
NAMES = ["row", "loops", "branches", "nested loops", "nested branches", "buffers of all"]


@contextmanager
def planned(text: str) -> Iterator[tuple[ir.OpView, Skeleton]]:
    with context():
        module = ir.Module.parse(f"{_HEAD}{text}\nllvm.return\n}}")
        [function] = module.body.operations
        skeleton = skeleton_of(function)
        plan_offsets(skeleton, free=1 << 20, limit=1 << 20)
        yield function, skeleton


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_barriers_of_shared_memory(shape: Callable[[int], str], warps: int) -> None:
    walked, followed = {}, {}
    for size in (8, 16):
        with planned(shape(size)) as (function, skeleton):
            walk = Walk(warps)
            walk.run(skeleton)
            walked[size] = walk.visits
            flow = Flow(skeleton_of(function), warps)
            for barrier in flow.needless(walk.inserted):
                barrier.erase()
            followed[size] = flow.visits
            assert not list(problems_of(skeleton_of(function), warps=warps))
    assert walked[16] <= (SQUARE if shape is nested_around_buffers_of_all else LINEAR) * walked[8]
    is_deep = shape in (nested, nested_around_buffers_of_all)
    assert followed[16] <= (SQUARE if is_deep else LINEAR) * followed[8]


def test_forty_loops_around_each_other() -> None:
    with planned(nested(40)) as (function, skeleton):
        place_barriers(function, warps=4, skeleton=skeleton)
        placed = skeleton_of(function)
        assert not list(problems_of(placed, warps=4))
        # One between the write and the read of each, one before the next turn writes.
        assert _depth(placed) == 40


def _depth(skeleton: Skeleton) -> int:
    loops = [node for node in skeleton if isinstance(node, Loop)]
    return 1 + max(_depth(loop.parts[0]) for loop in loops) if loops else 0


def test_edges_of_the_verifier_are_as_many_as_what_it_draws() -> None:
    edges = {}
    for size in (20, 40):
        with planned(branches_in_a_row(size)) as (_, skeleton):
            graph = Graph()
            graph.add(skeleton, {graph.node(None)})
            edges[size] = sum(map(len, graph.after))
            assert sum(isinstance(one, Touch) for one in graph.payloads) == 2 * size
    assert edges[40] <= LINEAR * edges[20]


# ---- programs ------------------------------------------------------------------------------------


def _stores(depth: int) -> str:
    """Loops around each other, each of which stores for other threads what these load."""
    text = ""
    for number in range(depth):
        part, other = number % 4, (number + 1) % 4
        moved = f"z.sub::<64>([{part}]).store(z.sub::<64>([{other}]).load());"
        text = f"for i{number} in 0..n {{ {moved} {text} }}"
    return (
        "#[kernel] pub fn k<N: Dim>(mut z: Part<&mut Tensor<f32, N>, 256>, n: i32) {"
        f" z.store(z.load() + 1.0); {text} }}"
    )


def test_barriers_of_tensors() -> None:
    visits = {}
    for depth in (4, 8):
        with program(_stores(depth)) as compiled:
            function = compiled.instances["k"].function.operation.clone().opview
            find_access_facts(function)
            place_layouts(function, Placing(4, 16))
            walk = insert_barriers.Walk()
            [block] = function.regions[0].blocks
            found = walk.run(block)
            visits[depth] = walk.visits
            # Every loop loads what another one stored, and what its own turn before did.
            assert len(found) >= depth
            function.operation.erase()
    assert visits[8] <= SQUARE * visits[4]


def _chained(products: int) -> str:
    each = "t = dot(t, x, Tile::<f32, 64, 64>::zeros()).to::<bf16>();" * products
    return f"""#[kernel]
    pub fn k<M: Dim, K: Dim>(
        c: Part<&mut Tensor<f32, M, K>, 64, 64>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, K>,
    ) {{
        let x = b.load::<64, 64>([0, c.id(1)]);
        let mut t = a.load::<64, 64>([c.id(0), 0]);
        {each}
        c.store(t.to::<f32>());
    }}"""


def test_layouts_of_factors_that_are_products(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    ask = dot.operand_layouts

    def counted(*arguments: object) -> object:
        nonlocal asked
        asked += 1
        return ask(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(dot, "operand_layouts", counted)
    counts = {}
    for products in (4, 8):
        with program(_chained(products)) as compiled:
            function = compiled.instances["k"].function.operation.clone().opview
            find_access_facts(function)
            asked = 0
            place_layouts(function, Placing(4, 1))
            counts[products] = asked
            function.operation.erase()
    assert counts[8] <= LINEAR * counts[4]


def test_where_a_tile_comes_from_that_is_used_twice_at_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # There are 2^n ways from the last step back to the load.
    found = comes_as._Asked._found
    asked = 0

    def counted(*arguments: object) -> bool:
        nonlocal asked
        asked += 1
        return found(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(comes_as._Asked, "_found", counted)
    counts = {}
    for steps in (5, 10):
        doubled = "t = t * t;" * steps
        text = _chained(0).replace("&Tensor<bf16, M, K>", "&Tensor<f32, M, K>")
        text = text.replace("c.store(t.to::<f32>())", f"{doubled} c.store(t)")
        with program(text) as compiled:
            function = compiled.instances["k"].function
            find_access_facts(function)
            [store] = [op for op in operations(function) if op.operation.name == "tile.store"]
            asked = 0
            layout = blocked((64, 64), 4, (1, 0), 4)
            assert comes_as.comes_as(store.operands[1], layout, Placing(4, 16))
            counts[steps] = asked
    assert counts[10] <= LINEAR * counts[5]


def test_code_of_a_thread_that_is_too_large_is_refused_at_its_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "k.tile"
    source.write_text(
        "#[kernel]\npub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>) {\n"
        "    z.store(Tile::<f32, 256>::ones().cumsum::<0>());\n}\n"
    )
    assert not compile_sources(read_sources(str(source)), Options()).diagnostics
    monkeypatch.setattr(code_size, "MOST_OPERATIONS", 30)
    refused = compile_sources(read_sources(str(source)), Options())
    [found] = refused.diagnostics
    assert not refused.outputs
    assert (found.code, found.message) == ("E0702", "a kernel is too large")
    span = found.labels[0].span
    assert source.read_text()[span.start :].startswith("k<N: Dim>")
    assert "at most 30" in found.labels[0].text
