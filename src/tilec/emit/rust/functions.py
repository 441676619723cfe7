"""The functions of a launch set in Rust, and the data they pass on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilec.artifact.manifest import Manifest
from tilec.emit.header.sets import Group, LaunchSet, groups_of
from tilec.emit.header.text import identifier
from tilec.emit.rust.signature import Argument, Signature
from tilec.emit.rust.tables import table_rows
from tilec.emit.rust.text import bracketed, listed, string, structure

# The type of an argument in a signature.
Declared: TypeAlias = Callable[[Argument], str]

_ALLOWED = "#[allow(clippy::too_many_arguments, dead_code, non_snake_case)]"


@dataclass(frozen=True)
class Build:
    """A cubin's data in a file: the manifest, and what ends the names of its statics."""

    manifest: Manifest
    own: str


def kernel_name(build: Build, symbol: str) -> str:
    """What ends the names of the statics of a kernel."""
    return f"{build.own}_{identifier(symbol)}"


def set_lines(launched: LaunchSet, builds: Sequence[Build], name: str) -> Iterator[str]:
    """The `Set` of this name."""
    symbols = {kernel.symbol for kernel in launched.kernels}
    rows = []
    for build in builds:
        kernels = [kernel for kernel in build.manifest.kernels if kernel.symbol in symbols]
        groups = [_group(one, build) for one in groups_of(kernels, build.manifest.families)]
        cubin = f"&CUBIN_{build.own}"
        rows.append(structure("Build", cubin=cubin, groups=listed(groups)))
    value = structure("Set", name=string(launched.label), builds=listed(rows))
    yield f"pub(super) static {name}: Set = {value};"


def _group(group: Group, build: Build) -> str:
    members = [f"&KERNEL_{kernel_name(build, kernel.symbol)}" for kernel in group.kernels]
    # What was measured is of a family's members by number.
    is_whole = group.family is not None and len(group.kernels) == len(group.family.members)
    symbols = [kernel.symbol for kernel in group.kernels]
    tables = table_rows(group.family, symbols) if group.family and is_whole else ()
    return structure("Group", kernels=listed(members), tables=listed(tables))


def elements_lines(name: str, signature: Signature) -> Iterator[str]:
    """The trait of the element types that a function takes together."""
    if not signature.generics:
        return
    yield f"/// The element types that `{name}` takes."
    yield "#[allow(non_camel_case_types)]"
    yield f"pub trait {name}_elements {{}}"
    for types in signature.combinations:
        yield f"impl {name}_elements for {_tuple(types)} {{}}"


def function_lines(
    name: str, signature: Signature, launched: str, documentation: Sequence[str]
) -> Iterator[str]:
    """`NAME`, `NAME_launch`, `NAME_check` and `NAME_plan` for a `Set`."""
    target = f"&data::{launched}"
    waiting = "Starts it on the stream and returns when it is done."
    yield from _documented([waiting, "", *documentation])
    first = ["stream: &Stream"]
    yield from _function(
        name, signature, first, "launch_and_wait", f"{target}, stream", _plain, elements=name
    )
    yield f"/// Starts `{name}` in a scope, and returns at once."
    yield from _function(
        f"{name}_launch", signature, ["scope: &Scope<'scope, '_>"], "launch_in",
        f"{target}, scope", _in_flight, lifetime="'scope", elements=name,
    )  # fmt: skip
    yield f"/// Checks the contract of `{name}`, and launches nothing; needs no driver."
    yield from _function(f"{name}_check", signature, [], "check", target, _read, elements=name)
    yield f"/// Says what `{name}` would launch."
    yield from _function(
        f"{name}_plan", signature, [], "plan_of", target, _read, result="Plan", elements=name
    )


def _documented(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"/// {line}".rstrip() for line in lines)


def _function(
    name: str,
    signature: Signature,
    first: Sequence[str],
    called: str,
    given: str,
    declared: Declared,
    *,
    elements: str,
    lifetime: str = "",
    result: str = "()",
) -> Iterator[str]:
    generics = [*([lifetime] if lifetime else []), *signature.generics]
    opening = f"pub fn {name}<{', '.join(generics)}>(" if generics else f"pub fn {name}("
    parameters = [*first, *(f"{one.name}: {declared(one)}" for one in signature.arguments)]
    passed = [f"tilec::{one.passing}" for one in signature.arguments]
    yield _ALLOWED
    yield bracketed(opening, parameters, f") -> Result<{result}>")
    if signature.generics:
        yield "where"
        yield f"    {_tuple(signature.generics)}: {elements}_elements,"
    yield "{"
    for line in bracketed(f"tilec::{called}({given}, &[", passed, "])").split("\n"):
        yield f"    {line}"
    yield "}"
    yield ""


def _plain(argument: Argument) -> str:
    if not argument.parameter.is_tensor:
        return argument.rust_type
    if argument.parameter.is_written:
        return f"&mut TensorMut<'_, {argument.rust_type}>"
    return f"&Tensor<'_, {argument.rust_type}>"


def _in_flight(argument: Argument) -> str:
    if not argument.parameter.is_tensor:
        return argument.rust_type
    if argument.parameter.is_written:
        return f"&mut InFlightMut<'scope, {argument.rust_type}>"
    return f"&InFlight<'scope, {argument.rust_type}>"


def _read(argument: Argument) -> str:
    return _plain(argument).replace("&mut ", "&")


def _tuple(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
