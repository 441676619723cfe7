"""How a function of Rust takes the parameters of its instances, and which element types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.artifact.signature import Parameter
from tilec.emit.rust.text import parameter_names
from tilec.emit.scalars import scalar_for
from tilec.emit.sets import Choice, LaunchSet, choices_of

_ELEMENTS = {
    "bool": "bool", "i8": "i8", "u8": "u8", "f8e4m3": "F8E4M3", "f8e5m2": "F8E5M2", "i16": "i16",
    "u16": "u16", "f16": "F16", "bf16": "BF16", "i32": "i32", "u32": "u32", "f32": "f32",
    "i64": "i64", "u64": "u64", "f64": "f64", "usize": "usize",
}  # fmt: skip
_REALS = frozenset({"f32", "f64"})
_WHOLES = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize"})


@dataclass(frozen=True)
class Argument:
    """One argument: its name, the type of its elements (maybe a generic) or of the number, and the
    parameter that it is for."""

    name: str
    rust_type: str
    parameter: Parameter

    def passing_of(self, given: str) -> str:
        """What passes on a value of this argument that is called so."""
        if self.parameter.is_tensor:
            return f"Argument::tensor(&{given}.raw)"
        if self.rust_type == "bool":
            return f"Argument::truth({given})"
        if self.rust_type in _REALS:
            return f"Argument::real({given})"
        if self.rust_type in _WHOLES:
            return f"Argument::whole({given}{' as i128' if self.rust_type == 'usize' else ''})"
        return f"Argument::number({given})"


@dataclass(frozen=True)
class Signature:
    """`generics` are the names of the generic types, of which `numbers` are types of numbers;
    `combinations` what all of them may be at one time, and what is launched then."""

    arguments: tuple[Argument, ...]
    generics: tuple[str, ...]
    numbers: tuple[str, ...]
    combinations: Mapping[tuple[str, ...], LaunchSet]

    @property
    def launched(self) -> list[LaunchSet]:
        """What functions of it launch: several where the types of numbers say which."""
        return list({one.name: one for one in self.combinations.values()}.values())


def signature_of(launched: LaunchSet) -> Signature:
    """The arguments of a function.

    Numbers that are of one kind in all instances have the type that holds all of these; others are
    generic, and say with the tensors which instances are meant.
    """
    parameters = launched.kernels[0].parameters
    shared = [_shared_type(launched, i) for i in range(len(parameters))]
    if any(one is None and not p.is_tensor for one, p in zip(shared, parameters, strict=True)):
        return _signature(parameters, choices_of(launched, _type))
    choices = [
        Choice(
            tuple(
                one or _type(parameter)
                for one, parameter in zip(shared, kernel.parameters, strict=True)
            ),
            (kernel,),
            launched,
        )
        for kernel in launched.kernels
    ]
    return _signature(parameters, choices)


def _signature(parameters: Sequence[Parameter], choices: Sequence[Choice]) -> Signature:
    columns = list(zip(*(choice.types for choice in choices), strict=True))
    varying = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    names = ["T"] if len(varying) == 1 else [f"T{i}" for i in range(len(varying))]
    generics = dict(zip(varying, names, strict=True))
    called = parameter_names([parameter.name for parameter in parameters])
    arguments = [
        Argument(name, generics.get(column, column[0]), parameter)
        for name, column, parameter in zip(called, columns, parameters, strict=True)
    ]
    numbers = {one.rust_type for one in arguments if not one.parameter.is_tensor}
    combinations = {
        tuple(column[i] for column in varying): choice.launched for i, choice in enumerate(choices)
    }
    return Signature(
        tuple(arguments), tuple(names), tuple(n for n in names if n in numbers), combinations
    )


def _shared_type(launched: LaunchSet, position: int) -> str | None:
    """What all instances take for a number of one kind."""
    parameters = [kernel.parameters[position] for kernel in launched.kernels]
    if parameters[0].is_tensor:
        return None
    return scalar_for(parameter.element for parameter in parameters)


def _type(parameter: Parameter) -> str:
    """What an instance takes for a parameter: a type of elements, or of numbers."""
    if parameter.is_tensor:
        return _ELEMENTS[parameter.element]
    scalar = scalar_for([parameter.element])
    assert scalar is not None, f"`{parameter.element}` is no type of scalars"
    return scalar
