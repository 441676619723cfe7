"""How long the commands take, each in a fresh process, and where the time of a build goes.

    python -m benchmarks.compile_times

Run it in the environment that has the compiler, from the repository's root.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tilec.bench.samples import Contender

RESULTS = Path(__file__).parent / "results"
RUNS = 5
RUNS_OF_LONG_COMMANDS = 3
LOAD_BEFORE = os.getloadavg()[0]
TILEC = Path(sys.executable).parent / "tilec"
KERNELS = sorted(map(str, Path("kernels").glob("*.tile")))
# One product, in the largest tiles that there are.
PRODUCT = Path("kernels/matmul_nt.tile")
INSTANCE = "#[instance(T = bf16, BM = 128, BN = 256, BK = 64)]"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TILEC_CACHE": f"{folder}/cache"}
        out = f"{folder}/build"

        def tilec(*arguments: str) -> Callable[[], object]:
            command = [str(TILEC), *arguments]
            return lambda: subprocess.run(command, env=environment, check=True, capture_output=True)

        tilec("build", *KERNELS, "-o", out)()
        product = _of_one_instance(Path(folder))
        cold = tilec("build", "--no-cache", *KERNELS, "-o", out)
        measured = {
            "python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "tilec --help": tilec("--help"),
            "tilec check kernels/add.tile": tilec("check", "kernels/add.tile"),
            "tilec build kernels/add.tile (cold)": tilec(
                "build", "--no-cache", "kernels/add.tile", "-o", out
            ),
            f"tilec build of one instance of {PRODUCT} (cold)": tilec(
                "build", "--no-cache", product, "-o", out
            ),
            f"tilec build kernels/*.tile ({len(KERNELS)} files, unchanged)": tilec(
                "build", *KERNELS, "-o", out
            ),
        }
        found = [_measured(name, call, RUNS) for name, call in measured.items()]
        whole = f"tilec build kernels/*.tile ({len(KERNELS)} files, cold)"
        found.append(_measured(whole, cold, RUNS_OF_LONG_COMMANDS))
        stages = _stages(
            tilec("build", "--no-cache", "--timings", "--error-format=json", *KERNELS, "-o", out)
        )
    _write(found, stages, found[-1].median_us / 1e6 / len(KERNELS))


def _of_one_instance(folder: Path) -> str:
    """The product's file with `INSTANCE` alone."""
    lines = PRODUCT.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line == INSTANCE or not line.startswith("#[instance(")]
    assert INSTANCE in kept, f"{PRODUCT} has no {INSTANCE}"
    file = folder / PRODUCT.name
    file.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return str(file)


def _stages(build: Callable[[], Any]) -> dict[str, Any]:
    """Processor seconds of each stage of all files together, and of each file, from one build."""
    lines = build().stdout.decode().splitlines()
    tables = [json.loads(line)["timings"] for line in lines if line.startswith("{")]
    whole = next(table for table in tables if table["file"] is None)
    by_time = sorted(whole["stages"].items(), key=lambda item: -item[1])
    files = {table["file"]: table["cpu_s"] for table in tables if table["file"] is not None}
    return {"cpu_s": whole["cpu_s"], "stages_cpu_s": dict(by_time), "files_cpu_s": files}


def _measured(name: str, call: Callable[[], object], runs: int) -> Contender:
    """The samples of one command, in microseconds, after one run that is not counted."""
    call()
    samples = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1e6)
    return Contender(name, tuple(samples))


def _write(found: list[Contender], stages: dict[str, Any], per_file_s: float) -> None:
    environment = {
        "cores": os.cpu_count(),
        # What else the machine does at the time: above 0 the figures are too high.
        "load_before": round(LOAD_BEFORE, 1),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }
    commands = {
        c.name: {
            "median_s": round(c.median_us / 1e6, 4),
            "spread_s": round(c.spread_us / 1e6, 4),
            "samples_s": [round(s / 1e6, 4) for s in c.samples],
        }
        for c in found
    }
    RESULTS.mkdir(exist_ok=True)
    content = {
        "environment": environment,
        "commands": commands,
        "cold_build": {"files": len(KERNELS), "wall_s_per_file": round(per_file_s, 3), **stages},
    }
    (RESULTS / "compile_times.json").write_text(json.dumps(content, indent=1) + "\n")
    print("| command | s (median) | IQR |\n| --- | ---: | ---: |")
    for c in found:
        print(f"| `{c.name}` | {c.median_us / 1e6:.3f} | {c.spread_us / 1e6:.3f} |")
    print(f"\nA cold build takes {per_file_s:.3f} s a file. Where the time of processors goes:\n")
    print("| stage | s |\n| --- | ---: |")
    for name, seconds in stages["stages_cpu_s"].items():
        print(f"| {name} | {seconds:.3f} |")


if __name__ == "__main__":
    main()
