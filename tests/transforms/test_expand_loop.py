"""Expanded loops compute the same: random bodies in random stages, executed on the CPU."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from mlir import ir

from tests.on_cpu import compiled_text
from tilec.interpret.run import run_kernel
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.schedule.graph import dependences_of
from tilec.schedule.problem import Problem, Task
from tilec.schedule.solve import list_schedule
from tilec.transforms.expand_loop import Stages, expand_loop, reorder_loop

TURNS = (0, 1, 2, 5)
CARRIED = "abc"


def _text(random: Random) -> str:
    """A loop of tiles that it carries, loads and computes, with steps of any size."""
    known, lines = [*CARRIED], ["let t0 = x.load::<4>([i]);"]
    known.append("t0")
    for number in range(1, random.randint(3, 7)):
        one, other = random.choice(known), random.choice(known)
        value = random.choice(
            (f"{one} + {other}", f"{one} * 0.5", f"{one}.max({other})", f"{one} - i as f32")
        )
        lines.append(f"let t{number} = {value};")
        known.append(f"t{number}")
    handed = {name: random.choice(known) for name in CARRIED}
    lines += [f"let n{name} = {value};" for name, value in handed.items()]
    lines += [f"{name} = n{name};" for name in CARRIED]
    body = "\n".join(lines)
    step = random.randint(1, 3)
    return f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<f32, 4>, 4>, x: &Tensor<f32, N>) {{
        let mut a = Tile::<f32, 4>::ones();
        let mut b = Tile::<f32, 4>::full(2.0);
        let mut c = Tile::<f32, 4>::zeros();
        for i in ({step}..N.div_ceil(4) + {step}).step_by({step}) {{
            {body}
        }}
        z.store(a + b.max(c) + c);
    }}"""


def _stages_of(loop: ir.OpView, random: Random) -> Stages | None:
    """Any that are allowed, and an order for them."""
    [body] = loop.regions[0].blocks
    nodes = [
        op
        for op in body.operations
        if op.operation.name.startswith("arith.") and any(is_tile(v) for v in op.results)
    ]
    dependences = tuple(dict.fromkeys(dependences_of(body, nodes, set())))
    stages = [random.randint(0, 1) for _ in nodes]
    for _ in nodes:
        for need in dependences:
            stages[need.target] = max(stages[need.target], stages[need.source])
    problem = Problem(tuple(Task(False, 1, 1) for _ in nodes), dependences, 1, 99, 1)
    order = list_schedule(problem, stages)
    if not nodes or order is None:
        return None
    late = frozenset(op.operation for op, stage in zip(nodes, stages, strict=True) if stage)
    return Stages(tuple(nodes[number] for number in order), late)


def _results(function: ir.OpView) -> list[np.ndarray]:
    found = []
    for turns in TURNS:
        z, x = np.zeros(4, np.float32), np.arange(4 * turns, dtype=np.float32)
        run_kernel(function, {"z": z, "x": x})
        found.append(z)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_an_expanded_loop_computes_the_same(seed: int) -> None:
    random = Random(seed)
    with compiled_text("k.tile", _text(random)) as found:
        [function] = found.kernels.values()
        wanted = _results(function)
        [loop] = [op for op in operations(function) if op.operation.name == "scf.for"]
        chosen = _stages_of(loop, random)
        if chosen is None:
            return
        stages = chosen
        with function.location:
            if stages.second:
                expand_loop(loop, stages)
            else:
                reorder_loop(loop, stages.order)
        assert function.operation.verify()
        np.testing.assert_array_equal(_results(function), wanted)
