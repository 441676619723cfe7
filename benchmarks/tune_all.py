"""`tilec tune` of all kernels of `tuned.txt`, on a machine with a GPU.

    python benchmarks/tune_all.py BUILD -o FOLDER [--only matmul,gemv] [--seconds 540] [--rounds 9]

A kernel that is not in BUILD is left out, and so is one whose turn comes after `--seconds`: the
last line names those that are left. Tuning files go to FOLDER; what they have of other shapes
stays.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

LIST = Path(__file__).with_name("tuned.txt")


def wanted(names: list[str]) -> dict[str, list[str]]:
    """The shapes of each kernel of the list, or of these."""
    found = {}
    for line in LIST.read_text().splitlines():
        name, *shapes = line.partition("#")[0].split() or [""]
        if name and (not names or name in names):
            found[name] = shapes
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sample-ms", type=float, default=1.0)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    left, failed = [], []
    for name, shapes in wanted(options.only).items():
        told = options.build / f"{name}.json"
        if not told.exists():
            print(f"{name} is not in {options.build}", flush=True)
            continue
        if time.monotonic() - start > options.seconds:
            left.append(name)
            continue
        command = [
            *(sys.executable, "-m", "tilec", "tune", str(told), "-o", str(options.output)),
            *("--rounds", str(options.rounds), "--sample-ms", str(options.sample_ms)),
            *(word for shape in shapes for word in ("--shapes", shape)),
        ]
        if subprocess.run(command).returncode:
            failed.append(name)
        print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    print("left:", " ".join(left) or "nothing", "| failed:", " ".join(failed) or "nothing")
    raise SystemExit(bool(left or failed))


if __name__ == "__main__":
    main()
