"""Packs cubins, runtime, tests and benchmarks for a machine with a GPU and without the compiler.

    python tests/gpu/pack.py build/gpu-bundle.tar.gz [--wheels 3.12]

There: `tar xf gpu-bundle.tar.gz && cd gpu-bundle && make test-gpu PYTHON=python3`, with numpy,
pytest, click and cuda-python, which `--wheels` puts in for one version of Python
(`pip install --no-index --find-links wheels numpy pytest click cuda-python`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

NAME = "gpu-bundle"
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
    "src/tilec/py.typed",
    "src/tilec/artifact",
    "src/tilec/runtime",
)
NEEDED_THERE = ("numpy", "pytest", "click", "cuda-python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--wheels", metavar="PYTHON", help="put in wheels for this Python (3.12)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "build")
        kernels = sorted(map(str, Path("kernels").glob("*.tile")))
        build = [sys.executable, "-m", "tilec", "build", *kernels]
        subprocess.run([*build, "-o", str(built), "--target", TARGETS], check=True)
        wheels = Path(folder, "wheels")
        if arguments.wheels:
            _download(wheels, arguments.wheels)
        arguments.bundle.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(arguments.bundle, "w:gz") as bundle:
            for name in PACKED:
                bundle.add(name, f"{NAME}/{name}", filter=_without_caches)
            bundle.add(built, f"{NAME}/build")
            if arguments.wheels:
                bundle.add(wheels, f"{NAME}/wheels")
    print(arguments.bundle)


def _download(folder: Path, python: str) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    where = ["--python-version", python, "--dest", str(folder)]
    subprocess.run([*pip, *where, *NEEDED_THERE], check=True)


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry


if __name__ == "__main__":
    main()
