"""Instances that fit a launch, where more than one does.

Those that differ in constants alone compute the same, and the first of them is as good as any. Of
those that differ in types only one is what the caller means, and where no argument says which, the
caller is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilec.interpret.contract import BrokenContract, Parameter

Types = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Candidate:
    """An instance by its symbol, with its parameters and the types of its generics by name."""

    symbol: str
    parameters: tuple[Parameter, ...]
    generics: Types

    @property
    def types(self) -> Types:
        """What tells it from an instance that computes something else."""
        return (*((p.name, p.element) for p in self.parameters), *self.generics)


def check_unambiguous(name: str, fitting: Sequence[Candidate], given: Mapping[str, Any]) -> None:
    """Raises:   BrokenContract where candidates of several types fit; `given` are the arguments"""
    if len({one.types for one in fitting}) < 2:
        return
    first, *others = fitting
    differing = [
        parameter.name
        for place, parameter in enumerate(first.parameters)
        if any(other.parameters[place].element != parameter.element for other in others)
    ]
    generics = [
        n for n, value in first.generics if any((n, value) not in o.generics for o in others)
    ]
    of = f"the type of {_listed(differing)}" if differing else _listed(generics)
    missing = [one for one in differing if one not in given]
    give = f", or give {_listed(missing)}" if missing else ""
    raise BrokenContract(
        f"several instances of `{name}` fit, and no argument says {of}: "
        f"{_listed([one.symbol for one in fitting])}; name one of them instead of `{name}`{give}"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
