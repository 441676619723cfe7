"""E0805: what a kernel asks for by `requires!` may hold for what a launch gives it.

Extents and scalars of the kernel are what the launch gives, in the pipeline's terms. Where these
are numbers, the condition is one too; where they are not, launchers check it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.artifact.expression import (
    DivisionByZero,
    Expression,
    TooLarge,
    divides_by_zero,
    evaluate,
    holds,
    names_in,
)
from tilec.artifact.signature import Parameter, Requirement
from tilec.diagnostics import Diagnostic, Label
from tilec.pipelines.traced import Traced, TracedLaunch


@dataclass(frozen=True)
class Contract:
    """What an instance of a kernel asks of those who launch it."""

    parameters: tuple[Parameter, ...]
    requires: tuple[Requirement, ...]


def check_contracts(pipeline: Traced, contracts: Mapping[str, Contract]) -> Iterator[Diagnostic]:
    """Yields E0805 for each launch of which no instance ever has what it asks for."""
    extents: dict[str, Sequence[Expression]] = {
        **{p.name: p.extents for p in pipeline.parameters if p.is_tensor},
        **{t.name: t.temporary.extents for t in pipeline.temporaries},
    }
    for launch in pipeline.launches:
        broken = [_broken(launch, contracts[symbol], extents) for symbol in launch.instances]
        first = broken[0]
        if first is not None and None not in broken:
            yield _refused(launch, *first)


def _broken(
    launch: TracedLaunch, contract: Contract, extents: Mapping[str, Sequence[Expression]]
) -> tuple[Requirement, dict[str, Expression]] | None:
    """A condition that does not hold, with the numbers that make it so; None if all may."""
    values = _values(launch, contract, extents)
    for requirement in contract.requires:
        numbers = {name: values[name] for name in names_in(requirement.expression)}
        if divides_by_zero(requirement.expression):
            return requirement, {}
        known = {n: v for n, v in numbers.items() if isinstance(v, bool | int | float)}
        if len(known) == len(numbers) and not holds(requirement.expression, known):
            return requirement, numbers
    return None


def _values(
    launch: TracedLaunch, contract: Contract, extents: Mapping[str, Sequence[Expression]]
) -> dict[str, Expression]:
    """What the kernel's `Dim`s and scalars are to the pipeline."""
    found: dict[str, Expression] = {}
    for given, parameter in zip(launch.given, contract.parameters, strict=True):
        argument = given.argument
        if argument.tensor is None:
            assert argument.value is not None, "a tensor or a scalar"
            found[parameter.name] = argument.value
            continue
        whole = extents[argument.tensor]
        axes = argument.axes or range(len(whole))
        for name, axis in zip(parameter.extents, axes, strict=True):
            # Of two that are to be equal, a number says more than a name.
            if isinstance(name, str) and not isinstance(found.get(name), int):
                found[name] = whole[axis]
    return found


def _why(expression: Expression, numbers: Mapping[str, Expression]) -> str:
    known = {n: v for n, v in numbers.items() if isinstance(v, bool | int | float)}
    if divides_by_zero(expression):
        return "divides by zero"
    try:
        evaluate(expression, known, total=False)
    except TooLarge:
        return "is too large to compute"
    except DivisionByZero:
        return "divides by zero"
    return "is false"


def _refused(
    launch: TracedLaunch, requirement: Requirement, numbers: Mapping[str, Expression]
) -> Diagnostic:
    listed = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    why = _why(requirement.expression, numbers) + (f" with {listed}" if listed else "")
    around = (Label(span, "in the pipeline that is called here") for span in launch.calls)
    return Diagnostic(
        "E0805",
        f"a precondition of `{launch.kernel}` is never met",
        (Label(launch.span, f"`{requirement.text}` {why}"), *around),
    )
