"""The kernel library and the programs of `tests/programs`, thread by thread.

Every kernel at its small launches, in the variant for any address and the aligned one in turn: the
GPU tests run the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from lowered import ALIGNED, ANY, Program, program
from simt import GivenUp

from tests.gpu.distance import distance
from tests.kernels.cases import KERNELS, Problem, problems
from tests.kernels.test_on_cpu import _array, _bits, values_of
from tests.kernels.twins import some_tiles
from tests.programs import cases as corpus
from tests.programs.generate.write import programs

LIBRARY = Path(__file__).parent.parent.parent / "kernels"
LARGEST = 3000  # elements of a tensor; a block of threads takes about 10 ms
TILE = 2048
LAUNCHES = 2  # of each instance of the library; of the programs, which have many instances, one
EACH = 20  # of the generated kernels, one in so many
TARGETS = ("sm_90a", "sm_80")
STEPS = 20_000  # operations of a launch: about half a second


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernel(name: str) -> None:
    text = some_tiles((LIBRARY / f"{name}.tile").read_text(encoding="utf-8"), 3)
    with program(text) as threads:
        mine = [symbol for symbol in _small_instances(name) if symbol in threads.instances]
        for turn, symbol in enumerate(mine):
            for number, problem in enumerate(_small(symbol)):
                _run_kernel(threads, problem, (ANY, ALIGNED)[(turn + number) % 2])


def _small_instances(name: str) -> list[str]:
    """Those in tiles of up to `TILE` elements a row, and the smallest: larger ones are more of
    the same."""
    instances = KERNELS[name].instances
    most = max(TILE, min(block for _, _, block in instances))
    return [f"{name}__{suffix}" for suffix, _, block in instances if block <= most]


def _small(symbol: str) -> list[Problem]:
    found = []
    for problem in problems(symbol):
        sizes = [np.size(getattr(a, "values", 0)) for a in problem.arguments.values()]
        if max(sizes) <= LARGEST:
            found.append(problem)
    return found[-LAUNCHES:]


def _run_kernel(threads: Program, problem: Problem, vector_bytes: int) -> None:
    arrays = {name: _array(argument) for name, argument in problem.arguments.items()}
    threads.run(problem.symbol, arrays, vector_bytes)
    fault = problem.fault_of(values_of(problem, arrays))
    assert fault is None, fault


@pytest.mark.parametrize("name", corpus.written())
def test_program(name: str) -> None:
    """Every kernel: of its instances every second one."""
    done: set[str] = set()
    text = corpus.text_of(name)
    with corpus.program(name) as found:
        chosen = _every_second(found.kernels)
        with program(text, chosen=chosen, name=f"{name}.tile") as threads:
            for case in corpus.cases(name, found, chosen):
                if _largest(case) <= LARGEST and case.symbol not in done:
                    done.add(case.symbol)
                    # The fast form of loops around products is for aligned tensors.
                    of_loop = name.startswith("dot_")
                    _run_case(threads, case, ALIGNED if of_loop else (ANY, ALIGNED)[len(done) % 2])


@pytest.mark.parametrize("name", [name for name in corpus.written() if "dot_" in name])
def test_loop_around_products_of_an_older_target(name: str) -> None:
    """A few of them, as what has no asynchronous products."""
    text = corpus.text_of(name)
    with corpus.program(name) as found:
        chosen = list(found.kernels)[1::4]
        options = {"target": TARGETS[1], "chosen": chosen, "name": f"{name}.tile"}
        with program(text, **options) as threads:
            first: dict[str, corpus.Case] = {}
            for case in corpus.cases(name, found, chosen):
                first.setdefault(case.symbol, case)
            for case in first.values():
                _run_case(threads, case, ALIGNED)


@pytest.mark.parametrize("name", sorted(programs()))
def test_generated_program(name: str) -> None:
    """A few of its kernels: by turns as this and an older target has them."""
    turn = crc32(name.encode()) % EACH
    target = TARGETS[turn % len(TARGETS)]
    text = corpus.text_of(name)
    with corpus.program(name) as found:
        chosen = list(found.kernels)[turn::EACH]
        with program(text, target=target, chosen=chosen, name=f"{name}.tile") as threads:
            for case in corpus.cases(name, found, chosen):
                if _largest(case) <= LARGEST:
                    _run_case(threads, case, (ANY, ALIGNED)[turn % 2])


def _every_second(symbols: Iterable[str]) -> list[str]:
    """Of the instances of each kernel: the first, the third, and so on."""
    by_kernel: dict[str, list[str]] = {}
    for symbol in symbols:
        by_kernel.setdefault(symbol.partition("__")[0], []).append(symbol)
    return [symbol for own in by_kernel.values() for symbol in own[::2]]


def _largest(case: corpus.Case) -> int:
    return max((array.size for array in case.before.values()), default=0)


def _run_case(threads: Program, case: corpus.Case, vector_bytes: int) -> None:
    arrays = {name: array.copy() for name, array in case.before.items()}
    try:
        threads.run(case.symbol, {**arrays, **case.scalars}, vector_bytes, steps=STEPS)
    except GivenUp:
        return
    elements = {parameter.name: parameter.element for parameter in case.parameters}
    for name, wanted in case.after.items():
        steps = distance(_bits(arrays[name]), _bits(wanted), elements[name])
        assert (steps <= case.entry.ulps).all(), f"`{name}` of {case}, {vector_bytes} bytes"
