"""Wheels say for which machines they are: for all where hot_path.c was not compiled (setup.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from test_hot_path import COMPILERS, HEADERS

ROOT = Path(__file__).parents[2]
SETUP, HOT_PATH = "setup.py", "src/tilec/runtime/hot_path.c"
PROJECT = """
[project]
name = "tilec"
version = "1"
[tool.setuptools]
packages = ["tilec"]
package-dir = { "tilec" = "src/tilec" }
"""


def wheel(folder, compiler):
    """The wheel of a package that has nothing but the C path."""
    for name in (SETUP, HOT_PATH):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "src/tilec/__init__.py").touch()
    command = [sys.executable, SETUP, "-q", "bdist_wheel"]
    environment = {**os.environ, "CC": compiler, "CFLAGS": "-O0"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    [path] = (folder / "dist").iterdir()
    with zipfile.ZipFile(path) as archive:
        return path.name, {name for name in archive.namelist() if name.startswith("tilec/")}


@pytest.mark.skipif(not shutil.which("false"), reason="there is nothing that fails by itself")
def test_without_a_compiler_a_wheel_is_for_every_machine(tmp_path):
    pytest.importorskip("setuptools", "77")
    name, files = wheel(tmp_path, "false")
    assert name == "tilec-1-py3-none-any.whl"
    assert not any("_hot_path" in one for one in files)


@pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
def test_a_wheel_with_machine_code_is_for_python_3_10_and_later(tmp_path):
    pytest.importorskip("setuptools", "77")
    if not (HEADERS / "Python.h").exists() or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python takes no such module")
    name, files = wheel(tmp_path, COMPILERS[0])
    assert name.startswith("tilec-1-cp310-abi3-")
    assert any("_hot_path" in one for one in files)
