"""A program: the file that is compiled, the files it uses, and the items by name in each.

`use other::name;` looks for `other.tile` beside the file that says so, then in each include folder.
Reading is the caller's: a loader gives the text of a module, so that no disk is needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.source import SourceFile

if TYPE_CHECKING:
    from tilec.frontend.bindings import Constant

# Gives the file of a module, by its name and the file that uses it; None if there is none.
Loader = Callable[[str, SourceFile], "SourceFile | None"]
Parser = Callable[[SourceFile], "tuple[ast.File, list[Diagnostic]]"]


@dataclass(eq=False)
class Module:
    """One file: its items, and those that `use` brings in, each with the file it is written in."""

    source: SourceFile
    file: ast.File
    items: dict[str, ast.Function | ast.Const] = field(default_factory=dict)
    used: dict[str, tuple[Module, ast.Function | ast.Const]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)  # used, but not found: reported already
    # Those of its const items that were asked for, or what is wrong with them.
    values: dict[str, Constant | CompileError] = field(default_factory=dict)
    values_in_progress: set[str] = field(default_factory=set)

    def find(self, name: str) -> tuple[Module, ast.Function | ast.Const] | None:
        """An item by the name it has here, and the file that it is written in."""
        if name in self.items:
            return self, self.items[name]
        return self.used.get(name)

    def names(self) -> set[str]:
        return {*self.items, *self.used}


@dataclass(frozen=True)
class Program:
    """The file that is compiled and everything it uses; `sources` is every text by its name."""

    root: Module
    modules: dict[str, Module]
    sources: dict[str, SourceFile]
    # By identity, functions that call themselves: at least one of each circle of calls.
    recursive: set[int] = field(default_factory=set)


def no_other_files(name: str, user: SourceFile) -> SourceFile | None:
    """A loader for a program of one file."""
    return None


def load_program(
    source: SourceFile, parser: Parser, loader: Loader = no_other_files
) -> tuple[Program, list[Diagnostic]]:
    """The program whose first file is `source`, and what is wrong with its syntax and its `use`s.

    Files may use each other in a circle: only items depend on items.
    """
    diagnostics: list[Diagnostic] = []
    program = Program(_parse(source, parser, diagnostics), {}, {source.name: source})
    program.modules[source.name] = program.root
    pending = [program.root]
    while pending:
        pending += _load_used(pending.pop(), program, parser, loader, diagnostics)
    for module in program.modules.values():
        diagnostics += _resolve_uses(module, program, loader)
    return program, diagnostics


def _parse(source: SourceFile, parser: Parser, diagnostics: list[Diagnostic]) -> Module:
    file, found = parser(source)
    diagnostics += found
    module = Module(source, file)
    for item in file.items:
        if isinstance(item, ast.Use) or item.name.text == "_":
            continue  # `_`: what has no name that the parser would have
        known = module.items.setdefault(item.name.text, item)
        if known is not item:
            diagnostics.append(_defined_twice(item.name, known.name))
    return module


def _load_used(
    module: Module,
    program: Program,
    parser: Parser,
    loader: Loader,
    diagnostics: list[Diagnostic],
) -> Iterator[Module]:
    for use in module.file.items:
        if not isinstance(use, ast.Use):
            continue
        source = loader(use.module.text, module.source)
        if source is None or source.name in program.modules:
            continue
        program.sources[source.name] = source
        program.modules[source.name] = _parse(source, parser, diagnostics)
        yield program.modules[source.name]


def _resolve_uses(module: Module, program: Program, loader: Loader) -> Iterator[Diagnostic]:
    for use in module.file.items:
        if not isinstance(use, ast.Use) or not use.module.text:
            continue  # a `use` without a module is of a form that the parser has refused
        source = loader(use.module.text, module.source)
        if source is None:
            module.missing |= {name.text for name in use.names}
            yield from _unknown_module(use).diagnostics
            continue
        other = program.modules[source.name]
        for name in use.names:
            yield from _take(name, other, module)


def _take(name: ast.Name, other: Module, module: Module) -> Iterator[Diagnostic]:
    if name.text not in other.items:
        module.missing.add(name.text)
        yield Diagnostic(
            "E0201",
            f"unknown item `{name.text}` in `{other.source.name}`",
            (Label(name.span, "not found there"),),
            help=did_you_mean(name.text, other.items),
        )
        return
    if name.text in module.names():
        known = module.items.get(name.text)
        places = (known.name,) if known else ()
        yield _defined_twice(name, *places)
        return
    module.used[name.text] = (other, other.items[name.text])


def _unknown_module(use: ast.Use) -> CompileError:
    return refusal(
        "E0201",
        f"unknown file `{use.module.text}.tile`",
        use.module.span,
        "neither beside this file nor in an include folder",
    )


def _defined_twice(name: ast.Name, *earlier: ast.Name) -> Diagnostic:
    others = tuple(Label(other.span, "defined first") for other in earlier)
    labels = Label(name.span, "defined again"), *others
    return Diagnostic("E0205", f"the name `{name.text}` is defined twice", labels)
