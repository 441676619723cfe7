"""The GPU tests in several processes at once, which share one device.

    python tests/gpu/run.py [PROCESSES] [pytest's own arguments…]

Each process runs every n-th test (`conftest.py`, TILEC_SHARD): the tests wait for NumPy and for
launches, far more than the device works. Exits with 1 if a test fails anywhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
MOST = 12
_SUMMARY = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")
# What `conftest.py` counts.
_COUNTED = re.compile(r"^(\d+) ((?:launches|results) .*)$", re.MULTILINE)


def main() -> int:
    """Runs them; gives the exit status."""
    processes, arguments = min(MOST, max(1, (os.cpu_count() or 2) // 2)), sys.argv[1:]
    if arguments and arguments[0].isdigit():
        processes, arguments = int(arguments[0]), arguments[1:]
    shards = [f"{number}/{processes}" for number in range(processes)]
    # Folders of their own: pytest clears those that others left, while they are at it too.
    with TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        folders = [f"--basetemp={folder}/{number}" for number in range(processes)]
        done = list(pool.map(lambda *one: _run(*one, arguments), shards, folders))
    totals: Counter[str] = Counter()
    for shard, result in zip(shards, done, strict=True):
        lines = result.stdout.strip().splitlines() or [result.stderr.strip()]
        found = _SUMMARY.findall("\n".join(lines[-3:])) + _COUNTED.findall(result.stdout)
        totals.update({what: int(number) for number, what in found})
        if result.returncode:
            print(f"---- {shard} ----", *lines[-200:], result.stderr.strip(), sep="\n")
        else:
            print(f"{shard}: {lines[-1].strip('= ')}")
    print(", ".join(f"{number} {what}" for what, number in totals.items()))
    return int(any(result.returncode for result in done))


def _run(shard: str, folder: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-m", "gpu", str(HERE), folder, *arguments]
    environment = {**os.environ, "TILEC_SHARD": shard}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


if __name__ == "__main__":
    sys.exit(main())
