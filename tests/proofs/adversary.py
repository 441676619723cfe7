"""The dynamic checker against the proofs: does a launch deny what they say of a kernel.

`python -m tests.proofs.adversary --count 10000 --seed 1` makes that many random kernels, launches
each at several small sizes, and prints what there was and what disagrees.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
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
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.interpret.contract import parameters_of
from tilec.interpret.memory import Array
from tilec.interpret.sanitize import Program
from tilec.ir.dialect import context
from tilec.source import SourceFile

__all__ = ["Launch", "Observed", "Place", "disagreements", "observe"]


class Verdict(Enum):
    """What the proofs say of the bounds of an access."""

    PROVED = "proved"
    LAUNCH_CHECKED = "launch-checked"
    IN_KERNEL = "in-kernel"
    NEVER_INSIDE = "never inside"


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
        if refusal.witness is not None and not reproduces(module, refusal.code, refusal.witness):
            yield f"{refusal.code} in line {refusal.line}: no such race as {refusal.witness}"


@dataclass
class _Meeting:
    """An observer of one element: how each of two programs touched it."""

    tensor: str
    element: int
    kinds: dict[Program, set[bool]]  # whether it wrote
    program: Program = ()

    def starts(self, program: Program) -> None:
        self.program = program

    def touched(
        self, op: ir.OpView, tensor: str, elements: Array, *, written: bool, **_: Any
    ) -> None:
        if tensor == self.tensor and self.program in self.kinds and self.element in elements:
            self.kinds[self.program].add(written)


def reproduces(module: ir.Module, code: str, witness: Witness) -> bool:
    """Whether at the witness's sizes its programs meet at its element, as its code says."""
    function = kernel_of(module)
    shape = shapes_of(parameters_of(function), witness.launch)[witness.tensor]
    one, other = witness.programs
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

VERIFIER: Verifier | None = None
CHUNK = 50


@dataclass(frozen=True)
class Trials:
    """What came of some random kernels: counts by what is counted, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Trials) -> Trials:
        return Trials(self.counts + other.counts, self.wrong + other.wrong)


def trials(seeds: Sequence[int], verifier: Verifier | None = VERIFIER) -> Trials:
    """The random kernels of these seeds, each launched and asked about."""
    with context():
        return sum((trial(seed, verifier) for seed in seeds), Trials())


def trial(seed: int, verifier: Verifier | None) -> Trials:
    """One random kernel; needs a current context."""
    kernel = random_kernel(seed)
    program, found = load_program(SourceFile("random.tile", kernel.text), parse)
    instances, more = ((), ()) if found else check_program(program)
    if found or more:
        return Trials(Counter({"kernels": 1, "not typed": 1}))
    module = emit(instances, program.sources)
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
    counts += _counted(said, seen)
    wrong = disagreements(module, said.verdicts, said.refusals, seen)
    return Trials(counts, tuple(f"seed {seed}: {text}\n{kernel.text}" for text in wrong))


def _counted(said: Said, seen: Observed) -> Counter[str]:
    codes = {refusal.code for refusal in said.refusals}
    races = [r for r in said.refusals if r.code in ("E0501", "E0502")]
    return Counter(
        {
            "refused for races": bool(races),
            "refused, and no launch raced": bool(races) and not seen.races,
            "refused without a witness": any(r.witness is None for r in races),
            "refused for bounds": "E0601" in codes,
            **Counter(f"accesses {verdict.value}" for verdict in said.verdicts.values()),
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many kernels")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first; others follow")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    given = parser.parse_args()
    started = time.monotonic()
    seeds = range(given.seed, given.seed + given.count)
    chunks = [seeds[i : i + CHUNK] for i in range(0, given.count, CHUNK)]
    with ProcessPoolExecutor(given.jobs) as pool:
        done = sum(pool.map(partial(trials, verifier=VERIFIER), chunks), Trials())
    print(f"seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - started:.0f} s")
    for name, count in done.counts.items():
        print(f"{count:>9} {name}")
    if VERIFIER is not None:
        print(f"{len(done.wrong):>9} disagreements")
    for text in done.wrong:
        print(text, file=sys.stderr)
    return min(len(done.wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
