"""What a profiler says of cases of the suite: ours and rivals, one call each, under Nsight Compute.

    python benchmarks/profile.py RESULT.json [--rivals torch,triton] PATTERN… @FILE…

Patterns are those of `tilec bench --only`; a file has one a line, `#` begins a remark. The cubins
are those of `build/`. Caches are flushed before each kernel, clocks are left as they are. The
result has the measurements of each kernel in the order in which a contender launched them; what
it has of other contenders stays. The last lines of output are a table of what was measured.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from profile_metrics import SAMPLES, available_metrics
from profile_samples import Warps, warps_of

_SEPARATOR = "spin_kernel"  # what `torch.cuda._sleep` launches: between contenders
_SCALE = {"nsecond": 1e-3, "ns": 1e-3, "byte": 1e-6, "hz": 1e-9, "cycle/second": 1e-9}
_SHOWN = 4  # stalls of the table

Kernel = dict[str, object]


def profile(result: Path, patterns: Sequence[str], rivals: Sequence[str]) -> None:
    """Profiles every case that matches, in one process, and adds what was measured to a file."""
    metrics = available_metrics()
    with TemporaryDirectory() as folder:
        report = Path(folder) / "all.ncu-rep"
        command = [
            "ncu", "--profile-from-start", "off", "--clock-control", "none", "-o", str(report),
            "--metrics", ",".join((*metrics.values(), SAMPLES)),
            sys.executable, __file__, "--launch", ",".join(rivals), *patterns,
        ]  # fmt: skip
        lines = _answer(command).splitlines()
        raw = _answer(
            ["ncu", "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
        )
        kernels = list(_kernels(raw, metrics))
        for kernel, warps in zip(kernels, warps_of(report), strict=True):
            if warps:
                kernel["warps"] = _shares(warps)
    names = [line.removeprefix("contender: ") for line in lines if line.startswith("contender: ")]
    environment = json.loads(next(x for x in lines if x.startswith("{")))
    found = dict(zip(names, _groups(kernels), strict=True))
    print(_table(found))
    before = json.loads(result.read_text())["profiles"] if result.exists() else {}
    written = {"environment": environment, "profiles": {**before, **found}}
    result.write_text(json.dumps(written, indent=1) + "\n")


def _answer(command: Sequence[str]) -> str:
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(answer.stdout[-4000:] + answer.stderr[-4000:])
    return answer.stdout


def _kernels(raw: str, metrics: Mapping[str, str]) -> Iterator[Kernel]:
    lines = raw.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    rows = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    units = next(rows)
    for row in rows:
        kernel: Kernel = {"kernel": row["Kernel Name"]}
        for name, metric in metrics.items():
            text = (row.get(metric) or "").replace(",", "")
            if text:
                kernel[name] = round(float(text) * _SCALE.get(units[metric], 1.0), 3)
        yield kernel


def _shares(warps: Warps) -> dict[str, object]:
    """Of each kind of warps: its share of all samples, and of its own what stalls and where."""
    everything = sum(one.samples for one in warps.values()) or 1
    return {
        kind: {
            "percent": round(100 * one.samples / everything, 1),
            "stalls": {k: round(100 * n / one.samples, 1) for k, n in one.stalls(6)},
            "phases": {k: round(100 * n / one.samples, 1) for k, n in one.by_phase.items()},
            "at": {k: round(100 * n / one.samples, 1) for k, n in one.places(6)},
        }
        for kind, one in warps.items()
        if one.samples
    }


def _groups(kernels: Sequence[Kernel]) -> Iterator[list[Kernel]]:
    group: list[Kernel] = []
    for kernel in kernels:
        if _SEPARATOR in str(kernel["kernel"]):
            yield group
            group = []
        else:
            group.append(kernel)


def _table(found: dict[str, list[Kernel]]) -> str:
    lines = []
    for name, kernels in found.items():
        for kernel in kernels:
            stalls = {k.removeprefix("stall_"): v for k, v in kernel.items() if "stall_" in k}
            worst = sorted(stalls, key=lambda k: -float(str(stalls[k])))[:_SHOWN]
            shown = [
                f"{k} {v}"
                for k, v in kernel.items()
                if "stall_" not in k and k not in ("kernel", "warps")
            ]
            shown.append("stalls " + " ".join(f"{k}={stalls[k]}" for k in worst))
            lines.append(f"{name}: {str(kernel['kernel'])[:40]}: " + ", ".join(shown))
            if "warps" in kernel:
                lines.append(f"    {json.dumps(kernel['warps'])}")
    return "\n".join(lines)


def launch(rivals: Sequence[str], patterns: Sequence[str]) -> None:
    """Prepares each contender, then calls it once while the profiler watches."""
    sys.path.pop(0)  # this file has the name of a module that others import
    import torch

    from tilec.bench import contenders
    from tilec.bench.buffers import buffers_of
    from tilec.bench.kernels import Kernels
    from tilec.bench.loading import benchmarks_of, default_files, matching
    from tilec.bench.target import target_of
    from tilec.bench.torch_gpu import torch_gpu

    gpu = torch_gpu()
    kernels = Kernels(Path(os.environ.get("TILEC_BUILD", "build")), target_of(gpu.capability))
    print(json.dumps(gpu.environment()))
    found = matching([b for path in default_files() for b in benchmarks_of(path)], patterns)
    for benchmark in found:
        for case in benchmark.cases:
            sets = (buffers_of(gpu, case, 0),)
            reference = contenders.reference_of(gpu, benchmark, case, sets)
            ready = [contenders.ours(benchmark, kernels, reference)]
            ready += [
                contenders.rival(rival, reference)
                for rival in benchmark.rivals
                if rival.name in rivals
            ]
            for contender in ready:
                if not isinstance(contender, contenders.Ready):
                    print(contender, file=sys.stderr)
                    continue
                print(f"contender: {benchmark.name} {case.name} {contender.contender.name}")
                contender.work(sets[0])
                torch.cuda.synchronize()
                torch.cuda.profiler.start()
                contender.work(sets[0])
                torch.cuda._sleep(1000)
                torch.cuda.synchronize()
                torch.cuda.profiler.stop()


def _patterns(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if not word.startswith("@"):
            yield word
            continue
        for line in Path(word[1:]).read_text().splitlines():
            text = line.partition("#")[0].strip()
            if text:
                yield text


if __name__ == "__main__":
    if sys.argv[1] == "--launch":
        launch(sys.argv[2].split(","), sys.argv[3:])
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("result", type=Path)
        parser.add_argument("--rivals", default="triton")
        parser.add_argument("patterns", nargs="+")
        options = parser.parse_args()
        profile(options.result, list(_patterns(options.patterns)), options.rivals.split(","))
