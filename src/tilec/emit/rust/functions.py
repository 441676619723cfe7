"""The functions of a launch set in Rust, and the data they pass on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilec.artifact.manifest import Manifest
from tilec.emit.names import identifier
from tilec.emit.rust.signature import Argument, Signature
from tilec.emit.rust.tables import table_rows
from tilec.emit.rust.text import bracketed, listed, string, structure
from tilec.emit.sets import Group, LaunchSet, groups_of

# What follows a kernel's name in the names of its functions.
SUFFIXES = ("", "_launch", "_check", "_plan")
_ALLOWED = (
    "#[allow(clippy::pedantic, clippy::too_many_arguments, dead_code, non_snake_case, "
    "unused_qualifications)]",
    "#[rustfmt::skip]",
)


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
    return structure("Group", kernels=listed(members), tables=listed(table_rows(group)))


def elements_lines(name: str, signature: Signature) -> Iterator[str]:
    """The trait of the types that a function takes together, and says which instances they mean."""
    if not signature.generics:
        return
    sets = signature.launched
    yield f"/// The {'' if signature.numbers else 'element '}types that `{name}` takes."
    yield "#[allow(non_camel_case_types)]"
    is_chosen = len(sets) > 1
    what = ["#[doc(hidden)]", "const MEANT: usize;"] if is_chosen else []
    yield from _block(f"pub trait {name}_elements", what)
    for types, launched in signature.combinations.items():
        what = [f"const MEANT: usize = {sets.index(launched)};"] if is_chosen else []
        yield from _block(f"impl {name}_elements for {_tuple(types)}", what)
    yield ""


def _block(head: str, lines: Sequence[str]) -> Iterator[str]:
    """As rustfmt has it."""
    if not lines:
        yield f"{head} {{}}"
        return
    yield f"{head} {{"
    yield from (f"    {line}" for line in lines)
    yield "}"


def choice_lines(signature: Signature, own: str, kind: str, static: str) -> Iterator[str]:
    """The data of all that a function may launch, by number; `static` begins their names."""
    if len(signature.launched) > 1:
        items = ", ".join(f"&{static}{launched.name}" for launched in signature.launched)
        yield f"pub(super) static OF_{own}: &[&{kind}] = &[{items}];"


def target_of(name: str, signature: Signature, own: str, static: str) -> str:
    """What a function launches: one of these data."""
    if len(signature.launched) == 1:
        return f"&data::{static}{own}"
    return f"data::OF_{own}[<{_tuple(signature.generics)} as {name}_elements>::MEANT]"


@dataclass(frozen=True)
class Function:
    """A function that passes its arguments on: to `called` of the support part, after `given`.

    `declared` gives the type of an argument; `first` are parameters before the arguments.
    """

    name: str
    called: str
    given: str
    declared: Callable[[Argument], str]
    first: tuple[str, ...] = ()
    lifetime: str = ""
    result: str = "()"
    passing: Callable[[Argument], str] | None = None


def function_lines(
    name: str, signature: Signature, target: str, documentation: Sequence[str]
) -> Iterator[str]:
    """`NAME`, `NAME_launch`, `NAME_check` and `NAME_plan` for a `Set`."""
    yield from documented("Starts it on the stream and returns when it is done.", "")
    yield from documented(*documentation)
    waiting = Function(name, "launch_and_wait", f"{target}, stream", plain, ("stream: &Stream",))
    yield from function_lines_of(waiting, signature, name)
    yield from documented(f"Starts `{name}` in a scope, and returns at once.")
    scope = ("scope: &Scope<'scope, '_>",)
    scoped = f"{name}_launch", "launch_in", f"{target}, scope", in_flight, scope, "'scope"
    yield from function_lines_of(Function(*scoped), signature, name)
    yield from documented(f"Checks the contract of `{name}`, and launches nothing.")
    yield from function_lines_of(Function(f"{name}_check", "check", target, read), signature, name)
    yield from documented(f"Says what `{name}` would launch.")
    planning = Function(f"{name}_plan", "plan_of", target, read, result="Plan")
    yield from function_lines_of(planning, signature, name)


def documented(*lines: str) -> Iterator[str]:
    """Lines of a comment on what follows."""
    yield from (f"/// {line}".rstrip() for line in lines)


def function_lines_of(function: Function, signature: Signature, elements: str) -> Iterator[str]:
    """A function for arguments of a signature; `elements` is whose element types it takes."""
    lifetimes = [function.lifetime] if function.lifetime else []
    generics = ", ".join([*lifetimes, *signature.generics])
    opening = f"pub fn {function.name}<{generics}>(" if generics else f"pub fn {function.name}("
    arguments = [f"{one.name}: {function.declared(one)}" for one in signature.arguments]
    passing = function.passing or _passing
    passed = [passing(one) for one in signature.arguments]
    yield from _ALLOWED
    yield bracketed(opening, [*function.first, *arguments], f") -> Result<{function.result}>")
    if signature.generics:
        yield "where"
        yield f"    {_tuple(signature.generics)}: {elements}_elements,"
        yield from (f"    {number}: Number," for number in signature.numbers)
    yield "{"
    is_method = "." in function.called
    called = f"{function.called if is_method else f'tilec::{function.called}'}({function.given}"
    for line in bracketed(f"{called}, &[", passed, "])").split("\n"):
        yield f"    {line}"
    yield "}"
    yield ""


def plain(argument: Argument) -> str:
    """The type of an argument that is borrowed for a call."""
    if not argument.parameter.is_tensor:
        return argument.rust_type
    if argument.parameter.is_written:
        return f"&mut TensorMut<'_, {argument.rust_type}>"
    return f"&Tensor<'_, {argument.rust_type}>"


def in_flight(argument: Argument) -> str:
    """The type of an argument that is borrowed until a scope ends."""
    if not argument.parameter.is_tensor:
        return argument.rust_type
    if argument.parameter.is_written:
        return f"&mut InFlightMut<'scope, {argument.rust_type}>"
    return f"&InFlight<'scope, {argument.rust_type}>"


def read(argument: Argument) -> str:
    """The type of an argument that nothing is done to."""
    return plain(argument).replace("&mut ", "&")


def _passing(argument: Argument) -> str:
    return f"tilec::{argument.passing_of(argument.name)}"


def _tuple(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
