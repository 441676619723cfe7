"""`NAME.py`, `NAME.pyi` and `NAME_torch.py` beside the cubins of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.python.loader import module_lines
from tilec.emit.python.stub import stub_lines
from tilec.emit.python.text import identifier, module_name
from tilec.emit.python.torch_file import torch_lines


def python_files(stem: str) -> tuple[str, str, str]:
    """The names of the module, its stub and the operations of PyTorch.

    Where two stems differ in these, so do the namespaces of their operations.
    """
    name = module_name(stem)
    return f"{name}.py", f"{name}.pyi", f"{identifier(f'{stem}_torch')}.py"


def emit_python(
    artifacts: Sequence[Artifact], stem: str, options: EmitOptions
) -> Mapping[str, bytes]:
    """The module, its stub, and the operations of PyTorch, for the cubins of one program."""
    manifests = [artifact.manifest for artifact in artifacts]
    cubins = {manifest.target: f"{stem}.{manifest.target}.cubin" for manifest in manifests}
    name, prefix = module_name(stem), options.prefix
    module, stub, operations = python_files(stem)
    return {
        module: _text(module_lines(manifests[0], name, cubins, prefix)),
        stub: _text(stub_lines(manifests[0], name, prefix)),
        operations: _text(torch_lines(manifests[0], stem, cubins, prefix)),
    }


def _text(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
