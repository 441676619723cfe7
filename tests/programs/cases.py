"""Every launch of the programs, written or generated: arguments, and what the CPU makes of them."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir

from tests.on_cpu import Compiled, compiled_text
from tests.programs.generate.write import programs
from tests.programs.table import TABLE, Entry, data
from tilec.artifact.signature import Parameter
from tilec.codegen.describe import generics_of, parameters_of

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One launch. `before` and `after` hold every tensor argument, `scalars` the rest."""

    symbol: str
    entry: Entry
    parameters: tuple[Parameter, ...]
    before: Mapping[str, np.ndarray]
    after: Mapping[str, np.ndarray]
    scalars: Mapping[str, Any]
    constants: Mapping[str, Any]  # the constant generics of the instance

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.is_written)

    def __str__(self) -> str:
        shapes = ", ".join(f"{name}{list(array.shape)}" for name, array in self.before.items())
        return f"{self.symbol} at {shapes}"


@contextmanager
def program(name: str) -> Iterator[Compiled]:
    """One of the programs."""
    with compiled_text(f"{name}.tile", text_of(name)) as found:
        yield found


def text_of(name: str) -> str:
    """The text of a program."""
    if name in programs():
        return programs()[name].text
    return (FOLDER / f"{name}.tile").read_text(encoding="utf-8")


def entries_of(name: str) -> Mapping[str, Entry]:
    """What is said of each kernel of a program."""
    return programs()[name].entries if name in programs() else TABLE[name]


def cases(name: str, found: Compiled, chosen: Collection[str] | None = None) -> Iterator[Case]:
    """Every launch of a program, executed; of the chosen kernels only, by symbol."""
    for symbol, function in found.kernels.items():
        if chosen is not None and symbol not in chosen:
            continue
        entry = entries_of(name)[ir.StringAttr(function.attributes["tile.name"]).value]
        for number, dims in enumerate(entry.dims):
            yield _case(found, symbol, entry, dims, _rng(f"{name} {symbol} {number}"))


def _rng(text: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(text.encode()))


def _case(
    found: Compiled,
    symbol: str,
    entry: Entry,
    dims: Mapping[str, int],
    rng: np.random.Generator,
) -> Case:
    before: dict[str, np.ndarray] = {}
    scalars: dict[str, Any] = {}
    parameters = parameters_of(found.kernels[symbol])
    for parameter in parameters:
        if parameter.is_tensor:
            kind = entry.data.get(parameter.name, "wide")
            shape = tuple(dims.get(e, e) if isinstance(e, str) else e for e in parameter.extents)
            before[parameter.name] = data(kind, parameter.element, shape, rng)
        else:
            scalars[parameter.name] = entry.scalars[parameter.name]
    after = {name: array.copy() for name, array in before.items()}
    found.run(symbol, {**after, **scalars})
    generics = generics_of(found.kernels[symbol])
    constants = {g.name: g.value for g in generics if g.kind == "const"}
    return Case(symbol, entry, parameters, before, after, scalars, constants)


def written() -> list[str]:
    """The files of this folder."""
    return sorted(path.stem for path in FOLDER.glob("*.tile"))


def names() -> list[str]:
    """Every program: written, or generated."""
    return [*written(), *programs()]
