"""`NAME_torch.py`: an operation of PyTorch for each kernel and pipeline, into tensors that are
given, and one that makes its results where it can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.artifact.manifest import Manifest
from tilec.emit.python.callables import (
    TENSOR,
    CallSet,
    kernels_by_name,
    names_of,
    pipelines_by_name,
    results_of,
)
from tilec.emit.python.contract import contract
from tilec.emit.python.loader import MADE, cubin_lines
from tilec.emit.python.text import docstring, identifier, parameter_names

# What the file imports and has beside its operations, and what its types are written with.
_TAKEN = (
    "Operations", "_CUBINS", "_operations", "annotations", "bool", "float", "int", "torch", "tuple",
)  # fmt: skip

# By what `CallSet.kind_of` says: the type in Python, and that of PyTorch's schemas.
_TYPES = {
    TENSOR: ("torch.Tensor", "Tensor"),
    "float": ("float", "float"),
    "int": ("int", "SymInt"),
    "bool": ("bool", "bool"),
}


@dataclass(frozen=True)
class Operation:
    """One operation: `results` are the positions of the tensors that it makes, none if it writes
    into those that it is given."""

    name: str
    called: CallSet
    results: tuple[int, ...] = ()

    @property
    def given(self) -> tuple[int, ...]:
        """The positions of the arguments."""
        every = range(len(self.called.parameters))
        return tuple(i for i in every if i not in self.results)


def operations_of(manifest: Manifest, prefix: str) -> list[Operation]:
    """All operations; each name is there once. Those whose numbers are of different kinds in
    different instances are left out: a schema has one type for each."""
    called = [
        one
        for one in (*kernels_by_name(manifest), *pipelines_by_name(manifest))
        if all(one.kind_of(i) is not None for i in range(len(one.parameters)))
    ]
    names = names_of(called, prefix, _is_taken)
    taken = set(names)
    found: list[Operation] = []
    for name, one in zip(names, called, strict=True):
        into = f"{name}_out"
        while into in taken:
            into += "_"
        taken.add(into)
        results = results_of(one)
        if results:
            found.append(Operation(name, one, results))
        found.append(Operation(into, one))
    return found


def _is_taken(name: str) -> bool:
    return name in _TAKEN or (name.startswith("_") and name.endswith("_operation"))


def torch_lines(
    manifest: Manifest, stem: str, cubins: Mapping[str, str], prefix: str
) -> Iterator[str]:
    """The file. Importing it defines the operations, and loads no cubin."""
    operations = operations_of(manifest, prefix)
    namespace = identifier(f"tilec_{stem}")
    yield from docstring(_about(manifest, namespace, operations))
    yield ""
    yield "from __future__ import annotations"
    yield ""
    yield from _imports(identifier(f"{stem}_torch"))
    yield ""
    yield from cubin_lines(cubins)
    yield f'_operations = Operations("{namespace}", __file__, _CUBINS)'
    for operation in operations:
        yield ""
        yield ""
        yield from _operation_lines(operation, manifest)


def _about(manifest: Manifest, namespace: str, operations: Sequence[Operation]) -> Iterator[str]:
    yield f"Operations of PyTorch for the kernels of {manifest.source.file}."
    yield ""
    for operation in operations:
        names = parameter_names([p.name for p in operation.called.parameters])
        made = "".join(f"{names[i]}, " for i in operation.results).rstrip(", ")
        given = ", ".join(names[i] for i in operation.given)
        yield f"    {made + ' = ' if made else ''}{operation.name}({given})"
    yield ""
    yield f"They are in `torch.ops.{namespace}`, stay in the graph of `torch.compile`, run on"
    yield "PyTorch's current stream, and have no derivatives. The cubin lies beside this file, and"
    yield "is loaded when it is first needed."
    yield ""
    yield MADE.format(manifest.toolchain.tilec)


def _imports(name: str) -> Iterator[str]:
    for line, package in (
        ("import torch", "PyTorch"),
        ("from tilec.runtime.torch_operations import Operations", "the package tilec"),
    ):
        yield "try:"
        yield f"    {line}"
        yield "except ImportError as error:"
        yield f'    raise ImportError("{name}.py needs {package}") from error'


def _operation_lines(operation: Operation, manifest: Manifest) -> Iterator[str]:
    called = operation.called
    names = parameter_names([p.name for p in called.parameters])
    kinds = [_TYPES[called.kind_of(i) or TENSOR] for i in range(len(names))]
    results = len(operation.results)
    made = {0: "None", 1: "torch.Tensor"}.get(
        results, f"tuple[{', '.join(['torch.Tensor'] * results)}]"
    )
    own = f"_{operation.name}_operation"
    yield f"{own} = _operations.{'making' if results else 'into'}("
    yield f'    "{operation.name}",'
    yield f'    "{_schema(operation, names)}",'
    yield f'    "{called.name}",'
    yield ")"
    yield ""
    yield ""
    annotated = ", ".join(f"{names[i]}: {kinds[i][0]}" for i in operation.given)
    yield f"def {operation.name}({annotated}) -> {made}:"
    yield from docstring(_contract(operation, manifest), "    ")
    passed = ", ".join(names[i] for i in operation.given)
    yield f"    {'return ' if results else ''}{own}({passed})"


def _contract(operation: Operation, manifest: Manifest) -> Iterator[str]:
    yield from contract(operation.called, manifest.source.file)
    if operation.results:
        names = [operation.called.parameters[i].name for i in operation.results]
        yield ""
        yield f"Makes {' and '.join(f'`{name}`' for name in names)}."


def _schema(operation: Operation, names: Sequence[str]) -> str:
    """What PyTorch is told: types, what is written, what is made."""
    called = operation.called
    given: list[str] = []
    written = 0
    for i in operation.given:
        type_of = _TYPES[called.kind_of(i) or TENSOR][1]
        if called.parameters[i].is_written:
            type_of = f"Tensor(a{written}!)"
            written += 1
        given.append(f"{type_of} {names[i]}")
    made = ", ".join(["Tensor"] * len(operation.results))
    return f"({', '.join(given)}) -> {made if len(operation.results) == 1 else f'({made})'}"
