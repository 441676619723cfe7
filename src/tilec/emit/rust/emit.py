"""The module of a program: support, cubins, tables, then the functions of each kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from textwrap import wrap

from tilec.artifact.manifest import Manifest
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.limits import check_sizes
from tilec.emit.names import identifier
from tilec.emit.rust.contract import documentation_of, file_comment
from tilec.emit.rust.cubin import cubin_lines
from tilec.emit.rust.functions import (
    SUFFIXES,
    Build,
    choice_lines,
    elements_lines,
    function_lines,
    kernel_name,
    set_lines,
    target_of,
)
from tilec.emit.rust.pipeline_functions import SUFFIXES as PIPELINE_SUFFIXES
from tilec.emit.rust.pipeline_functions import pipeline_documentation, pipeline_function_lines
from tilec.emit.rust.pipelines import PIPELINES, pipeline_lines
from tilec.emit.rust.signature import signature_of
from tilec.emit.rust.tables import kernel_lines
from tilec.emit.rust.text import function_names
from tilec.emit.sets import LaunchSet, launch_sets, pipeline_sets, variants_before

# The parts of the support, in the order in which they use each other.
_SUPPORT = (
    "opening", "status", "elements", "tables", "arguments", "memory", "tensors", "messages",
    "expressions", "shapes", "scalars", "claims", "variants", "addresses", "declarations", "driver",
    "devices", "instance", "costs", "choice", "plan", "code", "maps", "launch", "waiting",
    "streams", "buffers", "slices",
)  # fmt: skip
_PIPELINE_SUPPORT = (
    "pipelines", "run", "workspace", "plans", "one_stream", "order", "lanes", "several_streams",
    "nodes", "graphs",
)  # fmt: skip
# What lints beyond those that are on from the start have against the inner modules.
_QUIETED = (
    "clippy::all", "clippy::pedantic", "dead_code", "missing_docs", "trivial_numeric_casts",
    "unsafe_code", "unused", "unused_qualifications",
)  # fmt: skip
_SET = "SET_"  # begins the names of `Set`s
_OF_PIPELINES = ("Graph", "InFlightGraph", "PipelinePlan")
_PUBLIC = (
    "set_driver", "BF16", "DeviceBuffer", "DeviceMemory", "DeviceMemoryMut", "DeviceSlice",
    "DeviceSliceMut", "Dtype", "Element", "Error", "F16", "F8E4M3", "F8E5M2", "InFlight",
    "InFlightMut", "Number", "Plan", "Result", "Scope", "Status", "Stream", "Tensor", "TensorMut",
)  # fmt: skip


@cache
def support() -> str:
    """What the files of all kernels share."""
    return _joined(_SUPPORT)


@cache
def pipeline_support() -> str:
    """What the files of all pipelines share beside it."""
    return _joined(_PIPELINE_SUPPORT)


def _joined(names: Sequence[str]) -> str:
    folder = files("tilec.emit.rust") / "support"
    return "\n".join((folder / f"{name}.rs").read_text(encoding="utf-8") for name in names)


def emit_rust(
    artifacts: Sequence[Artifact], stem: str, options: EmitOptions
) -> Mapping[str, bytes]:
    """`STEM.rs` for the cubins of one program.

    Raises:   SetupError if a kernel has more parameters or axes than launchers take
    """
    ordered = sorted(artifacts, key=lambda artifact: artifact.preference)
    check_sizes(artifact.manifest for artifact in ordered)
    return {f"{stem}.rs": "".join(f"{line}\n" for line in _lines(ordered, options)).encode()}


def _lines(artifacts: Sequence[Artifact], options: EmitOptions) -> Iterator[str]:
    manifests = [artifact.manifest for artifact in artifacts]
    sets, pipelines = launch_sets(manifests[0]), pipeline_sets(manifests[0])
    public = sorted([*_PUBLIC, *(_OF_PIPELINES if pipelines else ())])
    yield from file_comment(manifests, sets, pipelines, options.prefix)
    yield ""
    yield from _filled("#[allow(", _QUIETED, ")]")
    yield "#[rustfmt::skip]"
    yield "mod tilec {"
    yield support()
    if pipelines:
        yield pipeline_support()
    yield "}"
    yield ""
    yield "#[allow(unused_imports)]"
    yield "#[rustfmt::skip]"
    yield from _filled("pub use tilec::{", public, "};")
    yield "#[allow(unused_imports)]"
    yield "pub(crate) use tilec::take_buffers;"
    yield ""
    yield from _filled("#[allow(", [*_QUIETED, "non_snake_case", "non_upper_case_globals"], ")]")
    yield "#[rustfmt::skip]"
    yield "mod data {"
    yield "use super::tilec::*;"
    yield ""
    yield from _data(artifacts, sets, pipelines)
    yield "}"
    yield ""
    both = [*sets, *pipelines]
    words = [SUFFIXES] * len(sets) + [PIPELINE_SUFFIXES] * len(pipelines)
    names = function_names([f"{options.prefix}{one.name}" for one in both], words)
    for name, launched in zip(names, sets, strict=False):
        yield from _functions(name, launched, manifests[0], options)
    for name, launched in zip(names[len(sets) :], pipelines, strict=True):
        yield from _pipeline_functions(name, launched, manifests[0], options)
    yield "/// Loads the machine code on a device now: otherwise the first launch there does."
    yield "#[allow(clippy::missing_errors_doc, dead_code)]"
    yield "pub fn load(device: i32) -> Result<()> {"
    yield "    tilec::preload(data::SETS, device)"
    yield "}"


def _filled(opening: str, words: Iterable[str], closing: str) -> Iterator[str]:
    yield opening
    yield from wrap(f"{', '.join(words)},", 100, initial_indent="    ", subsequent_indent="    ")
    yield closing


def _data(
    artifacts: Sequence[Artifact], sets: Sequence[LaunchSet], pipelines: Sequence[LaunchSet]
) -> Iterator[str]:
    builds = [
        Build(artifact.manifest, identifier(artifact.manifest.target)) for artifact in artifacts
    ]
    for artifact, build in zip(artifacts, builds, strict=True):
        kernels = artifact.manifest.kernels
        yield from cubin_lines(artifact, build.own, sum(len(k.variants) for k in kernels))
        for kernel, first in variants_before(artifact.manifest):
            yield from kernel_lines(kernel, kernel_name(build, kernel.symbol), first)
    for launched in sets:
        signature = signature_of(launched)
        for one in _each_once([launched, *signature.launched]):
            yield from set_lines(one, builds, f"{_SET}{one.name}")
        yield from choice_lines(signature, launched.name, "Set", _SET)
    signatures = [signature_of(launched) for launched in pipelines]
    every = [*pipelines, *(one for signature in signatures for one in signature.launched)]
    yield from pipeline_lines(_each_once(every), builds)
    for launched, signature in zip(pipelines, signatures, strict=True):
        yield from choice_lines(signature, launched.name, "Pipelines", PIPELINES)
    names = ", ".join(f"&{_SET}{launched.name}" for launched in sets)
    yield f"pub(super) static SETS: &[&Set] = &[{names}];"


def _each_once(sets: Sequence[LaunchSet]) -> list[LaunchSet]:
    return list({one.name: one for one in sets}.values())


def _functions(
    name: str, launched: LaunchSet, manifest: Manifest, options: EmitOptions
) -> Iterator[str]:
    signature = signature_of(launched)
    yield from elements_lines(name, signature)
    documentation = documentation_of(launched, manifest, options.prefix)
    target = target_of(name, signature, launched.name, _SET)
    yield from function_lines(name, signature, target, documentation)


def _pipeline_functions(
    name: str, launched: LaunchSet, manifest: Manifest, options: EmitOptions
) -> Iterator[str]:
    signature = signature_of(launched)
    yield from elements_lines(name, signature)
    documentation = pipeline_documentation(launched, manifest, options.prefix)
    target = target_of(name, signature, launched.name, PIPELINES)
    yield from pipeline_function_lines(name, signature, target, documentation)
