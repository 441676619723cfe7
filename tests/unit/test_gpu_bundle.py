"""What is packed for a GPU machine is whole: it runs from its own folder, and says why it skips."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GPU_TESTS = Path(__file__).parent.parent / "gpu"


def run(command, folder):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TILEC_CUBINS")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("bundle")
    (root / "cubins").mkdir()
    script = [GPU_TESTS / "bundle.py", "--cubins", "cubins", "--out", "packed"]
    made = run(script, root)
    assert made.returncode == 0, made.stderr
    assert (root / "packed.tar.gz").exists()
    return root / "packed"


def test_a_bundle_imports_its_own_runtime(folder):
    code = "import tilec.runtime as rt; print(rt.__file__)"
    assert run(["-c", code], folder).stdout.startswith(str(folder))


def test_a_bundle_without_cubins_or_device_skips_and_says_why(folder):
    done = run(["-m", "pytest"], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" in done.stdout
    assert "there is no" in done.stdout


def test_bits_of_elements_there_and_back(monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    monkeypatch.syspath_prepend(str(GPU_TESTS))
    from element_bits import rounded, to_bits

    values = np.array([0.0, -0.0, 1.0, 1 + 2**-8, 1 + 3 * 2**-8, -3.5, np.inf, 3e38, 1e-40])
    exact = values.astype(np.float32).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(to_bits(values, "bf16"), exact.view(np.uint16))
    assert np.isnan(rounded(np.array([np.nan, -np.nan]), "bf16")).all()
    assert rounded(np.array([0.1]), "f16")[0] == float(np.float16(0.1))
