"""How a function of Rust takes the parameters of its instances, and which element types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.artifact.signature import Parameter
from tilec.emit.header.sets import Choice, LaunchSet, choices_of
from tilec.emit.header.signature import Argument as CArgument
from tilec.emit.header.signature import scalar_type
from tilec.emit.header.signature import signature_of as c_signature_of
from tilec.emit.rust.text import parameter_names

_ELEMENTS = {
    "bool": "bool", "i8": "i8", "u8": "u8", "f8e4m3": "F8E4M3", "f8e5m2": "F8E5M2", "i16": "i16",
    "u16": "u16", "f16": "F16", "bf16": "BF16", "i32": "i32", "u32": "u32", "f32": "f32",
    "i64": "i64", "u64": "u64", "f64": "f64", "usize": "usize",
}  # fmt: skip
_SCALARS = {
    "bool": "bool", "float": "f32", "double": "f64", "int8_t": "i8", "uint8_t": "u8",
    "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64",
    "uint64_t": "u64",
}  # fmt: skip


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
        if self.rust_type in ("f32", "f64"):
            return f"Argument::real({given})"
        if self.rust_type not in _SCALARS.values() and self.rust_type != "usize":
            return f"Argument::number({given})"
        return f"Argument::whole({given}{' as i128' if self.rust_type == 'usize' else ''})"


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
    plain = c_signature_of(launched)
    if plain is None:
        choices = choices_of(launched, _type)
    else:
        numbers = [_type_of_all(one, launched, i) for i, one in enumerate(plain)]
        choices = [
            Choice(
                tuple(
                    number or _type(parameter)
                    for number, parameter in zip(numbers, kernel.parameters, strict=True)
                ),
                (kernel,),
                launched,
            )
            for kernel in launched.kernels
        ]
    return _signature(launched.kernels[0].parameters, choices)


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


def _type_of_all(argument: CArgument, launched: LaunchSet, position: int) -> str | None:
    """What all instances take for an argument, if it is a number."""
    if argument.parameter.is_tensor:
        return None
    elements = {kernel.parameters[position].element for kernel in launched.kernels}
    return "usize" if elements == {"usize"} else _SCALARS[argument.c_type]


def _type(parameter: Parameter) -> str:
    """What an instance takes for a parameter: a type of elements, or of numbers."""
    if parameter.is_tensor:
        return _ELEMENTS[parameter.element]
    return "usize" if parameter.element == "usize" else _SCALARS[scalar_type(parameter.element)]
