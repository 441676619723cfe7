"""Packs cubins, runtime, tests and benchmarks for a machine with a GPU and without the compiler.

    python tests/gpu/pack.py build/gpu-bundle [--wheels 3.12]

There: `cd gpu-bundle && make test-gpu PYTHON=python3`, with numpy, pytest, click and cuda-python,
which `--wheels` puts in for one version of Python
(`pip install --no-index --find-links wheels numpy pytest click cuda-python`). The folder is also
packed as `gpu-bundle.tar.gz` beside it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from cubins import FOLDER

# Both run on an H100; `sm_90` takes the path of `sm_80`, whose cubins do not load there.
TARGETS = "sm_90a,sm_90"
# What runs without the compiler; the rest of `src/tilec` is not needed there.
PACKED = (
    "Makefile",
    "pyproject.toml",
    "benchmarks",
    "kernels",
    "tests/gpu",
    "tests/kernels/cases.py",
    "src/tilec/__init__.py",
    "src/tilec/__main__.py",
    "src/tilec/py.typed",
    "src/tilec/artifact",
    "src/tilec/bench",
    "src/tilec/runtime",
    # The command `tilec bench`, and what reports for it.
    "src/tilec/buildsystem",
    "src/tilec/cli",
    "src/tilec/compilation.py",
    "src/tilec/diagnostics",
    "src/tilec/source.py",
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
    if arguments.wheels:
        _download(bundle / "wheels", arguments.wheels)
    archive = bundle.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(bundle, bundle.name)
    print(f"{bundle}/, {archive}: {archive.stat().st_size / 2**20:.1f} MiB")


def copy(bundle: Path) -> None:
    """Copies what runs without the compiler."""
    for name in PACKED:
        target = bundle / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(name).is_dir():
            shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(name, target)


def build(folder: Path) -> None:
    """Builds the kernels, the tests' programs, and what those must give."""
    tests = folder / FOLDER
    _run("tests.gpu.accuracy_programs", str(tests))
    programs = [*sorted(Path("tests/programs").glob("*.tile")), Path("tests/gpu/large.tile")]
    programs.append(tests / "accuracy.tile")
    for sources, target in ((sorted(Path("kernels").glob("*.tile")), folder), (programs, tests)):
        names = map(str, sources)
        _run("tilec", "build", *names, "-o", str(target), "--target", TARGETS)
    checked = [*sorted(Path("kernels").glob("*.tile")), Path("tests/gpu/trapping.tile")]
    places = ["-o", str(tests / "checked"), "--target", TARGETS]
    _run("tilec", "build", "--checked", *map(str, checked), *places)
    _run("tests.programs.expect", str(tests))


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


def _download(folder: Path, python: str) -> None:
    pip = ["pip", "download", "--quiet", "--only-binary=:all:"]
    where = ["--python-version", python, "--platform", "manylinux_2_28_x86_64"]
    _run(*pip, *where, "--dest", str(folder), *NEEDED_THERE)


if __name__ == "__main__":
    main()
