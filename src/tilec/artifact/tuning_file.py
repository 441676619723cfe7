"""`NAME.tune.json` beside `NAME.tile`: which member of a family was the fastest at which extents.

`tilec tune` writes it on a machine with a GPU, `tilec build` reads it, people may edit it. It holds
runs: what was measured on one card, with which machine code. A shape is in one run of a card only,
the last that measured it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.artifact.abi import COUNT_LIMIT
from tilec.artifact.family import Family, Measured, Table
from tilec.artifact.manifest import Manifest
from tilec.artifact.structure import StructureError, decoded, encoded, parsed

VERSION = 2
KEY = "tilec_tune"  # the first key of the JSON object; its value is the version
SUFFIX = ".tune.json"


class TuningFileError(ValueError):
    """The text is no tuning file that this version reads."""


@dataclass(frozen=True)
class Loser:
    """A member that was not chosen: slower, not applicable, or failed; `why` says which.

    Units:    microseconds of a launch; None if it was not timed
    """

    member: str
    us: float | None
    why: str


@dataclass(frozen=True)
class Trial:
    """The members of a family at some extents, in the order of its `dims`."""

    extents: tuple[int, ...]
    member: str
    us: float
    losers: tuple[Loser, ...] = ()


@dataclass(frozen=True)
class TunedFamily:
    """What was measured of one family, by its name."""

    name: str
    dims: tuple[str, ...]
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class MemberCode:
    """The machine code of a member when it was measured (`artifact/code.py`)."""

    member: str
    code: str


@dataclass(frozen=True)
class Run:
    """What was measured with one build on one card; `compiler` is that of its manifest.

    `codes` are of all members of its families, whether or not they were fast.
    """

    card: str
    target: str
    compiler: str
    driver: str
    date: str
    codes: tuple[MemberCode, ...]
    families: tuple[TunedFamily, ...]

    def stale(self, family: Family, codes: Mapping[str, str]) -> list[str]:
        """The members of a family that it measured otherwise, or not at all."""
        measured = {one.member: one.code for one in self.codes}
        return [m for m in family.members if measured.get(m) != codes[m]]


@dataclass(frozen=True)
class TuningFile:
    """All runs, the newest last."""

    runs: tuple[Run, ...] = ()


# A list of integers, an item a line, as `json` writes it.
_NUMBERS = re.compile(r"\[\n\s*(-?\d+(?:,\n\s*-?\d+)*)\n\s*\]")


def to_text(file: TuningFile) -> str:
    """The text of a tuning file, which `from_text` reads."""
    text = json.dumps({KEY: VERSION, **encoded(file)}, indent=1, ensure_ascii=False) + "\n"
    return _NUMBERS.sub(lambda numbers: f"[{' '.join(numbers[1].split())}]", text)


def from_text(text: str) -> TuningFile:
    """The tuning file of a text.

    Raises:   TuningFileError, which names the line, the version or the field at fault
    """
    try:
        document = parsed(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TuningFileError(f"it is no JSON: {error.msg.lower()} at {place}") from None
    except ValueError as error:
        raise TuningFileError(f"it is no JSON: {error}") from None
    except RecursionError:
        raise TuningFileError("it is nested too deep") from None
    if not isinstance(document, dict) or KEY not in document:
        raise TuningFileError(f"it has no `{KEY}`")
    version = document.pop(KEY)
    if version != VERSION:
        raise TuningFileError(f"it has version {version!r}, this tilec reads {VERSION}")
    try:
        file = decoded(TuningFile, document, "tuning")
    except StructureError as error:
        raise TuningFileError(str(error)) from None
    _check(file)
    return file


def _check(file: TuningFile) -> None:
    for run in file.runs:
        for family in run.families:
            for trial in family.trials:
                is_shape = all(0 <= extent <= COUNT_LIMIT for extent in trial.extents)
                if len(trial.extents) != len(family.dims) or not is_shape:
                    raise TuningFileError(
                        f"`{family.name}` has a trial at {list(trial.extents)}: "
                        f"expected an extent for each of {', '.join(family.dims)}, up to 2^40"
                    )


def merged(file: TuningFile, run: Run) -> TuningFile:
    """The file with one more run, whose shapes earlier runs of the same card give up."""
    done = {(family.name, trial.extents) for family in run.families for trial in family.trials}
    kept = (_without(old, done) if _same_card(old, run) else old for old in file.runs)
    return TuningFile((*(old for old in kept if old.families), run))


def _same_card(one: Run, other: Run) -> bool:
    return (one.card, one.target) == (other.card, other.target)


def _without(run: Run, done: set[tuple[str, tuple[int, ...]]]) -> Run:
    left = (
        replace(
            family, trials=tuple(t for t in family.trials if (family.name, t.extents) not in done)
        )
        for family in run.families
    )
    return replace(run, families=tuple(family for family in left if family.trials))


def with_tables(families: Iterable[Family], file: TuningFile, target: str) -> tuple[Family, ...]:
    """The families with what was measured for a target; of members that are not there, nothing."""
    return tuple(replace(one, tables=tuple(_tables(one, file, target))) for one in families)


def _tables(family: Family, file: TuningFile, target: str) -> Iterator[Table]:
    measured: dict[str, dict[tuple[int, ...], Measured]] = {}
    for run in file.runs:
        if run.target != target:
            continue
        for tuned in run.families:
            if (tuned.name, tuned.dims) != (family.name, family.dims):
                continue
            for trial in tuned.trials:
                if trial.member in family.members:
                    found = Measured(trial.extents, trial.member, trial.us)
                    measured.setdefault(run.card, {})[trial.extents] = found
    for card, by_shape in measured.items():
        yield Table(card, tuple(by_shape[shape] for shape in sorted(by_shape)))


def remarks(file: TuningFile, manifest: Manifest, codes: Mapping[str, str]) -> list[str]:
    """What whoever builds should know of a tuning file; sentences without a subject.

    `codes` are of all instances, as `artifact/code.py` gives them.
    """
    found = []
    others = sorted({run.target for run in file.runs} - {manifest.target})
    runs = [run for run in file.runs if run.target == manifest.target]
    if others:
        found.append(f"what it has for {', '.join(others)} is ignored for {manifest.target}")
    gone = sorted(_unknown(runs, manifest))
    if gone:
        found.append(f"it names what is not built, which is ignored: {', '.join(gone)}")
    stale = sorted(set(_stale(runs, manifest, codes)))
    if stale:
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        found.append(
            f"it is used, and was measured before `{stale[0]}`{more} had the code of now: "
            "`tilec tune` measures again"
        )
    return found


def _stale(runs: Sequence[Run], manifest: Manifest, codes: Mapping[str, str]) -> Iterator[str]:
    families = {family.name: family for family in manifest.families}
    for run in runs:
        for tuned in run.families:
            if tuned.name in families:
                yield from run.stale(families[tuned.name], codes)


def _unknown(runs: Sequence[Run], manifest: Manifest) -> Iterator[str]:
    families = {family.name: family for family in manifest.families}
    for run in runs:
        for tuned in run.families:
            known = families.get(tuned.name)
            if known is None or known.dims != tuned.dims:
                yield f"`{tuned.name}`"
                continue
            for trial in tuned.trials:
                if trial.member not in known.members:
                    yield f"`{trial.member}`"
