"""Reads files of users: regular files up to a size, so that nothing that is named can block a
command or fill its memory, as a FIFO, a terminal and `/dev/zero` would.

A pipe is read where it is named as the shell names one, `/dev/stdin` or `/dev/fd/63` (`<(…)`): who
does that means a stream, and its writer ends it. What is read of it has the same limit.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from os import PathLike
from pathlib import Path
from typing import BinaryIO

MIB = 1 << 20
# Programs, tuning files, lists of shapes: what people and generators write.
TEXT_LIMIT = 64 * MIB
# Cubins, fat binaries, manifests, arrays.
BINARY_LIMIT = 4096 * MIB

_STREAM = re.compile(r"/dev/stdin|/(dev|proc/self)/fd/\d+")
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_regular(path: str | PathLike[str], limit: int) -> bytes:
    """What a file holds.

    Units:    `limit` is bytes
    Raises:   OSError, whose `strerror` says what the file is, if it is not a regular one, or larger
    """
    name = os.fspath(path)
    _refuse_others(Path(name).stat(), name)  # opening a device may do something
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    with open(os.open(name, flags), "rb") as file:  # noqa: PTH123 (of a descriptor)
        found = os.fstat(file.fileno())
        _refuse_others(found, name)
        os.set_blocking(file.fileno(), True)
        if found.st_size > limit:
            raise _too_large(name, limit)
        # The size as one piece; a file that grows, and those that have no size, go on.
        return read_stream(file, limit, name, found.st_size)


def read_stream(file: BinaryIO, limit: int, name: str, expected: int = 0) -> bytes:
    """What is left of a stream. Raises OSError where that is more than `limit` bytes."""
    content = file.read(expected)
    while piece := file.read(MIB):
        if len(content) + len(piece) > limit:
            raise _too_large(name, limit)
        content += piece
    return content


def read_regular_text(path: str | PathLike[str], limit: int = TEXT_LIMIT) -> str:
    """As `read_regular`, of UTF-8. Raises OSError, UnicodeDecodeError"""
    return read_regular(path, limit).decode("utf-8")


def _refuse_others(found: os.stat_result, name: str) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG or (kind == stat.S_IFIFO and _STREAM.fullmatch(name)):
        return
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "is a directory", name)
    said = f"is {_KINDS.get(kind, 'something else')}, not a regular file"
    raise OSError(errno.EINVAL, said, name)


def _too_large(name: str, limit: int) -> OSError:
    return OSError(errno.EFBIG, f"is larger than {limit:,} bytes, which is the limit", name)
