"""The functions of a launch set in C, and the data they pass on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.artifact.manifest import Manifest
from tilec.emit.header.signature import Argument, declared
from tilec.emit.header.tables import Arrays, table_rows
from tilec.emit.header.text import braced, filled, string
from tilec.emit.names import identifier
from tilec.emit.sets import Group, LaunchSet, groups_of


@dataclass(frozen=True)
class Build:
    """A cubin's data in a header: the name of its `tilec_cubin`, its arrays, and the name of the
    `tilec_kernel` of each symbol."""

    manifest: Manifest
    cubin: str
    arrays: Arrays
    kernels: Mapping[str, str]


def set_name(unit: str, launched: LaunchSet) -> str:
    """The name of the `tilec_set` of a launch function."""
    return f"{unit}_set_{launched.name}"


def set_lines(launched: LaunchSet, builds: Sequence[Build], unit: str) -> Iterator[str]:
    """The `tilec_set` of a launch function."""
    symbols = {kernel.symbol for kernel in launched.kernels}
    rows: list[str] = []
    for build in builds:
        kernels = [kernel for kernel in build.manifest.kernels if kernel.symbol in symbols]
        groups = [_group(one, build) for one in groups_of(kernels, build.manifest.families)]
        own = f"groups_{identifier(launched.name)}"
        array = build.arrays.array("tilec_group", own, groups)
        yield from build.arrays.taken()
        rows.append(braced((f"&{build.cubin}", array, len(groups))))
    name = set_name(unit, launched)
    listed = f"{unit}_builds_{launched.name}"
    yield filled(f"static const tilec_build {listed}[] = {{", rows, "};")
    fields = (string(launched.label), listed, len(rows), value_count(launched))
    yield filled(f"static const tilec_set {name} = {{", fields, "};")
    yield ""


def value_count(launched: LaunchSet) -> int:
    """Dims and parameters of the instance with the most: the room that a call needs."""
    return max(1, *(len(one.dims) + len(one.parameters) for one in launched.kernels))


def _group(group: Group, build: Build) -> str:
    arrays = build.arrays
    first = identifier(group.kernels[0].symbol)
    members = arrays.array(
        "tilec_kernel *const",
        f"members{len(group.kernels)}_{first}",
        [f"&{build.kernels[kernel.symbol]}" for kernel in group.kernels],
    )
    rows = table_rows(group, arrays)
    tables = arrays.array("tilec_table", f"tables_{first}", rows)
    return braced((members, len(group.kernels), len(rows), tables))


def function_lines(name: str, arguments: list[Argument], launched: str) -> list[str]:
    """`NAME_launch`, `NAME_check` and `NAME_plan` for a `tilec_set`."""
    plan = [*declared(arguments), "tilec_plan *plan"]
    return [
        *_function(
            f"{name}_launch",
            ["tilec_stream stream", *declared(arguments)],
            arguments,
            f"tilec_launch(&{launched}, stream, arguments)",
        ),
        *_function(
            f"{name}_check",
            list(declared(arguments)) or ["void"],
            arguments,
            f"tilec_check(&{launched}, arguments)",
        ),
        *_function(f"{name}_plan", plan, arguments, f"tilec_plan_of(&{launched}, arguments, plan)"),
    ]


def _function(
    name: str, parameters: list[str], arguments: list[Argument], result: str
) -> list[str]:
    passed = [argument.passing for argument in arguments] or ["tilec_of_tensor(NULL)"]
    return [
        filled(f"TILEC_PUBLIC tilec_status {name}(", parameters, ")"),
        "{",
        filled("    const tilec_argument arguments[] = {", passed, "};"),
        f"    return tilec_done({result});",
        "}",
        "",
    ]
