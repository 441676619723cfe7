"""`NAME.pyi`: the types and contracts of what `NAME.py` has, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.python.callables import (
    TENSOR,
    CallSet,
    kernels_by_name,
    names_of,
    pipelines_by_name,
)
from tilec.emit.python.contract import contract
from tilec.emit.python.loader import MADE, TAKEN
from tilec.emit.python.text import docstring, identifier, parameter_names

_KERNEL_OPTIONS = "stream: object = None, order: bool = False"
_PIPELINE_OPTIONS = (
    "stream: object = None, streams: int = 1, workspace: TensorLike | None = None, "
    "order: bool = False"
)
# What `Module` of tilec.runtime is besides: a kernel of such a name is had by `module["NAME"]`.
_OF_MODULES = frozenset({"manifest", "driver", "cubin", "code", "instance"})


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
    yield from _module_lines(manifest, kernels, called)
    yield ""
    for attribute, one in zip(names_of(called, prefix, TAKEN), called, strict=True):
        yield f"{attribute}: {_class(one)}"
    yield "module: Module"


def _class(called: CallSet) -> str:
    return f"_{'Pipeline' if called.is_pipeline else 'Kernel'}_{called.name}"


def _class_lines(called: CallSet, manifest: Manifest) -> Iterator[str]:
    given = ", ".join(_parameters(called))
    first = f"self, {given}" if given else "self"
    told = list(contract(called, manifest.source.file))
    yield f"class {_class(called)}:"
    yield from docstring(told, "    ")
    yield ""
    yield f"    def __call__({first}) -> None:"
    yield from docstring([*told, "", "Returns when it is done."], " " * 8)
    yield ""
    options = _PIPELINE_OPTIONS if called.is_pipeline else _KERNEL_OPTIONS
    yield "    def launch("
    yield f"        {first}, *, {options}"
    yield "    ) -> rt.Launch:"
    yield from docstring([*told, "", "Returns at once; the handle waits."], " " * 8)
    yield ""
    if not called.is_pipeline:
        yield f"    def plan({first}) -> rt.LaunchPlan: ..."
        return
    yield f"    def plan({first}, *, workspace: int = ...) -> rt.PipelinePlan: ..."
    yield ""
    yield f"    def workspace_bytes({first}) -> int:"
    yield from docstring(["How many bytes of workspace these arguments need."], " " * 8)
    yield ""
    yield f"    def graph({first}) -> rt.Graph:"
    yield from docstring(["A CUDA graph of what these arguments launch."], " " * 8)


def _parameters(called: CallSet) -> Iterator[str]:
    names = parameter_names([parameter.name for parameter in called.parameters])
    for position, name in enumerate(names):
        kind = called.kind_of(position)
        yield f"{name}: {'TensorLike' if kind == TENSOR else kind or 'float'}"


def _module_lines(
    manifest: Manifest, kernels: Sequence[CallSet], called: Sequence[CallSet]
) -> Iterator[str]:
    yield "class Module:"
    yield from docstring(
        [
            f"What `tilec.runtime.load` gives for {manifest.source.file}:",
            "`cast(Module, tilec.runtime.load(…))`.",
        ],
        "    ",
    )
    yield ""
    for one in called:
        if identifier(one.name) == one.name and one.name not in _OF_MODULES:
            yield f"    {one.name}: {_class(one)}"
    for method, typed in (("__getitem__", called), ("instance", kernels)):
        for one in typed:
            names = [instance.symbol for instance in one.instances]
            if method == "__getitem__":
                names += [one.name, *_families(one, manifest)]
            yield ""
            if len(typed) > 1:
                yield "    @overload"
            listed = ", ".join(f'"{name}"' for name in dict.fromkeys(names))
            yield f"    def {method}(self, symbol: Literal[{listed}]) -> {_class(one)}: ..."


def _families(called: CallSet, manifest: Manifest) -> Iterator[str]:
    symbols = {instance.symbol for instance in called.instances}
    for family in manifest.families:
        if not symbols.isdisjoint(family.members):
            yield family.name
