"""The functions of an emitted file of Rust in a library, under the names of those of a header.

`python -m tests.emit.rust.library FOLDER CUBIN…` makes one of each cubin, called after it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.emit.toolchain import run
from tilec.artifact.embed import extract
from tilec.artifact.manifest import Manifest, from_json
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.rust import emit_rust
from tilec.emit.rust.emit import support
from tilec.emit.rust.pipelines import PIPELINES
from tilec.emit.rust.signature import signature_of
from tilec.emit.sets import LaunchSet, launch_sets, pipeline_sets

SHIM = Path(__file__).with_name("shim.rs")
# What of the shim is for files that have pipelines.
_OF_PIPELINES = "#[repr(C)]\npub struct Extra", "macro_rules! shim {"


def rust_library(
    manifests: Sequence[Manifest], cubin: bytes, folder: Path, inside: str = ""
) -> Path:
    """Compiles the library into the folder, by a rustc that must be there.

    `inside` is put at the end of the support part, where it sees all of it.
    """
    artifacts = [Artifact(manifest, cubin) for manifest in manifests]
    [(name, text)] = emit_rust(artifacts, "sample", EmitOptions()).items()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text.decode().replace(support(), support() + inside))
    (folder / "shim.rs").write_text(_shim(manifests[0]))
    made = folder / "libshim.so"
    flags = "--edition=2021", "--crate-type=cdylib", "-Cstrip=symbols", "-Dwarnings"
    done = run("rustc", *flags, "-o", made, folder / "shim.rs")
    assert done.returncode == 0 and not done.stderr, done.stderr[:4000]
    return made


def _shim(manifest: Manifest) -> str:
    sets, pipelines = launch_sets(manifest), pipeline_sets(manifest)
    shim = SHIM.read_text(encoding="utf-8")
    if not pipelines:
        start, end = map(shim.index, _OF_PIPELINES)
        shim = shim[:start] + shim[end:]
    calls = [_call(one, "shim", f"SET_{one.name}") for one in sets]
    calls += [_call(one, "pipe", f"{PIPELINES}{one.name}") for one in pipelines]
    return shim + "\n".join(calls)


def _call(launched: LaunchSet, kind: str, data: str) -> str:
    signature = signature_of(launched)
    assert not signature.numbers, "the samples have no numbers of several kinds"
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


def main(folder: Path, cubins: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for cubin in cubins:
        image = cubin.read_bytes()
        embedded = extract(image)
        assert embedded is not None, f"{cubin} holds no manifest"
        with tempfile.TemporaryDirectory() as made:
            library = rust_library([from_json(embedded)], image, Path(made))
            shutil.copy(library, folder / f"{cubin.name.removesuffix('.cubin')}.so")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
