"""`NAME.pyi`: the types and contracts of what `NAME.py` has, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.python.callables import (
    TENSOR,
    CallSet,
    kernels_by_name,
    pipelines_by_name,
)
from tilec.emit.python.contract import contract
from tilec.emit.python.loader import MADE, module_names
from tilec.emit.python.text import attribute_names, docstring, parameter_names

_KERNEL_OPTIONS = ("stream: object = None", "order: bool = False")
_PIPELINE_OPTIONS = (
    "stream: object = None", "streams: int = 1", "workspace: TensorLike | None = None",
    "order: bool = False",
)  # fmt: skip
_LAUNCHES = (
    "Returns at once; the handle waits. Without a `stream` it is on PyTorch's current one if a",
    "tensor is PyTorch's, else on the default one. With `order` it comes after whatever under way",
    "on other streams conflicts with it; without, such a launch is refused.",
)
_RUNS = (
    *_LAUNCHES,
    "",
    "With several `streams`, launches that have no order run side by side. `workspace` is memory",
    "for the temporaries, `workspace_bytes` of it at a multiple of 256 bytes; without, it comes",
    "from the device's pool.",
)
_WIDTH = 100
# What `Module` of tilec.runtime is besides, and what the class of it is written with: a kernel of
# such a name is had by `module["NAME"]`.
_OF_MODULES = frozenset((
    "Literal", "code", "cubin", "driver", "instance", "manifest", "overload",
))  # fmt: skip


def stub_lines(manifest: Manifest, name: str, prefix: str) -> Iterator[str]:
    """A class for each kernel and pipeline, and the attributes of the module."""
    kernels = kernels_by_name(manifest)
    called = [*kernels, *pipelines_by_name(manifest)]
    yield from docstring(
        [
            f"Types and contracts of the kernels of {manifest.source.file}.",
            "",
            MADE.format(manifest.toolchain.tilec),
        ]
    )
    yield ""
    yield f"from typing import Literal{', overload' if len(called) > 1 else ''}"
    yield ""
    yield "import tilec.runtime as rt"
    yield "from tilec.runtime import TensorLike"
    yield ""
    for one in called:
        yield from _class_lines(one, manifest)
        yield ""
    yield from _module_lines(manifest, name, kernels, called)
    yield ""
    for attribute, one in zip(module_names(called, prefix), called, strict=True):
        yield f"{attribute}: {one.stub_class}"
    yield "module: Module"


def _class_lines(called: CallSet, manifest: Manifest) -> Iterator[str]:
    given = ["self", *_parameters(called)]
    told = list(contract(called, manifest.source.file))
    yield f"class {called.stub_class}:"
    yield from docstring(told, "    ")
    yield ""
    yield from _method("__call__", given, "None", [*told, "", "Returns when it is done."])
    yield ""
    options = _PIPELINE_OPTIONS if called.is_pipeline else _KERNEL_OPTIONS
    launches = _RUNS if called.is_pipeline else _LAUNCHES
    yield from _method("launch", [*given, "*", *options], "rt.Launch", [*told, "", *launches])
    yield ""
    planned = ["What these arguments would launch; launches nothing."]
    if not called.is_pipeline:
        yield from _method("plan", given, "rt.LaunchPlan", planned)
        return
    yield from _method("plan", [*given, "*", "workspace: int = ..."], "rt.PipelinePlan", planned)
    yield ""
    needed = ["How many bytes of workspace these arguments need."]
    yield from _method("workspace_bytes", given, "int", needed)
    yield ""
    graph = ["A CUDA graph of what these arguments launch."]
    yield from _method("graph", given, "rt.Graph", graph)


def _method(
    name: str, parameters: Sequence[str], result: str, told: Sequence[str]
) -> Iterator[str]:
    """A method, its parameters in one line if they have room."""
    line = f"    def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) <= _WIDTH:
        yield line
    else:
        yield f"    def {name}("
        yield from (f"        {parameter}," for parameter in parameters)
        yield f"    ) -> {result}:"
    yield from docstring(told, " " * 8)


def _parameters(called: CallSet) -> Iterator[str]:
    names = parameter_names([parameter.name for parameter in called.parameters])
    for position, name in enumerate(names):
        kind = called.kind_of(position)
        yield f"{name}: {'TensorLike' if kind == TENSOR else kind or 'float'}"


def _module_lines(
    manifest: Manifest, name: str, kernels: Sequence[CallSet], called: Sequence[CallSet]
) -> Iterator[str]:
    yield "class Module:"
    yield from docstring(
        [
            f"What `tilec.runtime.load` gives for {manifest.source.file}:",
            f'`cast("{name}.Module", tilec.runtime.load(…))`. It is a type only.',
        ],
        "    ",
    )
    yield ""
    taken = {*_OF_MODULES, *(one.stub_class for one in called)}
    names = attribute_names([one.name for one in called], taken.__contains__)
    for one, attribute in zip(called, names, strict=True):
        if attribute == one.name:
            yield f"    {attribute}: {one.stub_class}"
    for method, typed in (("__getitem__", called), ("instance", kernels)):
        for one in typed:
            symbols = [instance.symbol for instance in one.instances]
            if method == "__getitem__":
                symbols += [one.name, *_families(one, manifest)]
            yield ""
            if len(typed) > 1:
                yield "    @overload"
            listed = [f'"{symbol}"' for symbol in dict.fromkeys(symbols)]
            one_of = f"Literal[{', '.join(listed)}]"
            line = f"    def {method}(self, symbol: {one_of}) -> {one.stub_class}: ..."
            if len(line) <= _WIDTH:
                yield line
                continue
            yield f"    def {method}("
            yield "        self,"
            yield "        symbol: Literal["
            yield from (f"            {symbol}," for symbol in listed)
            yield "        ],"
            yield f"    ) -> {one.stub_class}: ..."


def _families(called: CallSet, manifest: Manifest) -> Iterator[str]:
    symbols = {instance.symbol for instance in called.instances}
    for family in manifest.families:
        if not symbols.isdisjoint(family.members):
            yield family.name
