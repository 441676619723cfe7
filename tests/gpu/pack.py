"""Packs cubins, runtime, tests and benchmarks for a machine with a GPU and without the compiler.

    python tests/gpu/pack.py build/gpu-bundle [--wheels 3.12]

There: `cd gpu-bundle && make test-gpu PYTHON=python3`, with numpy, pytest, click and cuda-python,
which `--wheels` puts in for one version of Python
(`pip install --no-index --find-links wheels numpy pytest click cuda-python`). The folder is also
packed as `gpu-bundle.tar.xz` beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jsonschema
from cubins import FOLDER

from tilec.artifact.embed import extract
from tilec.target.toolchain import ptxas

PTXAS = Path(__file__).with_name("ptxas_for_sm_90")

# What runs on an H100: its own code, and that of sm_80, assembled for it (`ptxas_for_sm_90`).
TARGET, OLDER = "sm_90a", "sm_80"
OLDER_HERE = "sm_80-on-sm_90"
# What runs without the compiler; the rest of `src/tilec` is not needed there.
PACKED = (
    "Makefile",
    "pyproject.toml",
    "benchmarks",
    "examples",
    "kernels",
    "tests/gpu",
    "tests/emit/calling.py",
    "tests/emit/pipeline_calling.py",
    "tests/emit/toolchain.py",
    "tests/kernels/cases.py",
    "tests/kernels/problem.py",
    "tests/kernels/products.py",
    "tests/unit/raw_launcher.py",
    "src/tilec/__init__.py",
    "src/tilec/__main__.py",
    "src/tilec/py.typed",
    "src/tilec/artifact",
    "src/tilec/bench",
    "src/tilec/emit",
    "src/tilec/printable.py",
    "src/tilec/regular_files.py",
    "src/tilec/runtime",
    # The command `tilec bench`, and what reports for it.
    "src/tilec/buildsystem",
    "src/tilec/cli",
    "src/tilec/compilation.py",
    "src/tilec/diagnostics",
    "src/tilec/leftovers.py",
    "src/tilec/private_folder.py",
    "src/tilec/source.py",
    "src/tilec/stages.py",
    "src/tilec/unfinished.py",
    "src/tilec/whole_files.py",
    # The command `tilec tune`.
    "src/tilec/tune",
)
# Programs of the tests beside this file.
GPU_PROGRAMS = (
    "tests/gpu/clustered.tile",
    "tests/gpu/early.tile",
    "tests/gpu/large.tile",
)
NEEDED_THERE = ("numpy", "pytest", "click", "cuda-python", "cuda-core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--wheels", metavar="PYTHON", help="put in wheels for this Python (3.12)")
    arguments = parser.parse_args()
    bundle: Path = arguments.bundle
    shutil.rmtree(bundle, ignore_errors=True)
    copy(bundle)
    build(bundle / "build")
    for project, names in (("c", ("axpy", "unit")), ("cpp", ("axpy",))):
        folder = bundle / "examples" / project / "build"
        sources = [Path(f"examples/c/{name}.tile") for name in names]
        _build(sources, folder, TARGET, "--emit", "header")
    if shutil.which("cargo"):
        _build_with_cargo(Path("examples/rust"), bundle / "examples/rust/build")
    folder = bundle / "examples/python/build"
    _build([Path("examples/python/gated.tile")], folder, TARGET, "--emit", "python")
    _validate(bundle / "build")
    if arguments.wheels:
        _download(bundle / "wheels", arguments.wheels)
    archive = bundle.with_suffix(".tar.xz")
    with tarfile.open(archive, "w:xz", preset=1) as packed:
        packed.add(bundle, bundle.name)
    print(f"{bundle}/, {archive}: {archive.stat().st_size / 2**20:.1f} MiB")


def copy(bundle: Path) -> None:
    """Copies what runs without the compiler."""
    for name in PACKED:
        target = bundle / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(name).is_dir():
            shutil.copytree(
                name, target, ignore=shutil.ignore_patterns("__pycache__", "build", "target")
            )
        else:
            shutil.copy(name, target)


def build(folder: Path) -> None:
    """Builds the kernels, the tests' programs, and what those must give."""
    tests = folder / FOLDER
    _run("tests.gpu.accuracy_programs", str(tests))
    _run("tests.programs.generate", str(tests))
    _run("tests.gpu.mapped_kernels", str(tests))
    programs = [*sorted(Path("tests/programs").glob("*.tile")), *map(Path, GPU_PROGRAMS)]
    programs += sorted(tests.glob("*.tile"))
    kernels = sorted(Path("kernels").glob("*.tile"))
    pipelines = sorted(Path("tests/pipelines/programs").glob("*.tile"))
    for sources, target in ((kernels, folder), (programs, tests), (pipelines, tests / "pipelines")):
        _build_for_both(sources, target)
    _build([*kernels, Path("tests/gpu/trapping.tile")], tests / "checked", TARGET, "--checked")
    _build([Path("kernels/add.tile")], tests / "joined", f"{OLDER},{TARGET}", "--fatbin")
    _run("tests.programs.expect", str(tests))
    if shutil.which("rustc"):
        cubins = [
            *folder.glob(f"*.{TARGET}.cubin"),
            *(tests / "pipelines").glob(f"*.{TARGET}.cubin"),
            tests / f"clustered.{TARGET}.cubin",
        ]
        _run("tests.emit.rust.library", str(tests / "rust"), *map(str, cubins))


