"""What `tilec build --timings` prints: the processor time of each stage, per file and in total."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from tilec.buildsystem.build import Result
from tilec.cli.report import Reporter
from tilec.stages import Spent, total

# The command's own process: what is done once, and not for one file.
_COMMAND = "imports, reading and writing"


def report_timings(results: Sequence[Result], reporter: Reporter) -> None:
    """A table a file that was compiled, and one of them all.

    With `--error-format=json` a table is an object on one line.
    """
    compiled = [result for result in results if result.compiled.timings]
    for result in compiled:
        _report(result.sources.root.name, result.compiled.timings, reporter)
    whole = total(result.compiled.timings for result in compiled)
    whole[_COMMAND] = Spent(time.process_time())
    _report(None, whole, reporter, files=len(compiled))


def _report(
    file: str | None, spent: Mapping[str, Spent], reporter: Reporter, files: int = 1
) -> None:
    whole = sum((each.cpu_s for each in spent.values()), 0.0)
    if reporter.json:
        stages = {name: round(each.cpu_s, 4) for name, each in spent.items()}
        record = {"file": file, "files": files, "cpu_s": round(whole, 4), "stages": stages}
        reporter.line(json.dumps({"timings": record}))
        return
    about = file or f"in total, {files} {'file' if files == 1 else 'files'} compiled"
    reporter.line(f"\n{whole:8.3f} s of processor time: {about}")
    for name, each in sorted(spent.items(), key=lambda item: -item[1].cpu_s):
        reporter.line(f"{each.cpu_s:8.3f} {each.cpu_s / max(whole, 1e-9):5.0%}  {name}")
