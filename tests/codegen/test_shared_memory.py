"""Offsets and barriers of shared memory, in code by hand, at random, and as it is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered import program
from mlir import ir

from tilec.codegen.lower_tiles import gpu_module, lower_tiles
from tilec.codegen.warps import warps_for
from tilec.hints import Hints
from tilec.ir.dialect import context
from tilec.ops.rules import Placing
from tilec.shared_memory.accesses import Barrier, Branch, Loop, Skeleton, skeleton_of
from tilec.shared_memory.place_barriers import place_barriers
from tilec.shared_memory.plan_offsets import DoesNotFitError, plan_offsets
from tilec.shared_memory.verify import problems_of
from tilec.target.resolve import resolve
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.insert_barriers import insert_barriers
from tilec.transforms.place_layouts import place_layouts

KERNELS = sorted(Path("kernels").glob("*.tile"))

_HEAD = """llvm.func @f(%taken: i1, %long: i64, %x: f32) {
  %n = arith.index_cast %long : i64 to index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
"""


def write(name: str) -> str:
    return f"llvm.store %x, %{name} : f32, !llvm.ptr<3>"


def read(name: str) -> str:
    return f"llvm.load %{name} : !llvm.ptr<3> -> f32"


def alloc(name: str, size: int = 512, marks: str = "") -> str:
    return f'%{name} = "warp.alloc"() {{bytes = {size}{marks}}} : () -> !llvm.ptr<3>'


def loop(*lines: str) -> str:
    body = "\n".join(lines)
    return f"scf.for %i = %zero to %n step %one {{\n{body}\n}} {{warp.uniform}}"


def either(left: str, right: str = "", *, mark: str = "{warp.uniform}") -> str:
    return f"scf.if %taken {{\n{left}\n}} else {{\n{right}\n}} {mark}"


def parsed(*lines: str) -> ir.Module:
    numbers = count()
    body = re.sub("%i", lambda _: f"%i{next(numbers)}", "\n".join(lines))
    return ir.Module.parse(f"{_HEAD}{body}\nllvm.return\n}}")


def finished(module: ir.Module, *, warps: int = 4, free: int = 1 << 20) -> Skeleton:
    """The skeleton of the one function, with offsets and barriers."""
    [function] = module.body.operations
    skeleton = skeleton_of(function)
    plan_offsets(skeleton, free=free, limit=1 << 20)
    place_barriers(function, warps=warps)
    return skeleton_of(function)


def barriers(skeleton: Skeleton) -> list[bool]:
    """The barriers in program order: whether each is one of the block."""
    return [barrier.is_of_block for barrier in _all_barriers(skeleton)]


def _all_barriers(skeleton: Skeleton) -> Iterator[Barrier]:
    for node in skeleton:
        match node:
            case Barrier():
                yield node
            case Branch(_, parts) | Loop(_, parts):
                for part in parts:
                    yield from _all_barriers(part)


def without(skeleton: Skeleton, gone: Barrier) -> Skeleton:
    """The skeleton without one barrier."""
    found = []
    for node in skeleton:
        match node:
            case Barrier(op, _) if op == gone.op:
                continue
            case Branch(_, parts):
                found.append(replace(node, ways=tuple(without(part, gone) for part in parts)))
            case Loop(_, parts):
                found.append(replace(node, parts=tuple(without(part, gone) for part in parts)))
            case _:
                found.append(node)
    return tuple(found)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([alloc("a"), write("a"), read("a")], [True]),
        ([alloc("a"), read("a"), read("a")], []),
        ([alloc("a"), write("a"), write("a")], []),
        ([alloc("a"), write("a"), read("a"), write("a"), read("a")], [True, True, True]),
        ([alloc("a"), alloc("b"), write("a"), write("b"), read("a"), read("b")], [True]),
        ([loop(alloc("a"), write("a"), read("a"))], [True, True]),
        (
            [loop(alloc("a"), write("a"), read("a"), alloc("b"), write("b"), read("b"))],
            [True, True],
        ),
        ([alloc("a"), loop(write("a"))], [True]),
        ([alloc("a"), either(write("a"), read("a"))], []),
        ([alloc("a"), either(write("a")), read("a")], [True]),
        ([alloc("a"), either(write("a"), mark=""), read("a")], [True]),
        ([alloc("a", marks=", by_warp"), write("a"), read("a")], [False]),
        ([loop(alloc("a", marks=", by_warp"), write("a"), read("a"))], [False, False]),
    ],
)  # fmt: skip
def test_a_barrier_stands_between_accesses_that_conflict_and_nowhere_else(
    lines: list[str], expected: list[bool]
) -> None:
    with context():
        module = parsed(*lines)
        assert barriers(finished(module)) == expected


def test_one_warp_needs_barriers_of_the_warp_only() -> None:
    with context():
        module = parsed(alloc("a"), write("a"), read("a"))
        assert barriers(finished(module, warps=1)) == [False]


def test_buffers_in_use_one_after_the_other_share_bytes_where_room_is_dear() -> None:
    lines = [alloc("a"), write("a"), read("a"), alloc("b"), write("b"), read("b")]
    with context():
        [function] = (module := parsed(*lines)).body.operations
        assert plan_offsets(skeleton_of(function), free=0, limit=1024) == 512
        assert plan_offsets(skeleton_of(function), free=1024, limit=1024) == 1024
        assert barriers(finished(module, free=0)) == [True, True, True]


def test_a_buffer_from_before_a_loop_shares_nothing_with_one_inside() -> None:
    inside = loop(read("a"), alloc("b"), write("b"), read("b"))
    with context():
        [function] = (module := parsed(alloc("a"), write("a"), inside)).body.operations
        assert plan_offsets(skeleton_of(function), free=0, limit=4096) == 1024
        assert module.operation.verify()


def test_the_largest_buffer_is_named_where_all_do_not_fit() -> None:
    lines = [alloc("a", 600), alloc("b", 900), write("a"), write("b"), read("a"), read("b")]
    with context():
        [function] = (module := parsed(*lines)).body.operations
        with pytest.raises(DoesNotFitError, match="1512 bytes of shared memory, of 1024"):
            plan_offsets(skeleton_of(function), free=0, limit=1024)
        assert module.operation.verify()


def test_threads_may_not_meet_in_memory_where_not_all_of_them_come() -> None:
    with context():
        module = parsed(alloc("a"), either(f"{write('a')}\n{read('a')}", mark=""))
        with pytest.raises(AssertionError, match="where not all of them come"):
            finished(module)


# ---- made at random ------------------------------------------------------------------------------

NAMES = "abc"
accesses = st.sampled_from([*(read(n) for n in NAMES), *(write(n) for n in NAMES), "nvvm.barrier0"])


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inner, max_size=4).map("\n".join)
    return st.one_of(bodies.map(loop), st.tuples(bodies, bodies).map(lambda both: either(*both)))


programs = st.lists(st.recursive(accesses, _nested, max_leaves=8), max_size=6).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(programs, st.sampled_from([1, 4]), st.booleans(), st.booleans())
def test_random_code_is_in_order_and_each_barrier_is_needed(
    code: str, warps: int, is_by_warp: bool, is_dear: bool
) -> None:
    allocs = [alloc(name, marks=", by_warp" if is_by_warp else "") for name in NAMES]
    with context():
        module = parsed(*allocs, code)
        given_ones = {b.op for b in _all_barriers(skeleton_of(next(iter(module.body.operations))))}
        result = finished(module, warps=warps, free=0 if is_dear else 1 << 20)
        _expect_in_order(result, warps, given_ones)


def _expect_in_order(skeleton: Skeleton, warps: int, given_ones: set[ir.OpView]) -> int:
    """No problem, and one without any of the barriers that were derived; gives their number."""
    assert not list(problems_of(skeleton, warps=warps))
    derived = [b for b in _all_barriers(skeleton) if b.op not in given_ones]
    for barrier in derived:
        assert list(problems_of(without(skeleton, barrier), warps=warps)), (
            f"{barrier} is for nothing"
        )
    return len(derived)


# ---- as it is built ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_each_barrier_of_the_kernels_is_needed(path: Path) -> None:
    target = resolve("sm_90a")
    with program(path.read_text()) as compiled:
        module, body = gpu_module("kernels", '#nvvm.target<chip = "sm_90a">')
        for symbol, instance in compiled.instances.items():
            function = instance.function.operation.clone().opview
            warps = warps_for(function, Hints.of(instance.description.hints), target)
            find_access_facts(function)
            place_layouts(function, Placing(warps, 16))
            insert_barriers(function)
            code = lower_tiles(function, symbol, body, warps=warps, vector_bytes=16)
            skeleton = skeleton_of(code.function)
            given_ones = {barrier.op for barrier in _all_barriers(skeleton)}
            plan_offsets(skeleton, free=target.free_smem_bytes(warps), limit=1 << 20)
            place_barriers(code.function, warps=warps)
            _expect_in_order(skeleton_of(code.function), warps, given_ones)
            function.operation.erase()
        assert module.operation.verify()
