"""What a profiler says of cases of the suite: ours and rivals, one call each, under Nsight Compute.

    python benchmarks/profile.py RESULT.json 'softmax bf16 4096x8192' …

Patterns are those of `tilec bench --only`; the cubins are those of `build/`. Caches are flushed
before each kernel, clocks are left as they are. The file has the measurements of each kernel in the
order in which a contender launched them; the last lines of output are a table of them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_SEPARATOR = "spin_kernel"  # what `torch.cuda._sleep` launches: between contenders
_STALLS = (
    "long_scoreboard", "short_scoreboard", "barrier", "wait", "lg_throttle", "mio_throttle",
    "math_pipe_throttle", "not_selected", "no_instruction", "membar", "drain",
    "imc_miss", "dispatch_stall", "sleeping", "branch_resolving",
)  # fmt: skip
_METRICS = {
    "us": "gpu__time_duration.sum",
    "read_mb": "dram__bytes_read.sum",
    "written_mb": "dram__bytes_write.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_percent": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm_active_percent": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "instructions_per_warp": "smsp__average_inst_executed_per_warp.ratio",
    "registers": "launch__registers_per_thread",
    "threads": "launch__block_size",
    "blocks": "launch__grid_size",
    "waves": "launch__waves_per_multiprocessor",
    **{
        f"stall_{name}": f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio"
        for name in _STALLS
    },
}
_SCALE = {
    "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3,
    "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1.0, "Gbyte": 1e3,
}  # fmt: skip


def profile(result: Path, patterns: Sequence[str], rivals: Sequence[str]) -> None:
    """Profiles every case that matches, in one process, and writes what was measured."""
    command = [
        "ncu", "--csv", "--page", "raw", "--profile-from-start", "off", "--clock-control", "none",
        "--metrics", ",".join(_METRICS.values()),
        sys.executable, __file__, "--launch", ",".join(rivals), *patterns,
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(answer.stdout[-4000:] + answer.stderr[-4000:])
    lines = answer.stdout.splitlines()
    names = [line.removeprefix("contender: ") for line in lines if line.startswith("contender: ")]
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    kernels = list(_kernels(lines[start:]))
    environment = json.loads(next(x for x in lines if x.startswith("{")))
    found = dict(zip(names, _groups(kernels), strict=True))
    result.write_text(json.dumps({"environment": environment, "profiles": found}, indent=1) + "\n")
    print(_table(found))


def _kernels(lines: Sequence[str]) -> Iterator[dict[str, object]]:
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    units = next(rows)
    for row in rows:
        kernel: dict[str, object] = {"kernel": row["Kernel Name"]}
        for name, metric in _METRICS.items():
            text = (row.get(metric) or "").replace(",", "")
            if text:
                kernel[name] = round(float(text) * _SCALE.get(units[metric], 1.0), 3)
        yield kernel


def _groups(kernels: Sequence[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    group: list[dict[str, object]] = []
    for kernel in kernels:
        if _SEPARATOR in str(kernel["kernel"]):
            yield group
            group = []
        else:
            group.append(kernel)


def _table(found: dict[str, list[dict[str, object]]]) -> str:
    lines = []
    for name, kernels in found.items():
        for kernel in kernels:
            stalls = {k.removeprefix("stall_"): v for k, v in kernel.items() if "stall_" in k}
            worst = sorted(stalls, key=lambda k: -float(str(stalls[k])))[:4]
            shown = [f"{k} {v}" for k, v in kernel.items() if "stall_" not in k and k != "kernel"]
            shown.append("stalls " + " ".join(f"{k}={stalls[k]}" for k in worst))
            lines.append(f"{name}: {str(kernel['kernel'])[:40]}: " + ", ".join(shown))
    return "\n".join(lines)


def launch(rivals: Sequence[str], patterns: Sequence[str]) -> None:
    """Prepares each contender, then calls it once while the profiler watches."""
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


if __name__ == "__main__":
    if sys.argv[1] == "--launch":
        launch(sys.argv[2].split(","), sys.argv[3:])
    else:
        profile(Path(sys.argv[1]), sys.argv[2:], ("triton",))
