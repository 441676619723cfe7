"""The tuning file of a source file: an input of its build, if it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tilec.artifact.code import codes_of
from tilec.artifact.embed import extract
from tilec.artifact.manifest import from_json
from tilec.artifact.tuning_file import SUFFIX, TuningFileError, from_text, remarks
from tilec.diagnostics.setup_error import SetupError
from tilec.sources import Sources


def tuning_path(sources: Sources) -> str:
    """Where the tuning file of a program is, if it has one."""
    return f"{sources.root.name.removesuffix('.tile')}{SUFFIX}"


def with_tuning(sources: Sources) -> Sources:
    """The sources with their tuning file, where there is one.

    Raises:   SetupError if it cannot be read, or is no tuning file: nobody shall wonder why choices
              that were measured are not made
    """
    path = tuning_path(sources)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return sources
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"cannot read `{path}`: {error}") from error
    try:
        from_text(text)
    except TuningFileError as error:
        raise SetupError(
            f"`{path}` is no tuning file: {error}",
            help="`tilec tune` writes it anew where it is deleted; without it costs are estimated",
        ) from None
    return replace(sources, tuning=text)


def notes_of(sources: Sources, outputs: Mapping[str, bytes]) -> Iterator[str]:
    """What of a tuning file is not used, or is not of this build."""
    if sources.tuning is None:
        return
    told: dict[str, None] = {}
    for name, cubin in outputs.items():
        if name.endswith(".cubin"):
            manifest = from_json(extract(cubin) or b"")
            codes = codes_of(manifest, cubin)
            told |= dict.fromkeys(remarks(from_text(sources.tuning), manifest, codes))
    for remark in told:
        yield f"`{tuning_path(sources)}`: {remark}"
