"""Units: variants of one instance that become PTX by themselves, side by side in child processes.

An instance has two: the variants that ask something of tensors, and the one that asks nothing; the
first only where it may gain something by that (`codegen/wide_accesses.py`). What a unit becomes
depends on nothing beside it, so however many are made at a time, PTX is the same.

A child is a copy of this process with the instance in it. What fails in one is done again here,
where an error says what it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from mlir import ir

from tilec.children import Crashed, run_in_children
from tilec.codegen.lower_tiles import gpu_module
from tilec.codegen.ptx import lower_to_llvm, ptx_of
from tilec.codegen.size import TooLargeError
from tilec.codegen.verify_early import problems_of
from tilec.codegen.wide_accesses import gains_by_wide_accesses
from tilec.ops.lowering import NoGpuCodeError
from tilec.shared_memory.plan_offsets import DoesNotFitError
from tilec.stages import Spent, add_spent, recording, stage
from tilec.target.description import Target
from tilec.variant import EntryPoint, Instance, lower_variant

# Processes for each of those that run at a time: more share the work better, and each costs a fork.
_SHARES = 4


@dataclass(frozen=True)
class Made:
    """The variants of a unit, the most demanding first, and their PTX; none may be left."""

    points: tuple[EntryPoint, ...]
    ptx: str


@dataclass(frozen=True)
class Unit:
    """Some variants of an instance: `lower` makes them the last functions of a block."""

    instance: Instance
    lower: Callable[[Instance, ir.Block, Target], tuple[EntryPoint, ...]]

    def made(self, target: Target, attribute: str) -> Made:
        """`attribute` is the target as MLIR's attribute, in text.

        Raises:   NoGpuCodeError; DoesNotFitError; TooLargeError
        """
        module, body = gpu_module("kernels", attribute)
        with stage("variants"):
            points = self.lower(self.instance, body, target)
        if not points:
            return Made((), "")
        with stage("to LLVM dialect"):
            lower_to_llvm(module)
        with stage("LLVM to PTX"):
            ptx = ptx_of(module)
        for point in points:
            if point.starts_early:
                problem = next(problems_of(ptx, point.symbol), None)
                assert problem is None, f"`{point.symbol}` starts early: {problem}"
        return Made(points, ptx)


def units_of(instance: Instance) -> tuple[Unit, ...]:
    asking_nothing = Unit(instance, _asking_nothing)
    if not gains_by_wide_accesses(instance.function):
        return (asking_nothing,)
    return Unit(instance, _asking), asking_nothing


def make_all(units: Sequence[Unit], target: Target, attribute: str, workers: int) -> list[Made]:
    """What becomes of each, `workers` at a time.

    Raises:   NoGpuCodeError; DoesNotFitError; TooLargeError
    """
    found: dict[int, Made] = {}
    if workers > 1 and len(units) > 1:
        with stage("variants"):
            for part in _by_children(units, target, attribute, workers):
                found |= part
    return [found.get(n) or unit.made(target, attribute) for n, unit in enumerate(units)]


@dataclass(frozen=True)
class _Answer:
    made: dict[int, Made] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)


def _by_children(
    units: Sequence[Unit], target: Target, attribute: str, workers: int
) -> Iterator[dict[int, Made]]:
    processes = min(len(units), _SHARES * workers)
    numbers = [range(first, len(units), processes) for first in range(processes)]
    jobs = [partial(_job, units, mine, target, attribute) for mine in numbers]
    for _, answer in run_in_children(jobs, workers):
        if isinstance(answer, Crashed):
            continue
        add_spent(answer.spent)
        yield answer.made


def _job(units: Sequence[Unit], numbers: Sequence[int], target: Target, attribute: str) -> _Answer:
    """Up to the first that fails."""
    made: dict[int, Made] = {}
    with recording() as spent:
        try:
            for number in numbers:
                made[number] = units[number].made(target, attribute)
        except (NoGpuCodeError, DoesNotFitError, TooLargeError):
            pass
    return _Answer(made, spent)


# ---- which variants there are --------------------------------------------------------------------


def _asking(instance: Instance, body: ir.Block, target: Target) -> tuple[EntryPoint, ...]:
    """Those that ask something; what turns out to ask nothing is erased."""
    symbol, widest = instance.description.symbol, target.access_bytes
    points = [lower_variant(instance, f"{symbol}__v{widest}", widest, body, target)]
    if points[0].tensor_maps and points[0].asks_more_than_factors:
        points.append(lower_variant(instance, f"{symbol}__tma", 1, body, target, has_roles=True))
    for point in list(points):
        if not (point.alignments or point.tensor_maps):
            _erase(body, point.symbol)
            points.remove(point)
    return tuple(points)


def _asking_nothing(instance: Instance, body: ir.Block, target: Target) -> tuple[EntryPoint, ...]:
    return (lower_variant(instance, instance.description.symbol, 1, body, target),)


def _erase(body: ir.Block, symbol: str) -> None:
    for op in body.operations:
        if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            op.operation.erase()
            return
    raise AssertionError(f"{symbol} was just lowered")
