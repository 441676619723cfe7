"""The header of a program: support, cubins, tables, then the functions of each kernel."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from tilec.artifact.manifest import Manifest
from tilec.diagnostics.setup_error import SetupError
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header.contract import contract_comment, file_comment
from tilec.emit.header.cubin import cubin_lines
from tilec.emit.header.cxx import (
    PIPELINE_WORDS,
    WORDS,
    Overload,
    overload_lines,
    overloads_of,
    pipeline_overload_lines,
)
from tilec.emit.header.functions import Build, function_lines, set_lines, set_name
from tilec.emit.header.pipeline_functions import pipeline_comment, pipeline_functions
from tilec.emit.header.pipelines import pipeline_lines, pipelines_name
from tilec.emit.header.signature import signature_of
from tilec.emit.header.tables import Arrays, add_kernel
from tilec.emit.header.text import function_names, header_file, heading
from tilec.emit.limits import check_sizes
from tilec.emit.names import identifier
from tilec.emit.sets import LaunchSet, launch_sets, pipeline_sets, variants_before

# The parts of the support, in the order in which they use each other.
_SUPPORT = (
    "opening", "status", "arguments", "tables", "messages", "elements", "expressions", "shapes",
    "scalars", "claims", "variants", "addresses", "declarations", "driver", "devices", "instance",
    "costs", "choice", "plan", "code", "maps", "launch", "values", "closing", "cxx", "end",
)  # fmt: skip
_PIPELINE_SUPPORT = (
    "pipelines", "run", "workspace", "steps", "plans", "one_stream", "order", "lanes", "streams",
    "nodes", "graphs", "pipelines_cxx",
)  # fmt: skip


# What warnings beyond -Wall, -Wextra, -Wconversion and -Wshadow have against it, and is meant so.
_QUIETED = (
    "#pragma GCC diagnostic push",
    '#pragma GCC diagnostic ignored "-Wdouble-promotion"',
    '#pragma GCC diagnostic ignored "-Wfloat-equal"',
    "#ifdef __cplusplus",
    "/* It is C, too. */",
    '#pragma GCC diagnostic ignored "-Wold-style-cast"',
    '#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"',
    "#ifndef __clang__",
    '#pragma GCC diagnostic ignored "-Wuseless-cast"',
    "#endif",
    "#endif",
    "",
)


@cache
def support() -> str:
    """What the headers of all kernels share."""
    return _joined(_SUPPORT)


@cache
def pipeline_support() -> str:
    """What the headers of all pipelines share, beside that."""
    return _joined(_PIPELINE_SUPPORT)


def _joined(names: Sequence[str]) -> str:
    folder = files("tilec.emit.header") / "support"
    return "".join((folder / f"{name}.h").read_text(encoding="utf-8") for name in names)


def emit_header(
    artifacts: Sequence[Artifact], stem: str, options: EmitOptions
) -> Mapping[str, bytes]:
    """`STEM.h` for the cubins of one program.

    Raises:   SetupError if a kernel has more parameters or axes than launchers take, or the name of
              what every header has
    """
    ordered = sorted(artifacts, key=lambda artifact: artifact.preference)
    check_sizes(artifact.manifest for artifact in ordered)
    text = "\n".join(_lines(ordered, stem, options))
    return {header_file(stem): f"{text}\n".encode()}


def _lines(artifacts: Sequence[Artifact], stem: str, options: EmitOptions) -> Iterator[str]:
    manifests = [artifact.manifest for artifact in artifacts]
    every = launch_sets(manifests[0])
    every_pipeline = pipeline_sets(manifests[0])
    sets = [one for one in every if signature_of(one) is not None]
    pipelines = [one for one in every_pipeline if signature_of(one) is not None]
    overloads, pipeline_overloads = _overloads_of(every), _overloads_of(every_pipeline)
    digest = hashlib.sha256(b"".join(artifact.cubin for artifact in artifacts)).hexdigest()[:12]
    unit = f"tilec_{identifier(stem)}_{digest}"
    load = f"{options.prefix}{identifier(stem)}"
    yield from file_comment(manifests, sets, pipelines, options.prefix, load)
    yield ""
    yield from _QUIETED
    yield support()
    if pipelines:
        yield pipeline_support()
    # The same data may stand in several headers, whose functions have other prefixes.
    all_sets, all_pipelines = _with(sets, overloads), _with(pipelines, pipeline_overloads)
    yield from _once(f"{unit}_data", _data(artifacts, all_sets, all_pipelines, unit))
    functions = list(heading(f"Public: the functions for {manifests[0].source.file}"))
    functions += list(_functions(sets, pipelines, manifests[0], unit, options))
    functions += _loading(load, f"{unit}_sets", len(all_sets))
    _check_names(functions)
    yield from _once(f"{unit}_{options.prefix}_functions", functions)
    guard = f"{unit}_{options.prefix}_overloads".upper()
    yield f"#if defined(__cplusplus) && !defined({guard})"
    yield f"#define {guard}"
    yield from heading("Public: the same in C++17")
    yield from _in_cxx(overloads, pipeline_overloads, unit, options.prefix)
    yield "#endif"
    yield ""
    yield "#pragma GCC diagnostic pop"


def _in_cxx(
    overloads: Sequence[tuple[str, Overload]],
    pipeline_overloads: Sequence[tuple[str, Overload]],
    unit: str,
    prefix: str,
) -> Iterator[str]:
    """The functions of namespace tilec; macros of their names that a program has are put aside."""
    kernels = list(dict.fromkeys(name for name, _ in overloads))
    pipelines = list(dict.fromkeys(name for name, _ in pipeline_overloads))
    words = [WORDS] * len(kernels) + [PIPELINE_WORDS] * len(pipelines)
    every = [f"{prefix}{name}" for name in (*kernels, *pipelines)]
    names = function_names(every, words)
    named = dict(zip((*kernels, *pipelines), names, strict=True))
    functions = [name + word for name, ends in zip(names, words, strict=True) for word in ends]
    for name in functions:
        yield f'#pragma push_macro("{name}")'
        yield f"#undef {name}"
    yield "namespace tilec {"
    yield ""
    for name, one in overloads:
        yield from overload_lines(named[name], one, set_name(unit, one.launched))
    for name, one in pipeline_overloads:
        launched = pipelines_name(unit, one.launched)
        yield from pipeline_overload_lines(named[name], one, launched)
    yield "} /* namespace tilec */"
    yield from (f'#pragma pop_macro("{name}")' for name in functions)


def _overloads_of(sets: Sequence[LaunchSet]) -> list[tuple[str, Overload]]:
    """The overloads of those that have the names of kernels, or of pipelines, with these names."""
    named = [launched for launched in sets if launched.name == launched.kernels[0].name]
    return [(launched.name, one) for launched in named for one in overloads_of(launched)]


def _with(sets: Sequence[LaunchSet], overloads: Iterable[tuple[str, Overload]]) -> list[LaunchSet]:
    """What functions and overloads launch, each once."""
    found = {one.name: one for one in sets}
    for _, one in overloads:
        found.setdefault(one.launched.name, one.launched)
    return list(found.values())


def _check_names(functions: Sequence[str]) -> None:
    """Raises SetupError if a function has the name of one of the support."""
    made = re.findall(r"^TILEC_PUBLIC \w+ (tilec_\w+)\(", "\n".join(functions), re.MULTILINE)
    own = set(re.findall(r"\btilec_\w+", support() + pipeline_support())) if made else ()
    for name in made:
        if name in own:
            why = "is a function of every header: choose a prefix (`--prefix`)"
            raise SetupError(f"`{name}` {why}")


def _once(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"#ifndef {name.upper()}"
    yield f"#define {name.upper()}"
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    yield ""
    yield from lines
    yield "#ifdef __cplusplus"
    yield '} /* extern "C" */'
    yield "#endif"
    yield "#endif"
    yield ""


def _data(
    artifacts: Sequence[Artifact],
    sets: Sequence[LaunchSet],
    pipelines: Sequence[LaunchSet],
    unit: str,
) -> Iterator[str]:
    yield from heading("Inner: the machine code, and the contracts as data")
    builds: list[Build] = []
    for artifact in artifacts:
        manifest = artifact.manifest
        cubin = f"{unit}_{identifier(manifest.target)}"
        yield from cubin_lines(artifact, cubin, sum(len(k.variants) for k in manifest.kernels))
        yield ""
        arrays = Arrays(cubin)
        names = {
            kernel.symbol: add_kernel(kernel, cubin, arrays, first)
            for kernel, first in variants_before(manifest)
        }
        yield from arrays.taken()
        builds.append(Build(manifest, cubin, arrays, names))
    for launched in sets:
        yield from set_lines(launched, builds, unit)
    if pipelines:
        yield from pipeline_lines(pipelines, builds, unit)
    yield f"static const tilec_set *const {unit}_sets[] = {{"
    yield from (f"    &{set_name(unit, launched)}," for launched in sets)
    yield "};"
    yield ""


def _functions(
    sets: Sequence[LaunchSet],
    pipelines: Sequence[LaunchSet],
    manifest: Manifest,
    unit: str,
    options: EmitOptions,
) -> Iterator[str]:
    for launched in sets:
        arguments = signature_of(launched)
        assert arguments is not None, "those without a signature were left out"
        name = f"{options.prefix}{identifier(launched.name)}"
        yield from contract_comment(launched, manifest, options.prefix)
        yield from function_lines(name, arguments, set_name(unit, launched))
    for launched in pipelines:
        arguments = signature_of(launched)
        assert arguments is not None, "those without a signature were left out"
        name = f"{options.prefix}{identifier(launched.name)}"
        yield from pipeline_comment(launched, manifest, options.prefix)
        yield from pipeline_functions(name, arguments, pipelines_name(unit, launched))


def _loading(name: str, sets: str, set_count: int) -> Iterator[str]:
    yield "/* Loads the machine code on a device now: otherwise the first launch there does. */"
    yield f"TILEC_PUBLIC tilec_status {name}_load(int32_t device)"
    yield "{"
    yield f"    return tilec_done(tilec_preload({sets}, {set_count}, device));"
    yield "}"
    yield ""
    yield "/* Gives it back, on all devices. Nothing of this file may run, or be launched. */"
    yield f"TILEC_PUBLIC void {name}_unload(void)"
    yield "{"
    yield f"    tilec_unload_all({sets}[0]);"
    yield "}"
    yield ""
