"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from tilec.diagnostics.setup_error import SetupError


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
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot write `{error.filename or folder}`: {reason}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write one file atomically. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _write_beside(path, content)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _write_together(folder: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    changed = [folder / name for name, data in contents.items() if not _has(folder / name, data)]
    written: list[tuple[Path, Path]] = []
    try:
        for path in changed:
            # Found here, where nothing is in place yet, and not by the rename.
            if path.is_dir():
                raise IsADirectoryError(21, "is a directory", str(path))
            written.append((_write_beside(path, contents[path.name]), path))
        for temporary, path in written:
            temporary.replace(path)
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
    return tuple(changed)


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _write_beside(path: Path, content: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
