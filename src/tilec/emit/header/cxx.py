"""The functions of kernels and pipelines in C++: one for each combination of types, overloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.artifact.signature import Parameter
from tilec.emit.header.signature import Argument, scalar_type, signature_of
from tilec.emit.header.text import filled, returned
from tilec.emit.sets import Choice, LaunchSet, choices_of

# What follows the names of kernels and of pipelines in the names of their functions.
WORDS = ("",)
PIPELINE_WORDS = ("", "_workspace", "_with", "_on", "_graph", "_graph_update")
_TYPES = {
    "bool": "bool", "i8": "std::int8_t", "u8": "std::uint8_t", "f8e4m3": "::tilec::f8e4m3",
    "f8e5m2": "::tilec::f8e5m2", "i16": "std::int16_t", "u16": "std::uint16_t",
    "f16": "::tilec::f16", "bf16": "::tilec::bf16", "i32": "std::int32_t",
    "u32": "std::uint32_t", "f32": "float",
    "i64": "std::int64_t", "u64": "std::uint64_t", "f64": "double", "usize": "std::int64_t",
}  # fmt: skip


@dataclass(frozen=True)
class Overload:
    """One signature of a kernel's or a pipeline's functions, and the instances that it launches.

    `types` are those of the arguments, `declared` the same with names; `arguments` is the line that
    makes them what the support part takes.
    """

    launched: LaunchSet
    types: tuple[str, ...]
    declared: tuple[str, ...]
    arguments: str


def overloads_of(launched: LaunchSet) -> list[Overload]:
    """Each signature of the instances of a kernel, or a pipeline, once."""
    return [_overload(choice) for choice in choices_of(launched, _type)]


def _type(parameter: Parameter) -> str:
    if not parameter.is_tensor:
        return scalar_type(parameter.element)
    constant = "" if parameter.is_written else "const "
    return f"const ::tilec::tensor<{constant}{_TYPES[parameter.element]}> &"


def _overload(choice: Choice) -> Overload:
    arguments = signature_of(LaunchSet(choice.launched.name, choice.kernels))
    assert arguments is not None, "instances of one signature have numbers of one type"
    passed = [_passing(argument) for argument in arguments] or ["tilec_of_tensor(nullptr)"]
    return Overload(
        choice.launched,
        tuple(one.rstrip() for one in choice.types),
        tuple(map(_declared, choice.types, arguments)),
        filled("    const tilec_argument arguments[] = {", passed, "};"),
    )


def _declared(kind: str, argument: Argument) -> str:
    return f"{kind}{'' if kind.endswith('&') else ' '}{argument.name}"


def _passing(argument: Argument) -> str:
    if argument.parameter.is_tensor:
        return f"tilec_of_tensor({argument.name}.plain())"
    return argument.passing


def overload_lines(name: str, overload: Overload, launched: str) -> Iterator[str]:
    """`tilec::NAME(stream, ...)` of a kernel, for a `tilec_set`."""
    call = f"tilec_launch(&{launched}, stream, arguments)"
    parameters = ["tilec_stream stream", *overload.declared]
    yield from status_function(name, parameters, overload, call)


def pipeline_overload_lines(name: str, overload: Overload, pipelines: str) -> Iterator[str]:
    """`tilec::NAME(stream, ...)` of a pipeline, for a `tilec_pipelines`, and what else it has."""
    taken = overload.declared
    for called, parameters, call in (
        (
            name,
            ["tilec_stream stream", *taken],
            f"tilec_pipeline_launch_with(&{pipelines}, stream, 0, nullptr, 0, arguments)",
        ),
        (
            f"{name}_workspace",
            [*taken, "std::int64_t *workspace_bytes"],
            f"tilec_pipeline_workspace(&{pipelines}, arguments, workspace_bytes)",
        ),
        (
            f"{name}_with",
            ["tilec_stream stream", "void *workspace", "std::int64_t workspace_bytes", *taken],
            f"tilec_pipeline_launch_with(&{pipelines}, stream, 1, workspace, workspace_bytes, "
            "arguments)",
        ),
        (
            f"{name}_on",
            ["const ::tilec::stream_list &streams", *taken],
            f"tilec_pipeline_launch_on(&{pipelines}, streams.first(), streams.count(), arguments)",
        ),
    ):
        yield from status_function(called, parameters, overload, call)
    changed = ["tilec_graph *graph", *taken]
    yield filled(f"TILEC_PUBLIC tilec_status {name}_graph_update(", changed, ")")
    yield "{"
    yield overload.arguments
    call = f"tilec_pipeline_graph_update(&{pipelines}, graph, arguments)"
    yield returned(call, "tilec_done")
    yield "}"
    yield ""
    made = filled("::tilec::graph<", overload.types, ">")
    yield filled(f"TILEC_PUBLIC {made} {name}_graph(", taken, ")")
    yield "{"
    yield overload.arguments
    yield "    tilec_graph *graph = nullptr;"
    yield f"    const tilec_status status = tilec_pipeline_graph(&{pipelines}, &graph, arguments);"
    yield f"    return {{status, graph, {name}_graph_update}};"
    yield "}"
    yield ""


def status_function(
    name: str, parameters: Sequence[str], overload: Overload, call: str
) -> Iterator[str]:
    """A function that gives a `tilec::status`."""
    yield filled(f"TILEC_PUBLIC ::tilec::status {name}(", parameters, ")")
    yield "{"
    yield overload.arguments
    yield returned(call, "::tilec::status")
    yield "}"
    yield ""
