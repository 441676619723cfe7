"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from tilec.diagnostics.setup_error import SetupError
from tilec.unfinished import unfinished


def write_together(folder: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write several files of one folder, in order, and give those whose bytes changed.

    All are written and flushed beside their places before the first is put in place, so that an
    error leaves what was there before. The last name should be the one that readers look for. A
    file that has these bytes already keeps its time.

    Raises:   SetupError if the folder cannot be written
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _write_together(folder, contents)
    except FileExistsError as error:
        raise SetupError(f"cannot write into `{folder}`: it is no folder") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot write `{error.filename or folder}`: {reason}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write one file atomically. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    with unfinished([temporary]):
        _write(temporary, content)
        temporary.replace(path)


def _write_together(folder: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    changed = [folder / name for name, data in contents.items() if not _has(folder / name, data)]
    temporaries = {path: _beside(path) for path in changed}
    with unfinished(temporaries.values()):
        for path, temporary in temporaries.items():
            # Found here, where nothing is in place yet, and not by the rename.
            if path.is_dir():
                raise IsADirectoryError(21, "is a directory", str(path))
            _write(temporary, contents[path.name])
        for path, temporary in temporaries.items():
            temporary.replace(path)
    return tuple(changed)


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _beside(path: Path) -> Path:
    """A name in the same folder that no other process takes."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
