"""The files of one program: cubins, manifests, and what `--emit` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tilec import __version__
from tilec.artifact.embed import embed
from tilec.artifact.families import families_of
from tilec.artifact.family import Family
from tilec.artifact.manifest import Manifest, Source, Toolchain, to_json
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.pipelines import faults_of_pipelines
from tilec.artifact.tuning_file import TuningFile, from_text, with_tables
from tilec.codegen.describe import describe
from tilec.codegen.fatbin import join
from tilec.compilation import INTERMEDIATE, LAUNCHERS, Options
from tilec.emit.emitter import Artifact, EmitOptions, Emitter
from tilec.emit.header import emit_header
from tilec.emit.python import emit_python
from tilec.emit.rust import emit_rust
from tilec.fingerprint import code_fingerprint
from tilec.ir.dialects import load_all
from tilec.machine_code import MachineCode, Tools, compile_kernels
from tilec.proofs.mark import mark
from tilec.proofs.proof import Proof
from tilec.sources import Sources
from tilec.stages import stage
from tilec.target.resolve import resolve
from tilec.target.toolchain import fatbinary, libdevice, ptxas, ptxas_version
from tilec.variant import Instance

_EMITTERS: dict[str, Emitter] = dict(
    zip(LAUNCHERS, (emit_header, emit_rust, emit_python), strict=True)
)


def warm_up() -> None:
    """Do here what every build does, so that forks inherit it.

    Raises:   SetupError where a tool is missing
    """
    load_all()
    ptxas_version()
    _mlir_version()


def describe_kernels(proofs: Sequence[Proof]) -> list[Instance]:
    """Every kernel, with what launchers are to know of it; what was proved is marked on it."""
    for proof in proofs:
        mark(proof)
    return [Instance(proof.function, describe(proof)) for proof in proofs]


@dataclass(frozen=True)
class Outputs:
    """The files of one program by their names, and what cubins hold by the target."""

    files: Mapping[str, bytes]
    manifests: Mapping[str, Manifest]


def outputs_of(
    kernels: Sequence[Instance],
    sources: Sources,
    options: Options,
    emitted: str | None = None,
    workers: int = 1,
    pipelines: Sequence[Pipeline] = (),
) -> Outputs:
    """The content of each file by its name, for each target the manifest last; launchers before.

    `emitted` is the module as the front end made it, in text, if that is wanted. So many processes
    as `workers` may share the work.
    """
    if not kernels:
        return Outputs({}, {})  # only helpers and constants, for other files to use
    stem = Path(sources.root.name).stem
    joiner = fatbinary() if options.fatbin else None
    outputs: dict[str, bytes] = {}
    if emitted is not None:
        outputs[f"{stem}{INTERMEDIATE['tile']}"] = emitted.encode()
    if "mlir" in options.emit:
        module = kernels[0].function.operation.parent
        outputs[f"{stem}{INTERMEDIATE['mlir']}"] = f"{module}\n".encode()
    files = {one.description.symbol: one.function.location.filename for one in kernels}
    artifacts: list[Artifact] = []
    manifests: dict[str, bytes] = {}
    for name in options.targets:
        target = resolve(name)
        tools = Tools(ptxas(), libdevice())
        with_llvm = "llvm" in options.emit
        made = compile_kernels(kernels, target, tools, with_llvm=with_llvm, workers=workers)
        for step, text in (("llvm", made.llvm), ("ptx", made.ptx)):
            if step in options.emit:
                outputs[f"{stem}.{target.name}{INTERMEDIATE[step]}"] = text.encode()
        with stage("manifest"):
            families = _tuned(families_of(made.kernels), sources, files, target.name)
            manifest = _manifest(made, target.name, sources, options, families, tuple(pipelines))
            as_json = to_json(manifest).encode()
            cubin = embed(made.image, as_json)
        outputs[f"{stem}.{target.name}.cubin"] = cubin
        is_single = len(options.targets) == 1
        manifests[f"{stem}.json" if is_single else f"{stem}.{target.name}.json"] = as_json
        artifacts.append(Artifact(manifest, cubin))
    if joiner is not None:
        cubins = {artifact.manifest.target: artifact.cubin for artifact in artifacts}
        outputs[f"{stem}.fatbin"] = join(cubins, joiner)
    for language in LAUNCHERS:
        if language in options.emit:
            with stage("launchers"):
                outputs |= _EMITTERS[language](artifacts, stem, EmitOptions(options.prefix))
    built = {artifact.manifest.target: artifact.manifest for artifact in artifacts}
    return Outputs(outputs | manifests, built)


def _tuned(
    families: Sequence[Family], sources: Sources, files: Mapping[str, str], target: str
) -> tuple[Family, ...]:
    """The families, each with what was measured of it where it is written; `files` go by symbol."""
    texts = dict(sources.used_tuning)
    if sources.tuning is not None:
        texts[sources.root.name] = sources.tuning
    tuning = {file: from_text(text) for file, text in texts.items()}
    return tuple(
        tuned
        for family in families
        for tuned in with_tables(
            [family], tuning.get(files[family.members[0]], TuningFile()), target
        )
    )


def _manifest(
    made: MachineCode,
    target: str,
    sources: Sources,
    options: Options,
    families: tuple[Family, ...],
    pipelines: tuple[Pipeline, ...],
) -> Manifest:
    file = sources.root.name
    manifest = Manifest(
        source=Source(Path(file).name, sources.digests[file]),
        toolchain=Toolchain(
            *(__version__, _mlir_version(), ptxas_version()),
            compiler=code_fingerprint(__version__, _mlir_version(), ptxas_version()),
        ),
        target=target,
        checked=options.checked,
        kernels=made.kernels,
        families=families,
        pipelines=pipelines,
    )
    # Order and memory of pipelines are proved again, by what knows nothing of how they were made.
    faults = list(faults_of_pipelines(manifest))
    assert not faults, f"a plan is wrong: {faults[0]}"
    return manifest


@cache
def _mlir_version() -> str:
    try:
        return version("xtc-mlir-python-bindings")
    except PackageNotFoundError:  # another build of the same bindings
        return "unknown"
