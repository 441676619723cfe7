"""`NAME.py`: the kernels of a file as attributes of a module, which loads the cubin beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.python.callables import CallSet, kernels_by_name, names_of, pipelines_by_name
from tilec.emit.python.text import docstring, quoted

# What the module has beside its kernels, and what its types are written with.
_TAKEN = (
    "Literal", "Module", "TensorLike", "_CUBINS", "_NAMES", "_attributes", "bool", "float", "int",
    "module", "object", "overload", "rt",
)  # fmt: skip

MADE = "Made by tilec {}; changes are lost when it is made again."


def module_lines(
    manifest: Manifest, name: str, cubins: Mapping[str, str], prefix: str
) -> Iterator[str]:
    """The module. Importing it loads nothing; its first attribute loads the cubin."""
    called = [*kernels_by_name(manifest), *pipelines_by_name(manifest)]
    attributes = module_names(called, prefix)
    names = dict(zip(attributes, [one.name for one in called], strict=True))
    yield from docstring(
        [
            f"Kernels of {manifest.source.file}: {', '.join(names)}.",
            "",
            *(f"    {name}.{one}({_arguments(called[i])})" for i, one in enumerate(names)),
            "",
            "As `tilec.runtime.load` gives them; the cubin lies beside this file, and is loaded",
            f"when it is first needed. {name}.pyi has the types and contracts.",
            "",
            MADE.format(manifest.toolchain.tilec),
        ]
    )
    yield ""
    yield "try:"
    yield "    from tilec.runtime.beside import attributes as _attributes"
    yield "except ImportError as error:"
    yield "    raise ImportError("
    yield f'        "{name}.py needs the package tilec, which launches its kernels"'
    yield "    ) from error"
    yield ""
    yield from cubin_lines(cubins)
    yield f"_NAMES = {_dictionary(names)}"
    yield ""
    yield "__getattr__, __dir__ = _attributes(__file__, _CUBINS, _NAMES)"


def module_names(called: Sequence[CallSet], prefix: str) -> list[str]:
    """What the module and its stub call each of these."""
    return names_of(called, prefix, {*_TAKEN, *(one.stub_class for one in called)}.__contains__)


def _arguments(called: CallSet) -> str:
    return ", ".join(parameter.name for parameter in called.parameters)


def cubin_lines(cubins: Mapping[str, str]) -> Iterator[str]:
    """The cubins by their targets."""
    yield f"_CUBINS = {_dictionary(cubins)}"


def _dictionary(items: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quoted(key)}: {quoted(value)}" for key, value in items.items()) + "}"
