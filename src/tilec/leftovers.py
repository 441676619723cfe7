"""What a killed process left unfinished: files and folders without a living owner.

Who works on one holds a lock on it, which the system takes back however a process ends. So what is
not locked is left over, and goes when a later command comes by.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir

from tilec.unfinished import unfinished

_UNFINISHED_FILE = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.tmp")
_FOLDER_PREFIX = "tilec-jobs-"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES = 8


def unfinished_name(path: Path) -> Path:
    """A name beside a file, that no other process takes and by which it is known as unfinished."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def new_file(path: Path, mode: int) -> int:
    """Make a file of that name, which is locked until it is closed, and give its descriptor.

    Raises:   OSError
    """
    for _ in range(_TRIES):
        descriptor = os.open(path, _NEW_FILE, mode)
        if _is_kept(descriptor):
            return descriptor
    raise OSError(errno.EAGAIN, "is deleted again and again", str(path))


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for what jobs write, which is deleted at the end. Raises OSError"""
    folder = Path(gettempdir()) / f"{_FOLDER_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    descriptor = _new_folder(folder)
    with unfinished([folder]):
        try:
            yield folder
        finally:
            os.close(descriptor)


def _new_folder(path: Path) -> int:
    for _ in range(_TRIES):
        path.mkdir(mode=0o700)
        descriptor = os.open(path, _LOOK | os.O_DIRECTORY)
        if _is_kept(descriptor):
            return descriptor
    raise OSError(errno.EAGAIN, "is deleted again and again", str(path))


def _is_kept(descriptor: int) -> bool:
    """Lock what was just made. Closes it if it was swept in the moment before."""
    _lock(descriptor)
    if os.fstat(descriptor).st_nlink:
        return True
    os.close(descriptor)
    return False


def sweep_files(folder: Path) -> None:
    """Delete what was left unfinished in a folder where files are written."""
    for name in _names(folder):
        if name.startswith(".") and _UNFINISHED_FILE.fullmatch(name):
            _sweep(folder / name, stat.S_IFREG)


def sweep_folders() -> None:
    """Delete the folders that killed commands left where temporary files are."""
    with suppress(OSError):
        parent = Path(gettempdir())
        for name in _names(parent):
            if name.startswith(_FOLDER_PREFIX):
                _sweep(parent / name, stat.S_IFDIR)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _sweep(path: Path, kind: int) -> None:
    """Delete one thing, if it is the user's own, of this kind, and not locked."""
    with suppress(OSError):
        descriptor = os.open(path, _LOOK)
        try:
            found = os.fstat(descriptor)
            is_own = found.st_uid == os.geteuid() and stat.S_IFMT(found.st_mode) == kind
            if is_own and _lock(descriptor):
                shutil.rmtree(path) if kind == stat.S_IFDIR else path.unlink()
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether the lock was free; not where a file system has none, and then nothing is swept."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
