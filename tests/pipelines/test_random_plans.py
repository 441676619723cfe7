"""Plans of random pipelines, executed by NumPy: in orders that they allow, with temporaries where
they lie and memory that holds anything before, they do what is written.

Where a launch does not take what it is given, nothing of the pipeline is launched.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from launched_kernels import KERNELS, TEXT, Array, Refused
from random_programs import CONSTANTS, PARAMETERS, Made, Maker, poisoned

from tilec.compilation import Options
from tilec.driver import Front, front_end
from tilec.interpret.contract import BrokenContract
from tilec.interpret.pipeline import Ready, make_ready
from tilec.interpret.pipeline_run import order_of
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.sources import Sources

SIZES = (0, 1, 3, 16, 17, 40)
PIPELINES = 3
CALLS = 3


def arrays(random: Random, m: int, n: int) -> dict[str, Array]:
    noise = np.random.default_rng(random.randrange(2**32))
    extents = {"M": m, "N": n}
    return {
        name: np.array(noise.integers(-9, 9, [extents[one] for one in shape]), np.int32)
        for name, shape in PARAMETERS.items()
    }


def as_written(
    made: Made, tensors: dict[str, Array], k: int, constant: int, random: Random
) -> bool:
    """Whether every launch takes what it is given; what they do is done to the tensors."""
    try:
        made.run({**tensors, "new": poisoned(random)}, k, constant)
    except Refused:
        return False
    return True


def as_planned(ready: Ready, random: Random) -> None:
    """Every launch by its meaning, after all that it must come after."""
    ready.memory[:] = np.frombuffer(random.randbytes(len(ready.memory)), np.uint8)
    for number in order_of(ready.pipeline.launches, random.randrange(2**32)):
        launch = ready.launches[number]
        given = [launch.arguments[one.parameter] for one in launch.told.arguments]
        tensors = [one for one in given if isinstance(one, np.ndarray)]
        *count, c = given[len(tensors) :]
        KERNELS[launch.told.kernel].launch(tensors, count[0] if count else 0, c)


def check(made: Made, front: Front, random: Random) -> bool:
    """Whether a call is one that something is launched for."""
    constant, k = random.choice(CONSTANTS), random.choice((-1, 0, 1, 7))
    given = arrays(random, random.choice(SIZES), random.choice(SIZES))
    expected, again = ({n: a.copy() for n, a in given.items()} for _ in range(2))
    is_right = as_written(made, expected, k, constant, random)
    symbol = f"{made.name}__{constant}"
    try:
        ready = make_ready(front.pipelines, front.module, symbol, {**given, "k": k})
    except BrokenContract:
        assert not is_right, (made.text, given, k)
        return False
    if not is_right:  # what is dropped asks for nothing
        assert any(d.code == "W0803" for d in front.compiled.diagnostics), (made.text, given, k)
        return False
    # Nothing that is seen is made of what nobody wrote.
    as_written(made, again, k, constant, random)
    assert all(np.array_equal(again[name], expected[name]) for name in given), (made.text, k)
    for _ in range(3):
        for name, array in given.items():
            ready.tensors[name][...] = array
        as_planned(ready, random)
        assert all(np.array_equal(ready.tensors[n], expected[n]) for n in given), (made.text, k)
    return True


@pytest.mark.parametrize("seed", range(6))
def test_plans_do_what_is_written(seed: int) -> None:
    random = Random(seed)
    launched = 0
    while not launched:
        made: list[Made] = []
        for number in range(PIPELINES):
            made.append(Maker(f"p{number}", random, tuple(made)).made)
        text = TEXT + "".join(one.text for one in made)
        with context():
            front = front_end(Sources(SourceFile("case.tile", text), {}, {}, {}), Options())
            if front.compiled.is_refused or front.module is None:
                # Of temporaries that have no value, or numbers that are always wrong.
                codes = {d.code for d in front.compiled.diagnostics if d.code[0] == "E"}
                assert codes <= {"E0801", "E0805", "E0301"}, front.compiled.diagnostics
                continue
            calls = [check(one, front, random) for one in made for _ in range(CALLS)]
        launched += sum(calls)