def _build_with_cargo(project: Path, folder: Path) -> None:
    """The program of a project, for machines without cargo."""
    with tempfile.TemporaryDirectory() as made:
        environment = {"CARGO_TARGET_DIR": made, "TILEC": f"{sys.executable} -m tilec"}
        command = ["cargo", "build", "-q", "--release", "--offline"]
        subprocess.run(command, check=True, cwd=project, env={**os.environ, **environment})
        folder.mkdir()
        shutil.copy(Path(made, "release", "axpy"), folder)


def _build_for_both(sources: Sequence[Path], folder: Path) -> None:
    """Cubins of `TARGET`, and those of `OLDER` as an H100 loads them."""
    older = {"TILEC_PTXAS": str(PTXAS.absolute()), "TILEC_TESTS_PTXAS": str(ptxas())}
    _build(sources, folder, OLDER, **older)
    for cubin in folder.glob(f"*.{OLDER}.cubin"):
        # The manifest says for what the code was written; the loader asks on what it runs.
        text = cubin.read_bytes().replace(b'"target": "sm_80"', b'"target": "sm_90"')
        cubin.with_name(
            f"{cubin.name.removesuffix(f'{OLDER}.cubin')}{OLDER_HERE}.cubin"
        ).write_bytes(text)
        cubin.unlink()
    _build(sources, folder, TARGET)


def _build(
    sources: Sequence[Path], folder: Path, target: str, *options: str, **environment: str
) -> None:
    arguments = ["-q", *options, *map(str, sources), "-o", str(folder), "--target", target]
    _run("tilec", "build", *arguments, **environment)


def _run(module: str, *arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    subprocess.run(command, check=True, env={**os.environ, **environment})


def _validate(folder: Path) -> None:
    """That every manifest meets the published schema."""
    schema = json.loads(Path("src/tilec/artifact/manifest.schema.json").read_text())
    checker = jsonschema.Draft202012Validator(schema)
    for path in folder.rglob("*.cubin"):
        checker.validate(json.loads(extract(path.read_bytes()) or b"null"))


def _download(folder: Path, python: str) -> None:
    pip = ["pip", "download", "--quiet", "--only-binary=:all:"]
    where = ["--python-version", python, "--platform", "manylinux_2_28_x86_64"]
    _run(*pip, *where, "--dest", str(folder), *NEEDED_THERE)


if __name__ == "__main__":
    main()
