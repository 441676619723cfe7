"""`NAME.py`, `NAME.pyi` and `NAME_torch.py` beside the cubins of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.python.loader import module_lines
from tilec.emit.python.stub import stub_lines
from tilec.emit.python.text import identifier
from tilec.emit.python.torch_file import torch_lines


def emit_python(
    artifacts: Sequence[Artifact], stem: str, options: EmitOptions
) -> Mapping[str, bytes]:
    """The module, its stub, and the operations of PyTorch, for the cubins of one program."""
    manifests = [artifact.manifest for artifact in artifacts]
    cubins = {manifest.target: f"{stem}.{manifest.target}.cubin" for manifest in manifests}
    name = identifier(stem)
    return {
        f"{name}.py": _text(module_lines(manifests[0], name, cubins, options.prefix)),
        f"{name}.pyi": _text(stub_lines(manifests[0], name, options.prefix)),
        f"{identifier(f'{stem}_torch')}.py": _text(
            torch_lines(manifests[0], stem, cubins, options.prefix)
        ),
    }


def _text(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
