"""The files of one result, written together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilec.diagnostics.setup_error import SetupError
from tilec.leftovers import sweep_files
from tilec.regular_files import read_regular
from tilec.whole_files import write_all


def write_together(folder: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write several files of one folder, in order, and give those whose bytes changed.

    All are in place or, where there is an error, none. The last name should be the one that readers
    look for. A file that has these bytes already keeps its time.

    Raises:   SetupError if the folder cannot be written
    """
    for name in contents:
        assert name == Path(name).name, f"`{name}` is no name of a file in `{folder}`"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep_files(folder)
        changed = {folder / n: data for n, data in contents.items() if not _has(folder / n, data)}
        write_all(changed)
        return tuple(changed)
    except FileExistsError as error:
        raise SetupError(f"cannot write into `{folder}`: it is no folder") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot write `{error.filename or folder}`: {reason}") from error


def _has(path: Path, content: bytes) -> bool:
    try:
        is_as_long = path.stat().st_size == len(content)
        return is_as_long and read_regular(path, len(content)) == content
    except OSError:
        return False
