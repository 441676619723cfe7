"""Where warps wait, by samples of program counters: those that copy and those that compute apart.

Kernels with roles say by `USETMAXREG` where the code of each begins: what has its registers cut
copies, the rest computes. What lies between the first and the last product is the loop of those.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

_METRIC = "smsp__pcsamp_warps_issue_stalled_"
_BYTES = 16  # of an instruction
_PRODUCT = "MMA."  # of `HGMMA`, `QGMMA`, `IGMMA`, `HMMA`
_AROUND = (
    24 * _BYTES
)  # between a wait for copies and the first product, or the last one and its wait
_FOLDERS = ("/opt/nvidia/nsight-compute/*", "/usr/local/cuda*/nsight-compute-*")


@dataclass
class Samples:
    """How often warps of one kind were seen, by why they waited, and at what instruction.

    `by_phase`: before products, among them, and after them.
    """

    by_stall: Counter[str] = field(default_factory=Counter)
    by_place: Counter[str] = field(default_factory=Counter)
    by_phase: Counter[str] = field(default_factory=Counter)

    @property
    def samples(self) -> int:
        return self.by_stall.total()

    def stalls(self, count: int) -> list[tuple[str, int]]:
        return self.by_stall.most_common(count)

    def places(self, count: int) -> list[tuple[str, int]]:
        return self.by_place.most_common(count)


Warps = dict[str, Samples]


def warps_of(report: Path) -> Iterator[Warps]:
    """The samples of each kernel of a report, in order.

    Raises:   ImportError if the profiler's reader of reports, which comes with it, is not found
    """
    folders = [
        one / "extras" / "python"
        for pattern in _FOLDERS
        for one in sorted(Path("/").glob(pattern[1:]), reverse=True)
    ]
    found = shutil.which("ncu")
    if found:
        folders += [one / "extras" / "python" for one in Path(found).resolve().parents]
    sys.path += [str(one) for one in folders if (one / "ncu_report.py").exists()]
    reader = import_module("ncu_report")
    context = reader.load_report(str(report))
    part = context.range_by_idx(0)
    return (_of_kernel(part.action_by_idx(i)) for i in range(part.num_actions()))


def _of_kernel(action) -> Warps:  # type: ignore[no-untyped-def]
    seen: dict[int, Counter[str]] = {}
    for name in action.metric_names():
        if not name.startswith(_METRIC) or name.endswith("_not_issued"):
            continue
        metric = action.metric_by_name(name)
        counters = metric.correlation_ids()
        for i in range(metric.num_instances()):
            count = metric.as_uint64(i)
            if count:
                counter = seen.setdefault(counters.as_uint64(i), Counter())
                counter[name.removeprefix(_METRIC)] += count
    if not seen:
        return {}
    code = {pc: action.sass_by_pc(pc) for pc in range(min(seen), max(seen) + 1, _BYTES)}
    _dump(action.name(), code, seen)
    roles = _roles(code)
    products = [pc for pc, text in code.items() if roles[pc] != "copy" and _PRODUCT in text]
    first, last = min(products, default=0) - _AROUND, max(products, default=0) + _AROUND
    warps: Warps = {}
    for pc, stalls in seen.items():
        kind = warps.setdefault(roles[pc], Samples())
        kind.by_stall.update(stalls)
        kind.by_place[_opcode(code[pc])] += stalls.total()
        if products and roles[pc] != "copy":
            phase = "before" if pc < first else "products" if pc <= last else "after"
            kind.by_phase[phase] += stalls.total()
    return warps


def _roles(code: dict[int, str]) -> dict[int, str]:
    roles, role = {}, "all"
    for pc, text in code.items():
        if "USETMAXREG" in text:
            role = "copy" if "DEALLOC" in text else "compute"
        roles[pc] = role
    return roles


def _opcode(text: str) -> str:
    words = [word for word in text.split() if not word.startswith("@")]
    return words[0] if words else "?"


def _dump(name: str, code: dict[int, str], seen: dict[int, Counter[str]]) -> None:
    """Everything, for those who look into one kernel: to the file that `TILEC_SAMPLES` names."""
    path = os.environ.get("TILEC_SAMPLES")
    if not path or "spin_kernel" in name:
        return
    with Path(path).open("a") as file:
        first = min(code)
        print(f"# {name} at {first:#x}", file=file)
        for pc, text in code.items():
            shown = " ".join(f"{k}={n}" for k, n in seen.get(pc, Counter()).most_common())
            print(f"{pc - first:6x} {text:60} {shown}", file=file)
