"""How a launch function takes the parameters of its instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.artifact.signature import Parameter
from tilec.emit.header.text import parameter_names
from tilec.emit.scalars import scalar_for
from tilec.emit.sets import LaunchSet

_TYPES = {
    "bool": "bool", "f32": "float", "f64": "double", "i8": "int8_t", "u8": "uint8_t",
    "i16": "int16_t", "u16": "uint16_t", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t",
    "u64": "uint64_t", "usize": "int64_t",
}  # fmt: skip
_KINDS = {"bool": "truth", "f32": "real", "f64": "real"}  # all others are whole
TENSOR = "const tilec_tensor *"


@dataclass(frozen=True)
class Argument:
    """One argument in C: its type, its name, and the call that passes it on."""

    c_type: str
    name: str
    passing: str
    parameter: Parameter

    @property
    def declared(self) -> str:
        gap = "" if self.c_type.endswith("*") else " "
        return f"{self.c_type}{gap}{self.name}"


def signature_of(launched: LaunchSet) -> list[Argument] | None:
    """The arguments of a launch function; None if the instances take scalars of other kinds."""
    found: list[Argument] = []
    names = parameter_names([parameter.name for parameter in launched.kernels[0].parameters])
    for i, name in enumerate(names):
        argument = _argument(name, [kernel.parameters[i] for kernel in launched.kernels])
        if argument is None:
            return None
        found.append(argument)
    return found


def _argument(name: str, parameters: list[Parameter]) -> Argument | None:
    first = parameters[0]
    if first.is_tensor:
        return Argument(TENSOR, name, f"tilec_of_tensor({name})", first)
    scalar = scalar_for(parameter.element for parameter in parameters)
    if scalar is None:
        return None
    return Argument(_TYPES[scalar], name, f"tilec_of_{_KINDS.get(scalar, 'whole')}({name})", first)


def scalar_type(element: str) -> str:
    """The type in C of a number of an element type."""
    scalar = scalar_for([element])
    assert scalar is not None, f"`{element}` is no type of scalars"
    return _TYPES[scalar]


def declared(arguments: list[Argument]) -> Iterator[str]:
    return (argument.declared for argument in arguments)
