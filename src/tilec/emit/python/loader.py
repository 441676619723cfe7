"""`NAME.py`: the kernels of a file as attributes of a module, which loads the cubin beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilec.artifact.manifest import Manifest
from tilec.emit.python.callables import CallSet, kernels_by_name, pipelines_by_name
from tilec.emit.python.text import docstring, identifier

MADE = "Made by tilec {}; changes are lost when it is made again."


def module_lines(
    manifest: Manifest, name: str, cubins: Mapping[str, str], prefix: str
) -> Iterator[str]:
    """The module. Importing it loads nothing; its first attribute loads the cubin."""
    called = [*kernels_by_name(manifest), *pipelines_by_name(manifest)]
    names = {identifier(f"{prefix}{one.name}"): one.name for one in called}
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
    yield "from __future__ import annotations"
    yield ""
    yield "try:"
    yield "    from tilec.runtime.beside import attributes"
    yield "except ImportError as error:"
    yield "    raise ImportError("
    yield f'        "{name}.py needs the package tilec, which launches its kernels"'
    yield "    ) from error"
    yield ""
    yield from cubin_lines(cubins)
    yield f"_NAMES = {_dictionary(names)}"
    yield ""
    yield "__getattr__, __dir__ = attributes(__file__, _CUBINS, _NAMES)"


def _arguments(called: CallSet) -> str:
    return ", ".join(parameter.name for parameter in called.parameters)


def cubin_lines(cubins: Mapping[str, str]) -> Iterator[str]:
    """The cubins by their targets."""
    yield f"_CUBINS = {_dictionary(cubins)}"


def _dictionary(items: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{key}": "{value}"' for key, value in items.items()) + "}"
