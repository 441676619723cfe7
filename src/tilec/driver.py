"""The stages in order, and why in that order; nothing else.

Importing this module loads MLIR and every stage up to code generation, so commands import it only
when they compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from mlir import ir

from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline
from tilec.checks.check_borrows import check_borrows
from tilec.checks.check_bounds import outside_of
from tilec.checks.check_gpu_code import check_gpu_code, no_gpu_code
from tilec.checks.check_grids import grids_of
from tilec.checks.check_in_kernel import in_kernel_checks_of
from tilec.checks.check_launchable import contradictions_of
from tilec.checks.check_moves import check_moves
from tilec.checks.check_preconditions import check_preconditions
from tilec.checks.check_races import races_of
from tilec.checks.check_resources import check_resources, is_within_shared_memory
from tilec.checks.check_writes import check_writes
from tilec.codegen.describe import parameters_of, requirements_of
from tilec.codegen.size import TooLargeError
from tilec.codegen.spills import spills_of
from tilec.codegen.start_early import FOLLOWS, PRECEDES
from tilec.compilation import IN_KERNEL_CHECKS, Compiled, KernelReport, Options
from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.diagnostics.once import once
from tilec.frontend.check import check_all, unmatched_options
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.options import Options as FrontOptions
from tilec.frontend.parse import parse
from tilec.frontend.pipeline.trace import PipelineInstance
from tilec.frontend.pipeline.values import traced
from tilec.ir.dialect import context, declarations
from tilec.ir.places import span_of, text_with_places
from tilec.ir.walk import functions, operations
from tilec.ops.lowering import NoGpuCodeError
from tilec.ops.registry import rules
from tilec.pipelines.plan import followers, leaders, plan
from tilec.pipelines.preconditions import Contract, check_contracts
from tilec.proofs.account import accesses_of, coverage_of, shortfall_of
from tilec.proofs.mark import mark_residual
from tilec.proofs.proof import Proof
from tilec.recursion import deep_recursion
from tilec.shared_memory.plan_offsets import DoesNotFitError
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.stages import stage
from tilec.summaries import KernelSummaries
from tilec.target.resolve import resolve
from tilec.transforms.drop_markers import drop_markers
from tilec.transforms.inline_helpers import inline_helpers
from tilec.transforms.insert_traps import insert_traps
from tilec.transforms.simplify import simplify

if TYPE_CHECKING:
    from tilec.outputs import Outputs

# The checks, which read and never rewrite.
CHECKS = (check_writes, check_moves, check_borrows, check_preconditions)


def check_sources(sources: Sources, options: Options) -> Compiled:
    """What is wrong with a program; no outputs."""
    with context():
        front = front_end(sources, options)
        if front.compiled.is_refused or front.module is None:
            return front.compiled
        compiled = front.compiled
        if options.report:
            compiled = replace(compiled, reports=tuple(map(_report, front.proofs)))
        found = tuple(_beyond_shared_memory(front, options))
        return replace(compiled, diagnostics=(*compiled.diagnostics, *found))


def compile_sources(sources: Sources, options: Options, workers: int = 1) -> Compiled:
    """Everything that a program compiles to, or what is wrong with it.

    `workers`: how many processes may share the work, which changes no byte of it.
    """
    # Here and not above: `check` needs no code generation, and waits for every import.
    from tilec.outputs import describe_kernels, outputs_of

    with context():
        front = front_end(sources, options)
        if front.compiled.is_refused or front.module is None:
            return front.compiled
        found = list(check_gpu_code(front.module, front.sources))
        if found:
            return replace(front.compiled, diagnostics=(*front.compiled.diagnostics, *found))
        # Before any rewrite, so that launchers see grids and preconditions as they were written.
        with stage("description"):
            kernels = describe_kernels(front.proofs)
        if options.checked:
            for proof in front.proofs:
                mark_residual(proof)
            # Before any rewrite: divisions are told by the guards that the front end gave them.
            insert_traps(front.module, front.sources)
        # Before layouts are placed: MLIR cannot fold operations on tiles that have a layout.
        with stage("simplification"):
            drop_markers(front.module)
            simplify(front.module)
        try:
            made = outputs_of(kernels, sources, options, front.emitted, workers, front.pipelines)
            spilling = chain.from_iterable(
                spills_of(proof.function.location, _kernels(made, _symbol(proof)), front.sources)
                for proof in front.proofs
            )
            found = [*front.compiled.diagnostics, *spilling]
            return replace(front.compiled, outputs=made.files, diagnostics=tuple(found))
        except (NoGpuCodeError, DoesNotFitError, TooLargeError) as error:
            found = [_not_lowered(error, front.sources)]
        return replace(front.compiled, diagnostics=(*front.compiled.diagnostics, *found))


def _report(proof: Proof) -> KernelReport:
    coverage = coverage_of(proof)
    told = {one.tensor: shortfall_of(proof, one.tensor) for one in coverage}
    shortfalls = {tensor: why for tensor, why in told.items() if why is not None}
    return KernelReport(_symbol(proof), accesses_of(proof), coverage, shortfalls)


def _kernels(made: Outputs, symbol: str) -> dict[str, Kernel]:
    """An instance as it was built for each target."""
    return {
        target: kernel
        for target, manifest in made.manifests.items()
        for kernel in manifest.kernels
        if kernel.symbol == symbol
    }


def _symbol(proof: Proof) -> str:
    return str(ir.StringAttr(proof.function.attributes["sym_name"]).value)


def warm_up(sources: Sources) -> None:
    """Fill the tables that parsing and type-checking make as they go, so that forks inherit them.

    Leaves no MLIR context, which no fork may inherit.
    """
    declarations()
    program, found = load_program(sources.root, parse, sources.module)
    if not found:
        check_all(program)


@dataclass(frozen=True)
class Front:
    """A program after every check: the module with helpers inlined, unless something is wrong.

    `proofs` are about its kernels as they are: before any rewrite. `emitted` is the module in text
    form as the ownership checks saw it, if that is asked for. `pipelines` are planned.
    """

    compiled: Compiled
    module: ir.Module | None
    sources: dict[str, SourceFile]
    proofs: tuple[Proof, ...] = ()
    emitted: str | None = None
    pipelines: tuple[Pipeline, ...] = ()


def front_end(sources: Sources, options: Options) -> Front:
    """From text to checked IR; needs a current context."""
    if sources.problems:
        compiled = Compiled(diagnostics=sources.problems, used=(sources.root.name,))
        return Front(compiled, None, {})
    with stage("parsing"):
        program, found = load_program(sources.root, parse, sources.module)
    chosen = FrontOptions(options.defines, options.instances)
    diagnostics = list(found)
    module, proofs, emitted = None, [], None
    pipelines: list[Pipeline] = []
    # A program that does not parse is not typed: what is missing would be reported as unknown.
    if not diagnostics:
        with stage("types"):
            checked = check_all(program, chosen)
        diagnostics += checked.diagnostics
        if not _errors(diagnostics):
            with stage("emission"):
                module = emit(checked.kernels, program.sources)
            # Ownership is checked on helpers as they are written, before they are inlined.
            # Instances of one kernel have their faults in common.
            with stage("ownership"):
                diagnostics += once(d for check in CHECKS for d in check(module, program.sources))
            targets = map(resolve, options.targets)
            too_big = (d for t in targets for d in check_resources(module, program.sources, t))
            diagnostics += dict.fromkeys(too_big)
        # Proofs take for granted what the checks before have seen to: parts with one owner.
        if module is not None and not _errors(diagnostics):
            emitted = text_with_places(module) if "tile" in options.emit else None
            with stage("proofs"):
                inline_helpers(module)
                steps = options.proof_budget
                proofs = [Proof(function, steps) for function in functions(module)]
                diagnostics += once(_wrong(proofs, program.sources, options))
        # After proofs, which tell what kernels write in full and what they read before.
        if module is not None and not _errors(diagnostics):
            with stage("pipelines"):
                pipelines, found = _planned(checked.pipelines, proofs, program.sources)
            diagnostics += once(found)
    texts = {name: s.text for name, s in program.sources.items() if name not in sources.files}
    compiled = Compiled(
        diagnostics=tuple(diagnostics),
        used=tuple(name for name in program.sources if name in sources.files),
        texts=texts,
        unmatched=unmatched_options(program, chosen),
    )
    return Front(compiled, module, program.sources, tuple(proofs), emitted, tuple(pipelines))


def _planned(
    instances: Sequence[PipelineInstance],
    proofs: Sequence[Proof],
    sources: dict[str, SourceFile],
) -> tuple[list[Pipeline], list[Diagnostic]]:
    """The plans of pipelines; kernels are marked by where they launch them."""
    found: list[Diagnostic] = []
    pipelines: list[Pipeline] = []
    if not instances:
        return pipelines, found
    by_symbol = {_symbol(proof): proof for proof in proofs}
    for instance in instances:
        pipeline, wrong = traced(instance, sources)
        found += wrong
        if pipeline is None:
            continue
        symbols = {symbol for launch in pipeline.launches for symbol in launch.instances}
        launched = {symbol: by_symbol[symbol] for symbol in symbols}
        contracts = {symbol: _contract(proof) for symbol, proof in launched.items()}
        found += check_contracts(pipeline, contracts)
        made, wrong = plan(pipeline, KernelSummaries(launched))
        found += wrong
        pipelines += [made] if made is not None else []
    # Kernels that multiply make barriers, fetch tensor maps and meet in clusters before they load.
    slow_to_begin = {symbol for symbol, proof in by_symbol.items() if _multiplies(proof.function)}
    before = leaders(pipelines, slow_to_begin)
    for name, marked in ((FOLLOWS, followers(pipelines)), (PRECEDES, before)):
        for symbol in marked:
            by_symbol[symbol].function.attributes[name] = ir.UnitAttr.get()
    return pipelines, found


def _contract(proof: Proof) -> Contract:
    function = proof.function
    return Contract(parameters_of(function), requirements_of(function))


def _multiplies(function: ir.OpView) -> bool:
    asked = (rules()[op.operation.name].multiplied(op) for op in operations(function))
    return any(found is not None for found in asked)


def _wrong(
    proofs: Sequence[Proof], sources: dict[str, SourceFile], options: Options
) -> Iterator[Diagnostic]:
    """What proofs refuse, and what is left to ask at run time where that is denied."""
    with deep_recursion():
        for proof in proofs:
            different = list(grids_of(proof.reasoning, sources))
            yield from different
            if different:
                continue  # nothing is known of programs that have no one grid
            contradictions = list(contradictions_of(proof.reasoning, sources))
            yield from contradictions
            if contradictions:
                continue  # whatever is asked of programs that never run is so
            yield from races_of(proof.reasoning, sources)
            yield from outside_of(proof.reasoning, sources)
            if IN_KERNEL_CHECKS in options.deny:
                yield from in_kernel_checks_of(proof, sources)


def _beyond_shared_memory(front: Front, options: Options) -> Iterator[Diagnostic]:
    """E0702 for what has to go through shared memory, and is larger.

    Only layouts tell what has to. So where an operation works on more than there is, and nowhere
    else, a check goes as far as a build does, on the module itself, which nobody needs after.
    """
    assert front.module is not None, "the program is right"
    targets = [resolve(name) for name in options.targets]
    if all(is_within_shared_memory(front.module, target) for target in targets):
        return
    from tilec.machine_code import lower_all
    from tilec.outputs import describe_kernels

    if any(check_gpu_code(front.module, front.sources)):
        return
    kernels = describe_kernels(front.proofs)
    drop_markers(front.module)
    simplify(front.module)
    for target in targets:
        try:
            lower_all(kernels, target)
        except (NoGpuCodeError, TooLargeError):
            return
        except DoesNotFitError as error:
            yield _not_lowered(error, front.sources)
            return


def _errors(diagnostics: Sequence[Diagnostic]) -> bool:
    return any(d.severity is Severity.ERROR for d in diagnostics)


def _not_lowered(
    error: NoGpuCodeError | DoesNotFitError | TooLargeError, sources: dict[str, SourceFile]
) -> Diagnostic:
    span = span_of(error.location, sources)
    assert span is not None, "every operation has its place in the source"
    if isinstance(error, NoGpuCodeError):
        return no_gpu_code(span)
    if isinstance(error, TooLargeError):
        what = f"each thread has {error.count} operations, and at most {error.limit} are compiled"
        help = "compute what is the same once, or in a loop; smaller tiles, or more warps"
        return Diagnostic("E0702", "a kernel is too large", (Label(span, what),), help=help)
    what = f"this takes {error.needed} bytes, a block has {error.limit}"
    return Diagnostic("E0702", "a tile does not fit in shared memory", (Label(span, what),))
