"""How a function of Rust takes the parameters of its instances, and which element types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter
from tilec.emit.header.sets import LaunchSet
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
        return f"Argument::whole({given}{' as i128' if self.rust_type == 'usize' else ''})"


@dataclass(frozen=True)
class Signature:
    """`generics` are the names of the generic element types; `combinations` what all of them may
    be at one time."""

    arguments: tuple[Argument, ...]
    generics: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]


def signature_of(launched: LaunchSet) -> Signature | None:
    """The arguments of a function; None if the instances take scalars of other kinds."""
    plain = c_signature_of(launched)
    if plain is None:
        return None
    columns = _columns(launched.kernels)
    varying = list(dict.fromkeys(column for column in columns.values() if len(set(column)) > 1))
    names = ["T"] if len(varying) == 1 else [f"T{i}" for i in range(len(varying))]
    generics = dict(zip(varying, names, strict=True))
    arguments: list[Argument] = []
    called = parameter_names([one.parameter.name for one in plain])
    for i, (name, one) in enumerate(zip(called, plain, strict=True)):
        if not one.parameter.is_tensor:
            arguments.append(Argument(name, _scalar(one.c_type, one.parameter), one.parameter))
            continue
        column = columns[i]
        arguments.append(Argument(name, generics.get(column, column[0]), one.parameter))
    combinations = tuple(dict.fromkeys(zip(*varying, strict=True))) if varying else ()
    return Signature(tuple(arguments), tuple(names), combinations)


def _columns(kernels: Sequence[Kernel]) -> dict[int, tuple[str, ...]]:
    """For each tensor by number, its element type in each instance."""
    return {
        i: tuple(_ELEMENTS[kernel.parameters[i].element] for kernel in kernels)
        for i, parameter in enumerate(kernels[0].parameters)
        if parameter.is_tensor
    }


def _scalar(c_type: str, parameter: Parameter) -> str:
    return "usize" if parameter.element == "usize" else _SCALARS[c_type]
