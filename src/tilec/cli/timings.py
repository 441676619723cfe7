"""What `tilec build --timings` tells of each stage: to read, and as a file beside the outputs.

Such a file is none of the outputs: these are the same bytes each time, and times never are. So the
manifest has no times either, and no rule for make names the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilec.buildsystem.build import Result
from tilec.buildsystem.writing import write_together
from tilec.cli.report import Reporter
from tilec.printable import json_text
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


def write_timings(results: Sequence[Result], folder: Path) -> None:
    """`NAME.timings.json` for each file that was compiled; of others it stays as it is.

    Units:    seconds: of processors, and of the clock where the file's own process was

    Raises:   SetupError if the folder cannot be written
    """
    for result in results:
        spent = result.compiled.timings
        if not spent or not result.outputs:
            continue
        whole = sum(spent.values(), Spent())
        stages = {name: _seconds(each) for name, each in spent.items()}
        record = {"file": result.sources.root.name, **_seconds(whole), "stages": stages}
        name = f"{Path(result.sources.root.name).stem}.timings.json"
        write_together(folder, {name: f"{json.dumps(record, indent=2)}\n".encode()})


def _seconds(spent: Spent) -> dict[str, float]:
    return {"cpu_s": round(spent.cpu_s, 4), "wall_s": round(spent.wall_s, 4)}


def _report(
    file: str | None, spent: Mapping[str, Spent], reporter: Reporter, files: int = 1
) -> None:
    whole = sum((each.cpu_s for each in spent.values()), 0.0)
    if reporter.json:
        stages = {name: round(each.cpu_s, 4) for name, each in spent.items()}
        record = {"file": file, "files": files, "cpu_s": round(whole, 4), "stages": stages}
        reporter.line(json_text({"timings": record}))
        return
    about = file or f"in total, {files} {'file' if files == 1 else 'files'} compiled"
    reporter.line(f"\n{whole:8.3f} s of processor time: {about}")
    for name, each in sorted(spent.items(), key=lambda item: -item[1].cpu_s):
        reporter.line(f"{each.cpu_s:8.3f} {each.cpu_s / max(whole, 1e-9):5.0%}  {name}")
