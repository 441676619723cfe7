"""The dynamic checker against the proofs: does a launch deny what they say of a kernel.

`python -m tests.proofs.adversary --count 10000 --seed 1` makes that many random kernels, launches
each at several small sizes, and prints what there was and what disagrees.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from mlir import ir

from tests.proofs.observed import (
    Launch,
    Observed,
    Place,
    kernel_of,
    observe,
    observed_launch,
    shapes_of,
)
from tests.proofs.random_kernels import random_kernel
from tilec.artifact.expression import Expression, holds
from tilec.children import Crashed, run_in_children
from tilec.driver import warm_up
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.interpret.contract import parameters_of
from tilec.interpret.memory import Array
from tilec.interpret.sanitize import Program
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.transforms.inline_helpers import inline_helpers

__all__ = ["Launch", "Observed", "Place", "disagreements", "observe"]


# Witnesses with larger tensors are not tried.
MOST_ELEMENTS = 1 << 20


class Verdict(Enum):
    """What the proofs say of the bounds of an access."""

    PROVED = "proved"
    LAUNCH_CHECKED = "launch-checked"
    IN_KERNEL = "in-kernel"
    NEVER_INSIDE = "never inside"
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Witness:
    """Sizes at which two programs are said to meet at an element."""

    launch: Launch
    programs: tuple[Program, Program]
    tensor: str
    element: tuple[int, ...]


@dataclass(frozen=True)
class Refusal:
    """One error of the proofs."""

    code: str
    line: int
    witness: Witness | None = None


@dataclass(frozen=True)
class Said:
    """What the proofs say of a kernel: its accesses by place, and its errors."""

    verdicts: Mapping[Place, Verdict] = field(default_factory=dict)
    refusals: Sequence[Refusal] = ()
    # On what launch-checked accesses are inside, by place.
    conditions: Mapping[Place, Sequence[Expression]] = field(default_factory=dict)


# The proofs, asked of a module that was emitted from these sources and not changed since.
Verifier = Callable[[ir.Module, Mapping[str, SourceFile]], Said]


def disagreements(
    module: ir.Module,
    verdicts: Mapping[Place, Verdict],
    refusals: Sequence[Refusal],
    seen: Observed | None = None,
) -> list[str]:
    """What the proofs say of a kernel and its launches deny; empty if they agree.

    Of accesses: `verdicts` by place. `seen` is what `observe` gave, if that is known already.
    """
    seen = observe(module) if seen is None else seen
    return [
        *_unnoticed_races(seen, refusals),
        *_wrong_bounds(seen, verdicts),
        *_wrong_errors(seen, refusals),
        *_wrong_witnesses(module, refusals),
    ]


def _unnoticed_races(seen: Observed, refusals: Sequence[Refusal]) -> Iterator[str]:
    """(a) A race that happened, and the kernel was not refused for one."""
    if any(refusal.code in ("E0501", "E0502") for refusal in refusals):
        return
    for race in seen.races:
        yield f"a race was not found: {race}"


def _wrong_bounds(seen: Observed, verdicts: Mapping[Place, Verdict]) -> Iterator[str]:
    """(b) An access that was proved inside and was not; (c) one never inside that was."""
    for (line, column), verdict in verdicts.items():
        access = seen.accesses.get((line, column))
        if access is None:
            continue
        if verdict is Verdict.PROVED and access.outside:
            yield f"proved inside, at {line}:{column}, but outside at {access.outside_at}"
        if verdict is Verdict.NEVER_INSIDE and access.inside:
            yield f"never inside, at {line}:{column}, but inside at {access.inside_at}"


def _wrong_errors(seen: Observed, refusals: Sequence[Refusal]) -> Iterator[str]:
    """(c) E0601 of a line all of whose accesses were inside."""
    for refusal in refusals:
        if refusal.code != "E0601":
            continue
        there = [access for (line, _), access in seen.accesses.items() if line == refusal.line]
        if there and all(access.inside for access in there):
            yield f"E0601 in line {refusal.line}, but inside at {there[0].inside_at}"


def _wrong_witnesses(module: ir.Module, refusals: Sequence[Refusal]) -> Iterator[str]:
    """(d) A witness whose sizes do not show the race."""
    for refusal in refusals:
        found = refusal.witness
        if found is None or not is_small(module, found.launch):
            continue
        if not reproduces(module, refusal.code, found):
            yield f"{refusal.code} in line {refusal.line}: no such race as {found}"


@dataclass
class _Meeting:
    """An observer of one element: how each of two programs touched it."""

    tensor: str
    element: int
    kinds: dict[Program, set[bool]]  # whether it wrote
    program: Program = ()

    def starts(self, program: Program) -> None:
        self.program = _without_zeros(program)

    def touched(
        self, op: ir.OpView, tensor: str, elements: Array, *, written: bool, **_: Any
    ) -> None:
        if tensor == self.tensor and self.program in self.kinds and self.element in elements:
            self.kinds[self.program].add(written)


def _without_zeros(program: Program) -> Program:
    """The program's index without zeros at its end, which axes that a grid lacks have too."""
    while program and program[-1] == 0:
        program = program[:-1]
    return program


def is_small(module: ir.Module, launch: Launch) -> bool:
    """Whether a launch is no larger than what can be run."""
    shapes = shapes_of(parameters_of(kernel_of(module)), launch).values()
    return all(prod(shape) <= MOST_ELEMENTS for shape in shapes)


