"""The functions of a kernel in C++: one for each combination of element types, by overloading."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter
from tilec.emit.header.sets import LaunchSet
from tilec.emit.header.signature import Argument, signature_of
from tilec.emit.header.text import filled, function_name, identifier

_TYPES = {
    "bool": "bool", "i8": "std::int8_t", "u8": "std::uint8_t", "f8e4m3": "::tilec::f8e4m3",
    "f8e5m2": "::tilec::f8e5m2", "i16": "std::int16_t", "u16": "std::uint16_t",
    "f16": "::tilec::f16", "bf16": "::tilec::bf16", "i32": "std::int32_t",
    "u32": "std::uint32_t", "f32": "float",
    "i64": "std::int64_t", "u64": "std::uint64_t", "f64": "double", "usize": "std::int64_t",
}  # fmt: skip


def overload_lines(launched: LaunchSet, prefix: str) -> Iterator[str]:
    """`tilec::NAME(stream, ...)` for all instances of a kernel, each signature once."""
    name = function_name(f"{prefix}{launched.name}")
    called = f"{prefix}{identifier(launched.name)}_launch"
    for types, arguments in typed_sets(launched):
        yield from _overload(name, types, arguments, called)


def typed_sets(launched: LaunchSet) -> Iterator[tuple[tuple[str, ...], list[Argument]]]:
    """Each signature of the instances once: the types of its parameters, and the arguments in C."""
    by_types: dict[tuple[str, ...], list[Kernel]] = {}
    for kernel in launched.kernels:
        by_types.setdefault(tuple(map(_declared, kernel.parameters)), []).append(kernel)
    for types, kernels in by_types.items():
        arguments = signature_of(LaunchSet(launched.name, tuple(kernels)))
        if arguments is not None:
            yield types, arguments


def _declared(parameter: Parameter) -> str:
    if not parameter.is_tensor:
        return parameter.element
    constant = "" if parameter.is_written else "const "
    return f"const ::tilec::tensor<{constant}{_TYPES[parameter.element]}> &"


def _overload(
    name: str, types: tuple[str, ...], arguments: list[Argument], called: str
) -> Iterator[str]:
    declared = ["tilec_stream stream"]
    passed = ["stream"]
    for argument, kind in zip(arguments, types, strict=True):
        is_tensor = argument.parameter.is_tensor
        declared.append(f"{kind}{argument.name}" if is_tensor else argument.declared)
        passed.append(f"{argument.name}.plain()" if is_tensor else argument.name)
    yield filled(f"TILEC_PUBLIC ::tilec::status {name}(", declared, ")")
    yield "{"
    yield filled(f"    return ::tilec::status(::{called}(", passed, "));")
    yield "}"
    yield ""
