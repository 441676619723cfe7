"""One launch by a kernel's name: the instance that fits the arguments, then every program of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir

from tilec.interpret.candidates import Candidate, check_unambiguous
from tilec.interpret.contract import DTYPES, BrokenContract, Parameter, bind, parameters_of
from tilec.interpret.memory import Array, Observer
from tilec.interpret.npy import as_parameter, read_npy
from tilec.interpret.run import check_launch, run_kernel

# How the tensors are held that a launch may write as any other memory.
WRITTEN = ("mut", "part")


@dataclass(frozen=True)
class Chosen:
    """An instance whose contract holds, with its arguments: copies, or zeros."""

    function: ir.OpView
    arguments: Mapping[str, Any]
    unset: frozenset[str]  # the outputs among the zeros

    @property
    def tensors(self) -> dict[str, Array]:
        """The arguments that are tensors."""
        return {k: v for k, v in self.arguments.items() if isinstance(v, np.ndarray)}

    @property
    def sizes(self) -> str:
        """The extents and scalars, for reading: `N = 4, M = 2, s = -1`."""
        _, dims = bind(parameters_of(self.function), self.arguments)
        scalars = {k: v for k, v in self.arguments.items() if k not in self.tensors}
        return ", ".join(f"{name} = {value}" for name, value in {**dims, **scalars}.items())


def choose(
    module: ir.Module, name: str, given: Mapping[str, Any], beside: Sequence[str] = ()
) -> Chosen:
    """The instance to run, and what to run it on.

    `name` is a kernel's, and then the first instance whose contract holds is chosen, or an
    instance's symbol. A tensor that is not given is zeros, where the others bind its extents.
    `beside` is what else may be run, for who looks for it.

    Raises:   BrokenContract if no instance fits, or several of different types
    """
    instances = _instances(module, name)
    if not instances:
        names = [*map(symbol_of, kernels_of(module)), *beside]
        known = ", ".join(f"`{one}`" for one in names) or "none"
        raise BrokenContract(f"there is no kernel `{name}`; there is {known}")
    reasons: list[str] = []
    found: dict[Candidate, Chosen] = {}
    for function in instances:
        parameters = parameters_of(function)
        candidate = Candidate(symbol_of(function), parameters, _types_of(function))
        if any(one.types == candidate.types for one in found):
            continue
        arguments = fitted(parameters, given)
        try:
            check_launch(function, arguments)
        except BrokenContract as broken:
            reasons.append(f"`{symbol_of(function)}`: {broken}")
            continue
        outputs = {p.name for p in parameters if p.own in WRITTEN}
        found[candidate] = Chosen(function, arguments, frozenset(outputs - given.keys()))
    if not found:
        raise BrokenContract("; ".join(reasons))
    check_unambiguous(name, [*found], given)
    return next(iter(found.values()))


def launch(chosen: Chosen, observer: Observer | None = None) -> dict[str, Array]:
    """Run a chosen instance and give every tensor as it is afterwards.

    Raises:   BrokenContract if what the program claims (`assert!`) does not hold
    """
    run_kernel(chosen.function, chosen.arguments, observer=observer)
    return chosen.tensors


def read_arguments(
    given: Mapping[str, bytes | int | float | bool], files: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments, those in bytes as arrays; `files` are the names of the files they are of.

    Raises:   BrokenContract if one is no `.npy` file
    """
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        try:
            arguments[name] = read_npy(value) if isinstance(value, bytes) else value
        except ValueError as error:
            file = f"`{files[name]}`: " if name in files else ""
            said = f"{file}the file for `{name}` holds no array: {error}"
            raise BrokenContract(said) from error
    return arguments


def tensor_named(tensors: Mapping[str, Array], name: str) -> Array:
    """One of the tensors of what ran. Raises BrokenContract if there is none of this name."""
    if name not in tensors:
        raise BrokenContract(f"there is no tensor `{name}`")
    return tensors[name]


def changes(before: Mapping[str, Any], after: Mapping[str, Array]) -> str:
    """The tensors that were not given or are different afterwards, for reading."""
    lines = []
    for name, array in after.items():
        given = before.get(name)
        if not isinstance(given, np.ndarray) or given.tobytes() != array.tobytes():
            shape = "×".join(map(str, array.shape)) or "no axes"
            lines.append(f"{name} ({array.dtype}, {shape}):\n{array}")
    return "\n".join(lines)


def _instances(module: ir.Module, name: str) -> list[ir.OpView]:
    kernels = kernels_of(module)
    exact = [function for function in kernels if symbol_of(function) == name]
    return exact or [f for f in kernels if symbol_of(f).partition("__")[0] == name]


def kernels_of(module: ir.Module) -> list[ir.OpView]:
    """The instances of the kernels of a module."""
    return [op for op in module.body.operations if "tile.kernel" in op.attributes]


def _types_of(function: ir.OpView) -> tuple[tuple[str, str], ...]:
    """The types that stand for a kernel's generics."""
    items = [ir.DictAttr(item) for item in ir.ArrayAttr(function.attributes["tile.generics"])]
    named = [(ir.StringAttr(item["name"]).value, item["value"]) for item in items]
    return tuple((name, v.value) for name, v in named if isinstance(v, ir.StringAttr))


def symbol_of(function: ir.OpView) -> str:
    """The symbol of an instance."""
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def fitted(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the arguments, with the types that their files could not name, and zeros.

    A tensor whose extents are not known from the others is left out.
    """
    arguments = dict(given)
    dims: dict[str, int] = {}
    for parameter in parameters:
        argument = as_parameter(parameter, given.get(parameter.name))
        if not isinstance(argument, np.ndarray) or parameter.extents is None:
            continue
        arguments[parameter.name] = argument.copy()
        dims.update(_named(parameter, argument))
    for parameter in parameters:
        if parameter.name in arguments or parameter.extents is None:
            continue
        shape = [dims.get(e, -1) if isinstance(e, str) else e for e in parameter.extents]
        if all(extent >= 0 for extent in shape):
            arguments[parameter.name] = np.zeros(shape, DTYPES[parameter.element])
    return arguments


def _named(parameter: Parameter, array: Array) -> dict[str, int]:
    pairs = zip(parameter.extents or (), array.shape, strict=False)
    return {extent: got for extent, got in pairs if isinstance(extent, str)}
