"""How a launch function takes the parameters of its instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.artifact.signature import Parameter
from tilec.emit.header.sets import LaunchSet
from tilec.emit.header.text import parameter_names

_REALS = {"f16": "float", "bf16": "float", "f32": "float", "f64": "double"}
_WHOLES = {
    "i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t", "i32": "int32_t",
    "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t", "usize": "int64_t",
}  # fmt: skip
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
    elements = list(dict.fromkeys(p.element for p in parameters))
    c_type = _c_type(elements)
    if c_type is None:
        return None
    kind = "truth" if c_type == "bool" else "real" if c_type in ("float", "double") else "whole"
    return Argument(c_type, name, f"tilec_of_{kind}({name})", first)


def scalar_type(element: str) -> str:
    """The type in C of a number of an element type."""
    found = _c_type([element])
    assert found is not None, f"`{element}` is no type of scalars"
    return found


def _c_type(elements: list[str]) -> str | None:
    """A type that holds the numbers of all these, or None."""
    if elements == ["bool"]:
        return "bool"
    for types, widest in ((_REALS, "double"), (_WHOLES, "int64_t")):
        if all(element in types for element in elements):
            found = {types[element] for element in elements}
            return found.pop() if len(found) == 1 else widest
    return None


def declared(arguments: list[Argument]) -> Iterator[str]:
    return (argument.declared for argument in arguments)
