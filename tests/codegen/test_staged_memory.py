"""Waits, groups and barriers of rings that threads fill: none is missing, and each is missed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from lowered import program
from test_staged_on_threads import product

from tilec.codegen.lower_tiles import gpu_module, lower_tiles
from tilec.codegen.warps import warps_for
from tilec.hints import Hints
from tilec.ops.rules import Placing
from tilec.schedule.stages import plan_stages
from tilec.shared_memory.accesses import (
    Arrived,
    Barrier,
    Branch,
    Commit,
    Loop,
    Node,
    Skeleton,
    Touch,
    skeleton_of,
)
from tilec.shared_memory.place_barriers import place_barriers
from tilec.shared_memory.plan_offsets import plan_offsets
from tilec.shared_memory.verify import problems_of
from tilec.target.resolve import resolve
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.insert_barriers import insert_barriers
from tilec.transforms.place_layouts import place_layouts
from tilec.transforms.stage_loads import stage_loads

NESTED = """
#[kernel]
pub fn k<M: Dim, K: Dim>(
    y: Part<&mut Tensor<f32, 64, 64>, 64, 64>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, M, K>,
) {
    let mut all = Tile::<f32, 64, 64>::zeros();
    for i in 0..M.div_ceil(64) {
        let mut sum = Tile::<f32, 64, 64>::zeros();
        for k in 0..K.div_ceil(32) {
            sum = dot(a.load::<64, 32>([i, k]), b.t().load::<32, 64>([k, i]), sum);
        }
        all = all.maximum(sum);
    }
    y.store(all.to::<bf16>().to::<f32>());
}"""


@contextmanager
def staged(text: str, vector_bytes: int, target: str = "sm_80") -> Iterator[tuple[Skeleton, int]]:
    """The skeleton of the kernel `k` with barriers and offsets, and its warps."""
    with program(text) as compiled:
        module, body = gpu_module("kernels", f'#nvvm.target<chip = "{target}">')
        instance, facts = compiled.instances["k"], resolve(target)
        function, hints = instance.function, Hints.of(instance.description.hints)
        warps = warps_for(function, hints, facts)
        placing = Placing(warps, vector_bytes)
        find_access_facts(function)
        stages = plan_stages(function, hints, facts, placing)
        assert stages.rings, stages.reasons
        stage_loads(function, stages)
        place_layouts(function, placing)
        insert_barriers(function)
        code = lower_tiles(function, "k", body, warps=warps, vector_bytes=vector_bytes)
        plan_offsets(skeleton_of(code.function), free=0, limit=1 << 20)
        place_barriers(code.function, warps=warps)
        yield skeleton_of(code.function), warps
        assert module.operation.verify()


def nodes(skeleton: Skeleton) -> Iterator[Node]:
    for node in skeleton:
        yield node
        for part in _parts(node):
            yield from nodes(part)


def _parts(node: Node) -> tuple[Skeleton, ...]:
    match node:
        case Branch(_, ways):
            return ways
        case Loop(_, parts):
            return parts
    return ()


def without(skeleton: Skeleton, gone: Node) -> Skeleton:
    found: list[Node] = []
    for node in skeleton:
        if node is gone:
            continue
        match node:
            case Branch(_, ways):
                found.append(replace(node, ways=tuple(without(way, gone) for way in ways)))
            case Loop(_, parts):
                found.append(replace(node, parts=tuple(without(part, gone) for part in parts)))
            case _:
                found.append(node)
    return tuple(found)


CASES = {
    **{
        f"{n} slots": (product("bf16", (64, 64, 32), f"#[hint(stages = {n}, warps = {w})]"), 16)
        for n, w in ((2, 4), (3, 4), (4, 8), (5, 1))
    },
    "registers": (product("bf16", (64, 64, 32)), 1),
    "nested": (f"#[hint(stages = 3)]{NESTED}", 16),
}


@pytest.mark.parametrize("case", CASES)
def test_each_wait_group_and_barrier_is_missed(case: str) -> None:
    with staged(*CASES[case]) as (skeleton, warps):
        assert not list(problems_of(skeleton, warps=warps))
        needed = [n for n in nodes(skeleton) if isinstance(n, Barrier | Commit | Arrived)]
        for node in needed:
            found = list(problems_of(without(skeleton, node), warps=warps))
            assert found, f"nobody misses {node.op}"
        assert len(needed) >= (2 if case == "registers" else 5)


@pytest.mark.parametrize("more", [1, 2])
def test_a_wait_that_leaves_more_under_way_is_refused(more: int) -> None:
    def later(skeleton: Skeleton) -> Skeleton:
        found: list[Node] = []
        for node in skeleton:
            match node:
                case Arrived(op, pending) if pending:
                    found.append(Arrived(op, pending + more))
                case Branch(_, ways):
                    found.append(replace(node, ways=tuple(map(later, ways))))
                case Loop(_, parts):
                    found.append(replace(node, parts=tuple(map(later, parts))))
                case _:
                    found.append(node)
        return tuple(found)

    with staged(*CASES["4 slots"]) as (skeleton, warps):
        problems = list(problems_of(later(skeleton), warps=warps))
        assert any("nobody has waited for" in str(one) for one in problems)


def test_slots_are_told_apart() -> None:
    """A turn reads one slot, and the first of the next, while copies go to others: one barrier a
    turn is enough."""
    with staged(*CASES["3 slots"]) as (skeleton, _):
        [loop] = [node for node in nodes(skeleton) if isinstance(node, Loop)]
        inside = list(nodes(loop.parts[0]))
        assert sum(isinstance(node, Barrier) for node in inside) == 1
        touches = [node for node in inside if isinstance(node, Touch)]
        assert {(node.is_async, node.writes, node.slot) for node in touches} == {
            (True, True, 2), (False, False, 0), (False, False, 1),
        }  # fmt: skip


def test_were_slots_filled_too_early_nobody_could_order_it() -> None:
    """Copies into the slot that is read."""
    with staged(*CASES["3 slots"]) as (skeleton, warps):
        [loop] = [node for node in nodes(skeleton) if isinstance(node, Loop)]
        moved = tuple(
            replace(node, slot=0) if isinstance(node, Touch) and node.is_async else node
            for node in loop.parts[0]
        )
        broken = replace(loop, parts=(moved,))
        assert list(problems_of(_with(skeleton, loop, broken), warps=warps))


def _with(skeleton: Skeleton, old: Node, new: Node) -> Skeleton:
    found: list[Node] = []
    for node in skeleton:
        match node:
            case _ if node is old:
                found.append(new)
            case Branch(_, ways):
                found.append(replace(node, ways=tuple(_with(way, old, new) for way in ways)))
            case _:
                found.append(node)
    return tuple(found)
