"""PTX text to machine code, by ptxas; and what ptxas says of the resources it took."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilec.diagnostics.setup_error import SetupError
from tilec.target.running import run


@dataclass(frozen=True)
class Resources:
    """What one entry takes.

    Units:    32-bit registers a thread; bytes a thread for spills and stack, a block for `smem`
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    smem: int


@dataclass(frozen=True)
class Cubin:
    image: bytes
    resources: dict[str, Resources]
    warnings: tuple[str, ...]


class PtxasError(Exception):
    """ptxas refused what we made: a fault of the compiler, never of the program."""


class BrokenScheduleError(PtxasError):
    """ptxas lets asynchronous products run one by one, or does not share out registers.

    What runs at a tenth of its speed is no result. `entry` is the function, if ptxas says which.
    """

    def __init__(self, message: str, entry: str | None = None) -> None:
        super().__init__(message)
        self.entry = entry


# Entries side by side, on all cores: their code is that of one after the other. ptxas notes the
# option in the image, so it is the same everywhere, and for every file.
_BY_ENTRY = "--split-compile=0"

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
# Given as information: "(C7510) Potential Performance Loss: … in the function 'NAME' in line 12".
_SCHEDULE = re.compile(r"\(C75[0-2]\d\).*")
_FUNCTION = re.compile(r"in (?:the )?function '([^']+)'")
_LINE = re.compile(r"\bline (\d+)")
_PLACE = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)")
_FILE = re.compile(r'\s*\.file\s+(\d+) "([^"]+)"')
# Of a ptxas of an earlier release of CUDA, given PTX or a target that came later.
_TOO_OLD = re.compile(r"Unsupported \.version [^\n]*|Value '\w+' is not defined for option[^\n]*")
# Signals that a machine sends, or somebody: no fault of ptxas, nor of what it is given.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ, signal.SIGXCPU}
_SMEM = re.compile(r"(\d+) bytes smem")


def assemble(ptx: str, architecture: str, ptxas: Path) -> Cubin:
    """Run ptxas on a PTX module.

    Raises:   PtxasError with what it printed, if it fails; BrokenScheduleError; SetupError if it is
              no ptxas, or too old a one
    """
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        options = ["-v", f"-arch={architecture}", _BY_ENTRY]
        command = [str(ptxas), *options, "-o", target.name, source.name]
        # Relative names keep what it writes independent of the machine.
        done = run(command, Path(folder))
        _expect_fit(ptxas, done.status, done.log, has_written=target.exists())
        if done.status != 0:
            raise PtxasError(f"ptxas failed ({done.status}):\n{done.log}{done.output}")
        _expect_schedules_kept(done.log, ptx)
        return Cubin(target.read_bytes(), _resources(done.log), _warnings(done.log))


def _expect_fit(ptxas: Path, status: int, log: str, *, has_written: bool) -> None:
    """Raises:   SetupError for what every program would meet that this ptxas is given"""
    if status < 0 and signal.Signals(-status) in _FROM_OUTSIDE:
        raise SetupError(
            f"`{ptxas}` was ended by {signal.Signals(-status).name}",
            help="where memory is short, try fewer files at a time (`-j 1`)",
        )
    wrong = "is no ptxas" if status == 0 and not has_written else None
    if status != 0 and (older := _TOO_OLD.search(log)):
        wrong = f"is too old: {older.group().strip().lower()}"
    if status > 0 and "ptxas" not in log:
        wrong = f"is no ptxas, or a broken one: it ends with status {status}"
    if wrong:
        raise SetupError(
            f"`{ptxas}` {wrong}", help="TILEC_PTXAS names it, or the wheel nvidia-cuda-nvcc has it"
        )


def _resources(log: str) -> dict[str, Resources]:
    found: dict[str, Resources] = {}
    entry, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = match.group(1)
        elif match := _FRAME.search(line):
            stack, stores, loads = map(int, match.groups())
            frame = (stack, stores, loads)
        elif match := _USED.search(line):
            smem = _SMEM.search(line)
            stack, stores, loads = frame
            found[entry] = Resources(
                int(match.group(1)), stores, loads, stack, int(smem.group(1)) if smem else 0
            )
    return found


def _expect_schedules_kept(log: str, ptx: str) -> None:
    """Raises:   BrokenScheduleError for the first thing that ptxas says of it (C7500 to C7529)"""
    found = _SCHEDULE.search(log)
    if found is None:
        return
    said = found.group()
    line = _LINE.search(said)
    place = _place_of(ptx.splitlines(), int(line.group(1))) if line else None
    made_of = f" (made of {place})" if place else ""
    entry = _FUNCTION.search(said)
    raise BrokenScheduleError(
        f"ptxas undoes a schedule{made_of}: {said}", entry.group(1) if entry else None
    )


def _place_of(lines: Sequence[str], number: int) -> str | None:
    """The place in the source of which a line of PTX was made; the first has number 1."""
    before = reversed(lines[:number])
    place = next((found for line in before if (found := _PLACE.match(line))), None)
    if place is None:
        return None
    file, line, column = place.groups()
    files = {found[1]: found[2] for one in lines if (found := _FILE.match(one))}
    return f"{files.get(file, '?')}:{line}:{column}"


def _warnings(log: str) -> tuple[str, ...]:
    return tuple(line for line in log.splitlines() if "warning" in line.lower())
