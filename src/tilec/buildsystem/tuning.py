"""The tuning files of source files: inputs of a build, where they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilec.artifact.code import codes_of
from tilec.artifact.embed import extract
from tilec.artifact.manifest import from_json
from tilec.artifact.tuning_file import SUFFIX, TuningFileError, from_text, remarks
from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import read_regular_text
from tilec.sources import Sources


def tuning_path(file: str) -> str:
    """Where the tuning file of a source file is, if it has one."""
    return f"{file.removesuffix('.tile')}{SUFFIX}"


def tuning_paths(sources: Sources, used: Sequence[str]) -> list[str]:
    """The tuning files that a build has read, of those source files that it used."""
    return [
        tuning_path(file)
        for file in used
        if file in sources.used_tuning or (file == sources.root.name and sources.tuning is not None)
    ]


def with_tuning(sources: Sources) -> Sources:
    """The sources with their tuning files, where there are any.

    Raises:   SetupError if one cannot be read, or is no tuning file: nobody shall wonder why
              choices that were measured are not made
    """
    texts = {file: text for file in sources.files if (text := _text_of(file)) is not None}
    own = texts.pop(sources.root.name, None)
    return replace(sources, tuning=own, used_tuning=texts)


def _text_of(file: str) -> str | None:
    """The tuning file of a source file. Raises SetupError"""
    path = tuning_path(file)
    try:
        text = read_regular_text(path)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise SetupError(f"cannot read `{path}`: it is not UTF-8") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{path}`: {reason}") from error
    try:
        from_text(text)
    except TuningFileError as error:
        raise SetupError(
            f"`{path}` is no tuning file: {error}",
            help="`tilec tune` writes it anew where it is deleted; without it costs are estimated",
        ) from None
    return text


def notes_of(sources: Sources, outputs: Mapping[str, bytes]) -> Iterator[str]:
    """What of the program's own tuning file is not used, or is not of this build.

    Of other files that is told where they are built themselves.
    """
    if sources.tuning is None:
        return
    told: dict[str, None] = {}
    for name, cubin in outputs.items():
        if name.endswith(".cubin"):
            manifest = from_json(extract(cubin) or b"")
            codes = codes_of(manifest, cubin)
            told |= dict.fromkeys(remarks(from_text(sources.tuning), manifest, codes))
    for remark in told:
        yield f"`{tuning_path(sources.root.name)}`: {remark}"
