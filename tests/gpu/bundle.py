"""Packs what a GPU machine needs into one folder: cubins, tests, and the runtime they use.

    python tests/gpu/bundle.py --cubins build --out build/gpu-bundle

There, with Python, numpy, pytest and cuda-python, but no tilec installed:

    cd gpu-bundle && python -m pytest
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import click

import tilec

HERE = Path(__file__).parent
PACKAGES = ("artifact", "runtime")  # all of tilec that the runtime imports

PYTEST_INI = """\
[pytest]
pythonpath = .
testpaths = tests/gpu
addopts = -m gpu --strict-markers -rs
markers =
    gpu: needs a CUDA device and prebuilt cubins
"""


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--cubins", type=click.Path(path_type=Path, exists=True), default=Path("build"))
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/gpu-bundle"))
@click.option("--wheels", type=click.Path(path_type=Path, exists=True), help="Put these in, too.")
@click.option("--tar/--no-tar", default=True, help="Also write OUT.tar.gz.")
def main(cubins: Path, out: Path, wheels: Path | None, tar: bool) -> None:
    made = bundle(cubins, out, wheels)
    click.echo(f"{out}: {made} cubins")
    if tar:
        with tarfile.open(f"{out}.tar.gz", "w:gz") as archive:
            archive.add(out, arcname=out.name)


def bundle(cubins: Path, out: Path, wheels: Path | None = None) -> int:
    """Makes the folder anew; gives the number of cubins in it."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "build").mkdir(parents=True)
    found = sorted(cubins.glob("*.cubin"))
    for path in (*found, *sorted(cubins.glob("*.json"))):
        shutil.copy(path, out / "build")
    source = Path(tilec.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "bundle.py")
    for package in PACKAGES:
        shutil.copytree(source / package, out / "tilec" / package, ignore=ignored)
    shutil.copy(source / "__init__.py", out / "tilec")
    shutil.copytree(HERE, out / "tests" / "gpu", ignore=ignored)
    if wheels is not None:
        shutil.copytree(wheels, out / "wheels")
    (out / "pytest.ini").write_text(PYTEST_INI)
    return len(found)


if __name__ == "__main__":
    main()