def reproduces(module: ir.Module, code: str, witness: Witness) -> bool:
    """Whether at the witness's sizes its programs meet at its element, as its code says."""
    function = kernel_of(module)
    shape = shapes_of(parameters_of(function), witness.launch)[witness.tensor]
    one, other = map(_without_zeros, witness.programs)
    if one == other or any(not 0 <= i < n for i, n in zip(witness.element, shape, strict=True)):
        return False
    element = int(np.ravel_multi_index(witness.element, shape)) if shape else 0
    meeting = _Meeting(witness.tensor, element, {one: set(), other: set()})
    if not observed_launch(function, witness.launch, meeting):
        return False
    kinds = meeting.kinds[one], meeting.kinds[other]
    if code == "E0501":
        return all(True in kind for kind in kinds)
    return any(True in a and False in b for a, b in (kinds, kinds[::-1]))


# ---- many random kernels -------------------------------------------------------------------------

# Launches that are looked through for some that meet the conditions of accesses.
LAUNCHES_TRIED = 40

# Of work on one kernel; it is then given up.
MOST_SECONDS = 20


@dataclass(frozen=True)
class Trials:
    """What came of some random kernels: counts by what is counted, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Trials) -> Trials:
        return Trials(self.counts + other.counts, self.wrong + other.wrong)


def trial(seed: int, verifier: Verifier | None) -> Trials:
    """One random kernel, launched and asked about; needs a current context."""
    kernel = random_kernel(seed)
    program, found = load_program(SourceFile("random.tile", kernel.text), parse)
    instances, more = ((), ()) if found else check_program(program)
    if found or more:
        return Trials(Counter({"kernels": 1, "not typed": 1}))
    module = emit(instances, program.sources)
    inline_helpers(module)
    seen = observe(module, kernel.launches())
    counts = Counter(
        {
            "kernels": 1,
            "launches": seen.launches,
            "with races": bool(seen.races),
            "accesses": len(seen.accesses),
            "accesses always inside": sum(not a.outside for a in seen.accesses.values()),
            "accesses never inside": sum(not a.inside for a in seen.accesses.values()),
        }
    )
    if verifier is None:
        return Trials(counts)
    said = verifier(module, program.sources)
    wrong = disagreements(module, said.verdicts, said.refusals, seen)
    tried = list(islice(kernel.launches(), LAUNCHES_TRIED))
    met = {place: _meeting(conditions, tried) for place, conditions in said.conditions.items()}
    # The accesses of one kernel mostly have the same conditions.
    shown = {
        launches: observe(module, [tried[n] for n in launches])
        for launches in set(met.values())
        if launches
    }
    for place, launches in met.items():
        wrong += _wrong_condition(place, shown[launches]) if launches else ()
    counts["with launches that meet conditions"] = bool(shown)
    return Trials(counts + _counted(said, seen), tuple(_shown(seed, text) for text in wrong))


def _meeting(conditions: Sequence[Expression], tried: Sequence[Launch]) -> tuple[int, ...]:
    """The numbers of the launches that meet all conditions."""
    return tuple(
        number
        for number, launch in enumerate(tried)
        if all(holds(condition, {**launch.dims, **launch.scalars}) for condition in conditions)
    )


def _wrong_condition(place: Place, seen: Observed) -> Iterator[str]:
    """(e) An access that is outside in a launch that meets its conditions."""
    access = seen.accesses.get(place)
    if access is not None and access.outside:
        yield f"launch-checked, at {place[0]}:{place[1]}, but outside at {access.outside_at}"


def _shown(seed: int, text: str) -> str:
    return f"seed {seed}: {text}\n{random_kernel(seed).text}"


def _counted(said: Said, seen: Observed) -> Counter[str]:
    races = [r for r in said.refusals if r.code in ("E0501", "E0502")]
    return Counter(
        {
            "refused for races": bool(races),
            "refused for races, and no launch raced": bool(races) and not seen.races,
            "refused without a witness": any(r.witness is None for r in races),
            "refused for bounds": any(r.code == "E0601" for r in said.refusals),
            **Counter(f"accesses {verdict.value}" for verdict in said.verdicts.values()),
        }
    )


def trials(seeds: Sequence[int], verifier: Verifier | None, jobs: int = 1) -> Trials:
    """The random kernels of these seeds, each in a process of its own: some may never end."""
    # Tables that parsing fills as it goes are then inherited.
    warm_up(Sources(SourceFile("random.tile", random_kernel(seeds[0]).text), {}, {}, {}))
    done = Trials()
    children = [partial(_trial_alone, seed, verifier) for seed in seeds]
    for number, answer in run_in_children(children, jobs):
        done += answer if isinstance(answer, Trials) else _crashed(seeds[number], answer)
    return done


def _trial_alone(seed: int, verifier: Verifier | None) -> Trials:
    # Nobody handles this signal, so that it ends the process whatever it is at.
    signal.alarm(MOST_SECONDS)
    with context():
        return trial(seed, verifier)


def _crashed(seed: int, crash: Crashed) -> Trials:
    if "SIGALRM" in crash.reason:
        return Trials(Counter({"kernels": 1, "out of time": 1, f"out of time: seed {seed}": 1}))
    return Trials(Counter({"kernels": 1}), (_shown(seed, f"failed: {crash.reason}"),))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many kernels")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first; others follow")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    given = parser.parse_args()
    # Here, since it imports this module.
    from tests.proofs.verifier import verify

    started = time.monotonic()
    seeds = range(given.seed, given.seed + given.count)
    done = trials(seeds, verify, given.jobs)
    print(f"seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - started:.0f} s")
    for name, count in sorted(done.counts.items()):
        print(f"{count:>9} {name}")
    print(f"{len(done.wrong):>9} disagreements")
    for text in done.wrong:
        print(text, file=sys.stderr)
    return min(len(done.wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
