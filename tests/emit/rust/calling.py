"""The functions of an emitted file of Rust, called from Python as those of a header are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.emit.launching import CUBIN
from tests.emit.pipeline_calling import Pipelines
from tests.emit.rust.compiler import compiled_rust
from tilec.artifact.manifest import Manifest
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header.pipelines import pipeline_sets
from tilec.emit.header.sets import LaunchSet, launch_sets
from tilec.emit.header.text import identifier
from tilec.emit.rust import emit_rust
from tilec.emit.rust.emit import support
from tilec.emit.rust.pipelines import pipelines_name
from tilec.emit.rust.signature import signature_of

SHIM = Path(__file__).with_name("shim.rs")
# What of the shim is for files that have pipelines.
_OF_PIPELINES = "#[repr(C)]\npub struct Extra", "macro_rules! shim {"


class RustLaunchers(Pipelines):
    """A file's functions with a fake driver, in a library of their own in `folder`.

    `inside` is put at the end of the support part, where it sees all of it.
    """

    def __init__(
        self, manifests: Sequence[Manifest], folder: Path, tools: Path, inside: str = ""
    ) -> None:
        self._tools, self._manifests = tools, manifests
        self.sets = {one.name: one for one in launch_sets(manifests[0])}
        self.pipelines = {one.name: one for one in pipeline_sets(manifests[0])}
        artifacts = [Artifact(manifest, CUBIN) for manifest in manifests]
        [(name, text)] = emit_rust(artifacts, "sample", EmitOptions()).items()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.decode().replace(support(), support() + inside))
        (folder / "shim.rs").write_text(self._shim())
        self.path = folder / "libshim.so"
        compiled_rust("--crate-type=cdylib", "-Dwarnings", "-o", self.path, folder / "shim.rs")
        self.open(self.path)

    def _shim(self) -> str:
        shim = SHIM.read_text(encoding="utf-8")
        if not self.pipelines:
            start, end = map(shim.index, _OF_PIPELINES)
            shim = shim[:start] + shim[end:]
        calls = [
            _call(one, "shim", f"SET_{identifier(one.name)}") for one in self.sets.values()
        ] + [_call(one, "pipe", pipelines_name(one)) for one in self.pipelines.values()]
        return shim + "\n".join(calls)


def _call(launched: LaunchSet, kind: str, data: str) -> str:
    signature = signature_of(launched)
    assert signature is not None, "the samples have no others"
    passed = []
    for i, one in enumerate(signature.arguments):
        if one.parameter.is_tensor:
            passed.append(f"tilec::Argument::tensor(&tensors[{i}])")
        elif one.rust_type in ("f32", "f64"):
            passed.append(f"tilec::Argument::real(r({i}) as {one.rust_type})")
        elif one.rust_type == "bool":
            passed.append(f"tilec::Argument::truth(w({i}) != 0)")
        else:
            passed.append(
                f"tilec::Argument::whole(w({i}) as {one.rust_type.replace('usize', 'i64')})"
            )
    return f"{kind}! {{ {kind}_{launched.name}, {data}, tensors, w, r, {', '.join(passed)} }}"
