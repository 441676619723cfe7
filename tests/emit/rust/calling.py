"""The functions of an emitted file of Rust, called from Python as those of a header are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.emit.launching import CUBIN, Headers
from tests.emit.rust.compiler import compiled_rust
from tilec.artifact.manifest import Manifest
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header.sets import LaunchSet, launch_sets
from tilec.emit.header.text import identifier
from tilec.emit.rust import emit_rust
from tilec.emit.rust.emit import support
from tilec.emit.rust.signature import Signature, signature_of

SHIM = Path(__file__).with_name("shim.rs")


class RustLaunchers(Headers):
    """A file's functions with a fake driver, in a library of their own in `folder`.

    `inside` is put at the end of the support part, where it sees all of it.
    """

    def __init__(
        self, manifests: Sequence[Manifest], folder: Path, tools: Path, inside: str = ""
    ) -> None:
        self._tools, self._manifests = tools, manifests
        signatures = {one: signature_of(one) for one in launch_sets(manifests[0])}
        self.sets = {one.name: one for one, taken in signatures.items() if taken is not None}
        artifacts = [Artifact(manifest, CUBIN) for manifest in manifests]
        [(name, text)] = emit_rust(artifacts, "sample", EmitOptions()).items()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.decode().replace(support(), support() + inside))
        shim = SHIM.read_text(encoding="utf-8")
        calls = [_call(one, taken) for one, taken in signatures.items() if taken is not None]
        (folder / "shim.rs").write_text(shim + "\n".join(calls))
        self.path = folder / "libshim.so"
        compiled_rust("--crate-type=cdylib", "-Dwarnings", "-o", self.path, folder / "shim.rs")
        self.open(self.path)


def _call(launched: LaunchSet, signature: Signature) -> str:
    passed = []
    for i, one in enumerate(signature.arguments):
        if one.parameter.is_tensor:
            passed.append(f"tilec::Argument::tensor(&tensors[{i}])")
        elif one.rust_type in ("f32", "f64"):
            passed.append(f"tilec::Argument::real(r({i}) as {one.rust_type})")
        elif one.rust_type == "bool":
            passed.append(f"tilec::Argument::truth(w({i}) != 0)")
        else:
            kind = one.rust_type.replace("usize", "i64")
            passed.append(f"tilec::Argument::whole(w({i}) as {kind})")
    names = f"shim_{launched.name}, SET_{identifier(launched.name)}, tensors, w, r"
    return f"shim! {{ {names}, {', '.join(passed)} }}"
