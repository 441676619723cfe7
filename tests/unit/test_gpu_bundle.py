"""What is packed for a GPU machine is whole: it runs from its own folder, and says why it skips."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = """
import sys
from pathlib import Path
import tilec.bench.session, tilec.cli.bench, tilec.cli.tune, tilec.tune.session
import tilec.cli.report, tilec.cli.tuning_table, tilec.runtime
files = [m.__file__ for n, m in sys.modules.items() if n.startswith("tilec") and m.__file__]
print([file for file in files if not Path(file).is_relative_to(Path.cwd())])
"""


@pytest.fixture
def gpu_tests(monkeypatch):
    """The GPU tests' own modules can be imported."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "gpu"))


def run(command, folder, more=None):
    environment = {k: v for k, v in os.environ.items() if k != "TILEC_CUBINS"} | (more or {})
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**environment, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
    )


def test_what_is_packed_runs_alone_and_skips_without_cubins_and_says_why(
    gpu_tests, tmp_path, monkeypatch
):
    from pack import copy

    monkeypatch.chdir(ROOT)
    copy(tmp_path)
    where = run(["-c", "import tilec.runtime as rt; print(rt.__file__)"], tmp_path)
    assert where.stdout.startswith(str(tmp_path)), where.stderr
    # An editable install would find here what was not packed.
    elsewhere = run(["-c", ELSEWHERE], tmp_path)
    assert (elsewhere.stdout, elsewhere.stderr) == ("[]\n", "")
    done = run(["-m", "pytest", "-m", "gpu", "-rs", "tests/gpu"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" in done.stdout and "there is no" in done.stdout
    listed = run(["-m", "tilec", "bench", "--list"], tmp_path)
    assert listed.returncode == 0 and "softmax" in listed.stdout, listed.stderr


def test_bits_of_elements_there_and_back(gpu_tests):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from element_bits import rounded, to_bits

    values = np.array([0.0, -0.0, 1.0, 1 + 2**-8, 1 + 3 * 2**-8, -3.5, np.inf, 3e38, 1e-40])
    exact = values.astype(np.float32).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(to_bits(values, "bf16"), exact.view(np.uint16))
    assert np.isnan(rounded(np.array([np.nan, -np.nan]), "bf16")).all()
    assert rounded(np.array([0.1]), "f16")[0] == float(np.float16(0.1))


def test_a_dry_run_tries_the_tests_without_a_gpu(tmp_path):
    built = run(["-m", "tilec", "build", "kernels/add.tile", "-o", str(tmp_path)], ROOT)
    assert built.returncode == 0, built.stderr
    chosen = ["tests/gpu/test_kernels.py", "-k", "add__f16_1024"]
    dry = {"TILEC_DRY_RUN": "1", "TILEC_CUBINS": str(tmp_path)}
    done = run(["-m", "pytest", "-m", "gpu", *chosen], ROOT, dry)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
