"""The instances that a pipeline may launch: those of this file's kernels, and of used ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.attributes import Attributes, read_attributes
from tilec.frontend.bindings import Environment
from tilec.frontend.generics import check_generics
from tilec.frontend.instantiate import Instance, instances_of
from tilec.frontend.modules import Module, Program
from tilec.frontend.options import ParsedOptions
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.source import Span
from tilec.types import Type


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel or pipeline, its types and constants known."""

    name: str
    type: Type
    span: Span


@dataclass(frozen=True)
class Candidate:
    """One instance of a kernel, with the types of its parameters."""

    instance: Instance
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel with its instances."""

    module: Module
    function: ast.Function
    attributes: Attributes
    candidates: tuple[Candidate, ...]


@dataclass(eq=False)
class Kernels:
    """Kernels by the function; `foreign` are the symbols of other files' that are launched."""

    program: Program
    options: ParsedOptions
    diagnostics: list[Diagnostic] = field(default_factory=list)
    foreign: dict[str, tuple[LaunchedKernel, Instance]] = field(default_factory=dict)
    _known: dict[int, LaunchedKernel] = field(default_factory=dict)
    _names: dict[str, ast.Function] = field(default_factory=dict)

    def of(self, module: Module, function: ast.Function) -> LaunchedKernel:
        """The kernel, as it may be launched. Raises AlreadyReportedError if it has no instance."""
        if id(function) not in self._known:
            self._known[id(function)] = self._read(module, function)
        kernel = self._known[id(function)]
        if not kernel.candidates:
            raise AlreadyReportedError
        return kernel

    def launch(self, kernel: LaunchedKernel, chosen: tuple[Candidate, ...], span: Span) -> None:
        """Note that some of a kernel's instances are launched.

        Raises:   CompileError E0205 if a kernel of another file has its name
        """
        name = kernel.function.name
        root = self.program.root.items.get(name.text)
        other = self._names.setdefault(
            name.text, root if isinstance(root, ast.Function) else kernel.function
        )
        if other is not kernel.function:
            raise refusal(
                "E0205",
                f"two kernels of one build have the name `{name.text}`",
                span,
                "launched here",
                Label(name.span, "this one"),
                Label(other.name.span, "the other one"),
                help="give one of them another name",
            )
        if kernel.module is not self.program.root:
            for one in chosen:
                self.foreign.setdefault(one.instance.symbol, (kernel, one.instance))

    def _read(self, module: Module, function: ast.Function) -> LaunchedKernel:
        attributes, found = read_attributes(function, module)
        if any(check_generics(function)):
            return LaunchedKernel(module, function, attributes, ())
        instances, wrong = instances_of(function, attributes, module, self.options)
        candidates = []
        for instance in instances:
            try:
                parameters = parameters_of(function, Environment(module, instance.generics))
            except CompileError as error:
                wrong += error.diagnostics
                continue
            candidates.append(Candidate(instance, parameters))
        self.diagnostics += [*found, *wrong]
        return LaunchedKernel(module, function, attributes, tuple(candidates))


def parameters_of(function: ast.Function, environment: Environment) -> tuple[Parameter, ...]:
    """The parameters of a function with its generics known. Raises CompileError E02xx, E03xx."""
    found = []
    for parameter in function.parameters:
        type_ = resolve_type(parameter.type, environment)
        pattern = parameter.pattern
        name = pattern.name.text if isinstance(pattern, ast.BindingPattern) else "_"
        found.append(Parameter(name, type_, parameter.span))
    return tuple(found)
