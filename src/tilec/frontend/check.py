"""The front end's checks of a whole program: names, attributes, instances, types.

Takes a loaded program, gives the typed instances that are to be emitted and everything that is
wrong. Never raises for a wrong program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.diagnostics.once import once
from tilec.frontend import ast, typed
from tilec.frontend.attributes import Attributes, read_attributes
from tilec.frontend.call_graph import check_recursion
from tilec.frontend.constants import const_item
from tilec.frontend.generics import check_generics, is_dim
from tilec.frontend.instantiate import instances_of, names_instances
from tilec.frontend.modules import Module, Program
from tilec.frontend.names import check_names
from tilec.frontend.options import Options, ParsedOptions, parse_options
from tilec.frontend.pipeline.check import check_pipeline
from tilec.frontend.pipeline.kernels import Kernels, where_asked
from tilec.frontend.pipeline.trace import PipelineInstance
from tilec.frontend.typecheck import check_kernel
from tilec.recursion import deep_recursion
from tilec.source import Span


@dataclass(frozen=True)
class Checked:
    """What comes of a program: its kernels, those of used files that its pipelines launch too."""

    kernels: list[typed.KernelInstance]
    pipelines: list[PipelineInstance]
    diagnostics: list[Diagnostic]


def check_program(
    program: Program, options: Options | None = None
) -> tuple[list[typed.KernelInstance], list[Diagnostic]]:
    """The kernels of `check_all`, and what is wrong with the program."""
    checked = check_all(program, options)
    return checked.kernels, checked.diagnostics


def check_all(program: Program, options: Options | None = None) -> Checked:
    """The instances of every kernel and pipeline of the first file, and what is wrong with it.

    What several instances have in common is reported once. `program.sources` gains the texts of
    options, so that diagnostics can point into them.
    """
    with deep_recursion():
        return _check_program(program, options or Options())


def _check_program(program: Program, options: Options) -> Checked:
    parsed, found = parse_options(options)
    program.sources.update(parsed.sources)
    instances: list[typed.KernelInstance] = []
    pipelines: list[PipelineInstance] = []
    reached: list[ast.Function] = []
    kernels = Kernels(program, parsed)
    for module in program.modules.values():
        found += _check_constants(module)
    found += check_recursion(program)
    unnamed: list[ast.Function] = []
    for item in program.root.items.values():
        if isinstance(item, ast.Function):
            made, wrong, called = _check_function(program, item, parsed, unnamed)
            instances += made
            found += wrong
            reached += called
    for item in program.root.items.values():
        if isinstance(item, ast.Function):
            planned, wrong, called = _check_pipeline(program, item, parsed, kernels)
            pipelines += planned
            found += wrong
            reached += called
    found += kernels.diagnostics
    made, wrong, called = _check_launched(program, kernels)
    instances += made
    found += wrong
    reached += called
    for item in unnamed:
        if not kernels.is_launched(item):
            attributes, _ = read_attributes(item, program.root)
            found += instances_of(item, attributes, program.root, parsed)[1]  # E0701
    found += _clashes(instances, pipelines)
    found += _unwritable(instances, pipelines)
    checked = {id(function) for function in reached}
    for module in program.modules.values():
        for item in module.items.values():
            if isinstance(item, ast.Function) and id(item) not in checked:
                found += check_names(item, module)
    return Checked(instances, pipelines, list(once(found)))


def unmatched_options(program: Program, options: Options) -> tuple[str, ...]:
    """The options that nothing in this program takes: a driver of several files reports those."""
    parsed, _ = parse_options(options)
    # A pipeline may launch kernels of used files.
    modules = program.modules.values() if _has_pipelines(program) else [program.root]
    items = [item for module in modules for item in module.items.values()]
    kernels = [item for item in items if isinstance(item, ast.Function)]
    generics = {g.name.text for kernel in kernels for g in kernel.generics if not is_dim(g)}
    names = {kernel.name.text for kernel in kernels}
    defines = (
        f"-D {name}={text}" for name, (text, _) in parsed.defines.items() if name not in generics
    )
    requests = (r.span.file for r in parsed.requests if r.kernel not in names)
    return (*defines, *requests)


def _has_pipelines(program: Program) -> bool:
    functions = (f for f in program.root.items.values() if isinstance(f, ast.Function))
    return any(a.name.text == "pipeline" for f in functions for a in f.attributes)


def _clashes(
    kernels: Sequence[typed.KernelInstance], pipelines: Sequence[PipelineInstance]
) -> Iterator[Diagnostic]:
    """E0205 for each symbol that two things have: callers tell them apart by it."""
    named = [(name, one.span) for one in kernels for name in dict.fromkeys((one.symbol, one.name))]
    named += [(one.symbol, one.span) for one in pipelines]
    seen: dict[str, Span] = {}
    for name, span in named:
        first = seen.setdefault(name, span)
        if first != span:
            labels = Label(span, "defined again"), Label(first, "defined first")
            yield Diagnostic("E0205", f"the symbol `{name}` is defined twice", labels)


def _unwritable(
    kernels: Sequence[typed.KernelInstance], pipelines: Sequence[PipelineInstance]
) -> Iterator[Diagnostic]:
    """E0102 for each kernel and pipeline whose name machine code and C cannot have."""
    named = [*((k.name, k.span) for k in kernels), *((p.name, p.span) for p in pipelines)]
    for name, span in named:
        if not name.isascii():
            what = "the names of kernels and pipelines have letters of ASCII only"
            help = "the names of parameters, variables and other functions may have any"
            yield Diagnostic("E0102", what, (Label(span, "a symbol of what is built"),), help=help)


def _check_constants(module: Module) -> Iterator[Diagnostic]:
    for item in module.items.values():
        if isinstance(item, ast.Const):
            try:
                const_item(module, item)
            except CompileError as error:
                yield from error.diagnostics


_Checked = tuple[list[typed.KernelInstance], list[Diagnostic], list[ast.Function]]


def _check_function(
    program: Program,
    function: ast.Function,
    options: ParsedOptions,
    unnamed: list[ast.Function],
) -> _Checked:
    """Kernels that name no instances are left to launches, and noted as `unnamed`."""
    attributes, found = read_attributes(function, program.root)
    wrong_generics = list(check_generics(function))
    found += wrong_generics
    if attributes.kernel is None or wrong_generics:
        return [], found, []
    if not names_instances(function, attributes, options):
        unnamed.append(function)
        return [], found, []
    return _check_kernel(program, function, attributes, options, found)


def _check_kernel(
    program: Program,
    kernel: ast.Function,
    attributes: Attributes,
    options: ParsedOptions,
    found: list[Diagnostic],
) -> _Checked:
    requested, wrong = instances_of(kernel, attributes, program.root, options)
    found += wrong
    made: list[typed.KernelInstance] = []
    reached: list[ast.Function] = []
    by_instance: dict[str, list[Diagnostic]] = {}
    for request in requested:
        instance, wrong, called = check_kernel(program, program.root, kernel, attributes, request)
        by_instance[request.symbol] = wrong
        reached += [kernel, *called]
        if instance is not None:
            made.append(instance)
    return made, [*found, *_with_instances(by_instance)], reached


def _check_launched(program: Program, kernels: Kernels) -> _Checked:
    """The instances that pipelines launch and that this file does not name: they are built, too."""
    made: list[typed.KernelInstance] = []
    reached: list[ast.Function] = []
    by_instance: dict[str, list[Diagnostic]] = {}
    for symbol, (kernel, instance) in kernels.launched.items():
        function, attributes = kernel.function, kernel.attributes
        typed_kernel, wrong, called = check_kernel(
            program, kernel.module, function, attributes, instance
        )
        if kernels.is_asked_for(instance):
            wrong = [where_asked(d, instance) for d in wrong]
        by_instance[symbol] = wrong
        reached += [function, *called]
        if typed_kernel is not None:
            made.append(typed_kernel)
    return made, [*_with_instances(by_instance)], reached


def _check_pipeline(
    program: Program, function: ast.Function, options: ParsedOptions, kernels: Kernels
) -> tuple[list[PipelineInstance], list[Diagnostic], list[ast.Function]]:
    attributes, _ = read_attributes(function, program.root)
    if attributes.pipeline is None or any(check_generics(function)):
        return [], [], []
    requested, found = instances_of(function, attributes, program.root, options)
    made: list[PipelineInstance] = []
    reached: list[ast.Function] = []
    by_instance: dict[str, list[Diagnostic]] = {}
    for request in requested:
        instance, wrong, called = check_pipeline(program, function, attributes, request, kernels)
        by_instance[request.symbol] = wrong
        reached += [function, *called]
        if instance is not None:
            made.append(instance)
    return made, [*found, *_with_instances(by_instance)], reached


def _with_instances(by_instance: dict[str, list[Diagnostic]]) -> Iterator[Diagnostic]:
    """What was found in the instances; what is not wrong in all of them says where it is."""
    everywhere = [{(d.code, d.message, d.span) for d in found} for found in by_instance.values()]
    for symbol, found in by_instance.items():
        for d in found:
            if all((d.code, d.message, d.span) in keys for keys in everywhere):
                yield d
            else:
                yield replace(d, notes=(*d.notes, f"in the instance `{symbol}`"))
