"""The stages in order, and why in that order; nothing else.

Importing this module loads every stage, so commands import it only when they compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from mlir import ir

from tilec import __version__
from tilec.artifact.embed import embed
from tilec.artifact.manifest import Manifest, Source, Toolchain, to_json
from tilec.checks.check_borrows import check_borrows
from tilec.checks.check_gpu_code import check_gpu_code, no_gpu_code
from tilec.checks.check_grids import check_grids
from tilec.checks.check_moves import check_moves
from tilec.checks.check_writes import check_writes
from tilec.codegen.describe import describe
from tilec.compilation import INTERMEDIATE, Compiled, Executed, Options
from tilec.diagnostics import Diagnostic, Severity
from tilec.frontend.check import check_program, unmatched_options
from tilec.frontend.emit import emit
from tilec.frontend.instantiate import Options as FrontOptions
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.interpret.contract import BrokenContract
from tilec.interpret.launch import changes, launch, read_arguments, tensor_named
from tilec.interpret.npy import written_npy
from tilec.ir.dialect import context
from tilec.ir.places import span_of
from tilec.machine_code import Instance, Tools, compile_kernels
from tilec.ops.lowering import NoGpuCodeError
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.description import Target
from tilec.target.resolve import resolve
from tilec.target.toolchain import libdevice, ptxas, ptxas_version
from tilec.transforms.drop_markers import drop_markers
from tilec.transforms.inline_helpers import inline_helpers
from tilec.transforms.simplify import simplify

# tilec's own passes, by the name that `tilec opt` knows them by.
PASSES: dict[str, Callable[[ir.Module, Target], None]] = {}

# The checks of ownership, which read and never rewrite.
CHECKS = (check_writes, check_moves, check_borrows, check_grids)


def check_sources(sources: Sources, options: Options) -> Compiled:
    """What is wrong with a program; no outputs."""
    with context():
        return _front(sources, options).compiled


def compile_sources(sources: Sources, options: Options) -> Compiled:
    """Everything that a program compiles to, or what is wrong with it."""
    with context():
        front = _front(sources, options)
        if front.compiled.is_refused or front.module is None:
            return front.compiled
        # The ownership checks were the last to see helpers as they are written.
        inline_helpers(front.module)
        found = list(check_gpu_code(front.module, front.sources))
        if not found:
            try:
                outputs = _outputs(front.module, sources, options)
                return replace(front.compiled, outputs=outputs)
            except NoGpuCodeError as error:
                found = [_no_gpu_code(error, front.sources)]
        return replace(front.compiled, diagnostics=(*front.compiled.diagnostics, *found))


def execute(
    sources: Sources,
    options: Options,
    kernel: str,
    given: Mapping[str, bytes | int | float | bool],
    wanted: Sequence[str],
) -> Executed:
    """Run a kernel on the CPU; tensors come in and go out as the bytes of `.npy` files.

    `wanted` are the tensors to write; without any, what changed is shown.
    """
    with context():
        front = _front(sources, options)
        if front.compiled.is_refused or front.module is None:
            return Executed(front.compiled)
        try:
            arguments = read_arguments(given)
            after = launch(front.module, kernel, arguments)
            written = {name: written_npy(tensor_named(after, name)) for name in wanted}
        except BrokenContract as broken:
            return Executed(front.compiled, broken=str(broken))
        return Executed(front.compiled, written, "" if wanted else changes(arguments, after))


@dataclass(frozen=True)
class _Front:
    """A program after every check: the module, unless something is wrong."""

    compiled: Compiled
    module: ir.Module | None
    sources: dict[str, SourceFile]


def _front(sources: Sources, options: Options) -> _Front:
    if sources.problems:
        compiled = Compiled(diagnostics=sources.problems, used=(sources.root.name,))
        return _Front(compiled, None, {})
    program, found = load_program(sources.root, parse, sources.module)
    chosen = FrontOptions(options.defines, options.instances)
    diagnostics = list(found)
    module = None
    # A program that does not parse is not typed: what is missing would be reported as unknown.
    if not diagnostics:
        instances, found = check_program(program, chosen)
        diagnostics += found
        if not _errors(diagnostics):
            module = emit(instances, program.sources)
            # Ownership is checked on helpers as they are written, before they are inlined.
            diagnostics += [d for check in CHECKS for d in check(module, program.sources)]
    texts = {name: s.text for name, s in program.sources.items() if name not in sources.files}
    compiled = Compiled(
        diagnostics=tuple(diagnostics),
        used=tuple(name for name in program.sources if name in sources.files),
        texts=texts,
        unmatched=unmatched_options(program, chosen),
    )
    return _Front(compiled, module, program.sources)


def _errors(diagnostics: Sequence[Diagnostic]) -> bool:
    return any(d.severity is Severity.ERROR for d in diagnostics)


def _no_gpu_code(error: NoGpuCodeError, sources: dict[str, SourceFile]) -> Diagnostic:
    span = span_of(error.location, sources)
    assert span is not None, "every operation has its place in the source"
    return no_gpu_code(span)


def instances_of(module: ir.Module) -> list[Instance]:
    """The kernels of a checked module without helpers, ready for any target; it is rewritten."""
    # Before MLIR's rewrites, so that launchers see grids and preconditions as they were written.
    described = [describe(function) for function in module.body.operations]
    # Before layouts are placed: MLIR cannot fold operations on tiles that have a layout.
    drop_markers(module)
    simplify(module)
    return [
        Instance(function, told)
        for function, told in zip(module.body.operations, described, strict=True)
    ]


def _outputs(module: ir.Module, sources: Sources, options: Options) -> dict[str, bytes]:
    """The files of one program, by name."""
    stem = Path(sources.root.name).stem
    instances = instances_of(module)
    if not instances:
        return {}  # only helpers and constants, for other files to use
    outputs: dict[str, bytes] = {}
    if "mlir" in options.emit:
        outputs[f"{stem}.mlir"] = f"{module}\n".encode()
    for name in options.targets:
        target = resolve(name)
        made = compile_kernels(instances, target, Tools(ptxas(), libdevice()))
        manifest = Manifest(
            source=Source(Path(sources.root.name).name, sources.digests[sources.root.name]),
            toolchain=Toolchain(__version__, _mlir_version(), ptxas_version()),
            target=target.name,
            kernels=made.kernels,
        )
        text = to_json(manifest)
        outputs[f"{stem}.{target.name}.cubin"] = embed(made.image, text.encode())
        single = len(options.targets) == 1
        outputs[f"{stem}.json" if single else f"{stem}.{target.name}.json"] = text.encode()
        for step, suffix in INTERMEDIATE.items():
            if step in options.emit and step != "mlir":
                content = {"llvm": made.llvm, "ptx": made.ptx}[step]
                outputs[f"{stem}.{target.name}{suffix}"] = content.encode()
    return outputs


def _mlir_version() -> str:
    return version("xtc-mlir-python-bindings")
