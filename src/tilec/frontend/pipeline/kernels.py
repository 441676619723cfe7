"""The instances that a pipeline may launch: those of this file's kernels, and of used ones.

A launch that none of them is for asks for one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.attributes import Attributes, read_attributes
from tilec.frontend.bindings import Constant, Environment
from tilec.frontend.generics import check_generics
from tilec.frontend.instantiate import Instance, asked_instance, instances_of, names_instances
from tilec.frontend.modules import Module, Program
from tilec.frontend.options import ParsedOptions
from tilec.frontend.pipeline.again import Done, Key
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.source import Span
from tilec.types import Element, Type


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
    """A kernel with the instances that the program names; those that are wrong are left out."""

    module: Module
    function: ast.Function
    attributes: Attributes
    candidates: tuple[Candidate, ...]
    is_wrong: bool = False


@dataclass(eq=False)
class Kernels:
    """Kernels by the function.

    `launched` are the instances that are launched and that this file does not name, by symbol:
    those of other files' kernels, and those that launches ask for.
    """

    program: Program
    options: ParsedOptions
    diagnostics: list[Diagnostic] = field(default_factory=list)
    launched: dict[str, tuple[LaunchedKernel, Instance]] = field(default_factory=dict)
    calls: dict[Key, Done] = field(default_factory=dict)  # of pipelines that were executed
    _asked: dict[str, Candidate] = field(default_factory=dict)
    _known: dict[int, LaunchedKernel] = field(default_factory=dict)
    _names: dict[str, ast.Function] = field(default_factory=dict)

    def of(self, module: Module, function: ast.Function) -> LaunchedKernel:
        """The kernel, as it may be launched. Raises AlreadyReportedError if all of it is wrong."""
        if id(function) not in self._known:
            self._known[id(function)] = self._read(module, function)
        kernel = self._known[id(function)]
        if kernel.is_wrong and not kernel.candidates:
            raise AlreadyReportedError
        return kernel

    def ask(
        self, kernel: LaunchedKernel, values: Mapping[str, Element | Constant], span: Span
    ) -> Candidate:
        """The instance with these generics, made if there is none.

        Raises:   CompileError: E02xx, E03xx; E0701 for generics without a value
        """
        instance = asked_instance(kernel.function, kernel.attributes, self.options, values, span)
        for one in kernel.candidates:
            if one.instance.symbol == instance.symbol:
                return one
        environment = Environment(kernel.module, instance.generics)
        try:
            made = Candidate(instance, parameters_of(kernel.function, environment))
        except CompileError as error:
            raise CompileError(*(where_asked(d, instance) for d in error.diagnostics)) from None
        return self._asked.setdefault(f"{id(kernel.function)} {instance.symbol}", made)

    def is_launched(self, function: ast.Function) -> bool:
        """Whether some pipeline launches a kernel, rightly or not."""
        return id(function) in self._known

    def is_asked_for(self, instance: Instance) -> bool:
        """Whether only a launch asks for an instance, at its place."""
        return any(one.instance is instance for one in self._asked.values())

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
        for one in chosen:
            if kernel.module is not self.program.root or one not in kernel.candidates:
                self.launched.setdefault(one.instance.symbol, (kernel, one.instance))

    def _read(self, module: Module, function: ast.Function) -> LaunchedKernel:
        attributes, found = read_attributes(function, module)
        if any(check_generics(function)):
            return LaunchedKernel(module, function, attributes, (), is_wrong=True)
        if not names_instances(function, attributes, self.options):
            self.diagnostics += found
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
        return LaunchedKernel(module, function, attributes, tuple(candidates), bool(wrong))


def where_asked(diagnostic: Diagnostic, instance: Instance) -> Diagnostic:
    """What is wrong with an instance that only a launch asks for, with its place."""
    asked = Label(instance.span, "launched with these types and constants here")
    return replace(diagnostic, labels=(*diagnostic.labels, asked))


def parameters_of(function: ast.Function, environment: Environment) -> tuple[Parameter, ...]:
    """The parameters of a function with its generics known. Raises CompileError E02xx, E03xx."""
    found = []
    for parameter in function.parameters:
        type_ = resolve_type(parameter.type, environment)
        pattern = parameter.pattern
        name = pattern.name.text if isinstance(pattern, ast.BindingPattern) else "_"
        found.append(Parameter(name, type_, parameter.span))
    return tuple(found)
