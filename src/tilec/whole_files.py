"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tilec.leftovers import new_file, sweep_files, unfinished_name
from tilec.unfinished import unfinished


def write_whole(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write one file atomically, and its folder where there is none.

    What killed processes left unfinished in the folder goes.

    Raises:   OSError
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep_files(path.parent)
    write_all({path: content}, mode)


def write_all(contents: Mapping[Path, bytes], mode: int = 0o666) -> None:
    """Write files of folders that are there, in order.

    All are written and flushed beside their places before the first is put in place, so that an
    error leaves what was there before.

    Raises:   OSError
    """
    temporaries = {path: unfinished_name(path) for path in contents}
    with unfinished(temporaries.values()), ExitStack() as locks:
        for path, temporary in temporaries.items():
            _refuse_place(path)
            locks.enter_context(_written(temporary, contents[path], mode))
        for path, temporary in temporaries.items():
            temporary.replace(path)


def _refuse_place(path: Path) -> None:
    """Found here, where nothing is in place yet, and not by the rename; which would take the place
    of a device or a pipe."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError:
        return  # nothing is there, or a link that leads nowhere, which the rename replaces
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "is a directory", str(path))
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


@contextmanager
def _written(path: Path, content: bytes, mode: int) -> Iterator[None]:
    """A new file with this content, flushed; within the block it is locked, and no leftover."""
    with open(new_file(path, mode), "wb") as file:  # noqa: PTH123 (of a descriptor)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        yield
