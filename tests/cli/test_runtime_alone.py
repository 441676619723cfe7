"""`pip install tilec`, without the compiler: which commands work there, and what the others say."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import venv
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tilec.cli.entry import run_command_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
COMPILER = ("mlir", "lark", "islpy", "ml_dtypes", "rich")
PROGRAM = """
#[kernel]
pub fn copy<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>) {
    z.store(x.load_like(&z));
}
"""


def installed_with(names: list[str]) -> Iterator[metadata.Distribution]:
    """The distributions that pip would install for these requirements, each once."""
    seen: set[str] = set()
    while names:
        requirement = Requirement(names.pop())
        fits = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if fits and requirement.name not in seen:
            seen.add(requirement.name)
            found = metadata.distribution(requirement.name)
            names += found.requires or []
            yield found


def link(distributions: list[metadata.Distribution], site: Path) -> None:
    """Put what distributions hold into another `site-packages`, without copying it.

    A folder that several have, as `cuda`, is a folder there, of links.
    """
    owners: dict[tuple[str, ...], set[metadata.Distribution]] = defaultdict(set)
    for distribution in distributions:
        # Not `distribution.files`, which looks for each of them.
        for name, *_ in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
            parts = tuple(name.split("/"))
            for depth in range(1, len(parts) + 1):
                owners[parts[:depth]].add(distribution)
    shared = {parts for parts, found in owners.items() if len(found) > 1}
    for parts, found in owners.items():
        if parts in shared or ".." in parts or (len(parts) > 1 and parts[:-1] not in shared):
            continue
        [distribution] = found
        target = site.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(distribution.locate_file("/".join(parts)))


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """The Python of an environment that has tilec and its dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("alone") / "venv"
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    link(list(installed_with(list(project["dependencies"]))), site)
    (site / "tilec").mkdir()
    for path in (*(ROOT / "src/tilec").iterdir(), ROOT / "dialects", ROOT / "grammar"):
        (site / "tilec" / path.name).symlink_to(path)
    return folder / "bin/python"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with a program and what a machine with the compiler built of it."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "copy.tile").write_text(PROGRAM)
    arguments = ("build", folder / "copy.tile", "-o", folder, "--no-cache", "-q")
    assert run_command_line([str(argument) for argument in arguments]) == 0
    return folder


@pytest.fixture
def alone(python, built, tmp_path):
    def run(*arguments):
        environment = {**os.environ, "TILEC_CACHE": str(tmp_path / "cache")}
        environment.pop("PYTHONPATH", None)
        command = (
            [python, "-P", *arguments] if sys.version_info >= (3, 11) else [python, *arguments]
        )
        return subprocess.run(
            command, cwd=built, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_the_environment_has_no_compiler(alone):
    look = f"import importlib.util as u; print([n for n in {COMPILER} if u.find_spec(n)])"
    ended = alone("-c", look)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("doctor",), "compiler: not installed"),
        (("inspect", "--all", "copy.sm_90a.cubin", "copy.json"), "copy (copy.tile:3)"),
        (("abi-diff", "copy.json", "copy.sm_90a.cubin"), "nothing changed"),
        (("explain", "E0501"), "E0501"),
        (("--help",), "abi-diff"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_what_reads_what_was_built_works(alone, arguments, said):
    ended = alone("-m", "tilec", *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert said in ended.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "copy.tile"),
        ("build", "copy.tile", "-o", "again"),
        ("run", "copy.tile", "--kernel", "copy", "--cpu"),
        ("opt", "copy.tile", "--passes", "cse"),
    ],
    ids=lambda given: given[0],
)
def test_what_compiles_says_what_to_install(alone, arguments):
    ended = alone("-m", "tilec", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "the compiler is not installed" in ended.stderr
    assert "pip install 'tilec[compiler]'" in ended.stderr
    assert "Traceback" not in ended.stderr and "internal" not in ended.stderr


def test_a_library_imports_no_package_of_the_command(alone):
    """`tilec.runtime` reads a cubin where even click is missing, and the command says so."""
    refused = "import sys; sys.modules['click'] = None; "
    ended = alone("-c", f"{refused}import tilec.runtime as rt; print(rt.load('copy.sm_90a.cubin'))")
    assert (ended.returncode, ended.stdout[:7]) == (0, "Module("), ended.stderr
    ended = alone("-c", f"{refused}import tilec.cli; tilec.cli.main()")
    assert (ended.returncode, "pip install click" in ended.stderr) == (2, True)
    assert "Traceback" not in ended.stderr
