"""Results kept between builds, one file each, by their key.

What is kept is delivered as if it had been compiled, so it must be the user's own: the folder is
private (0700, the user's), and each entry is sealed with a secret that lies in it, together with
the key that it is kept by. An entry that another user wrote, or that was moved or damaged, is
none. A folder that others may write is not used, unless the user says that it is shared
(`TILEC_SHARED_CACHE`): then whoever can write there decides what builds deliver.

Several processes may use a cache: an entry appears whole by a rename. A cache that cannot be read
or written is an empty one.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilec.buildsystem.cache_entry import decoded, encoded
from tilec.compilation import Compiled
from tilec.leftovers import sweep_files
from tilec.private_folder import make_private
from tilec.regular_files import BINARY_LIMIT, read_regular
from tilec.whole_files import write_whole

FOLDER_VARIABLE = "TILEC_CACHE"
SHARED_VARIABLE = "TILEC_SHARED_CACHE"
_DAY_S = 24 * 3600
_KEPT_UNUSED_S = 30 * _DAY_S
_SECRET_BYTES = 32
_FOLDER = re.compile("[0-9a-f]{2}")
_ENTRY = re.compile("[0-9a-f]{64}")


def cache_folder() -> Path | None:
    """`$TILEC_CACHE`, or `tilec` in `$XDG_CACHE_HOME` or `~/.cache`; None for who has no home."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "tilec"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "tilec"
    return None


def shared_folder() -> Path | None:
    """The cache that the user shares with others, if there is one: it is used instead."""
    chosen = os.environ.get(SHARED_VARIABLE)
    return Path(chosen) if chosen else None


@dataclass(frozen=True)
class Opened:
    """The cache to use, if any; and why a folder that is there is not used."""

    cache: Cache | None
    note: str | None = None


def open_cache() -> Opened:
    """The cache of the environment's choice."""
    if (shared := shared_folder()) is not None:
        return Opened(Cache(shared, b""))
    folder = cache_folder()
    if folder is None:
        return Opened(None)
    try:
        problem = make_private(folder)
        if problem is None:
            return Opened(Cache(folder, _secret(folder / "secret")))
    except OSError:  # a disk that is full or cannot be written
        return Opened(None)
    ways_out = f"`chmod 700` it, name another by {FOLDER_VARIABLE}, or share it ({SHARED_VARIABLE})"
    return Opened(None, f"the cache `{folder}` is not used: {problem}; {ways_out}")


class Cache:
    def __init__(self, folder: Path, secret: bytes) -> None:
        self.folder = folder
        self._secret = secret  # empty: the cache is shared

    def get(self, key: str) -> Compiled | None:
        """The result under a key, or None: not stored with the secret, or not whole."""
        path = self._path(key)
        try:
            content = read_regular(path, BINARY_LIMIT)
        except OSError:
            return None
        compiled = decoded(content, key, self._secret)
        if compiled is not None:
            _mark_used(path)
        return compiled

    def put(self, key: str, compiled: Compiled) -> None:
        """Keep a result; a cache that cannot be written keeps nothing."""
        try:
            write_whole(self._path(key), encoded(compiled, key, self._secret))
            self._forget_unused()
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / "results" / key[:2] / key

    def _forget_unused(self) -> None:
        """Once a day, delete what no build has read for a month, and what was left unfinished."""
        stamp = self.folder / "swept"
        now = time.time()
        if stamp.exists() and now - stamp.stat().st_mtime < _DAY_S:
            return
        write_whole(stamp, b"")
        for folder in (self.folder / "results").iterdir():
            # Where a cache is shared, a link may lead to where files are that are no results.
            if not _FOLDER.fullmatch(folder.name) or folder.is_symlink():
                continue
            sweep_files(folder)
            for path in folder.iterdir():
                if _ENTRY.fullmatch(path.name) and now - path.lstat().st_mtime > _KEPT_UNUSED_S:
                    path.unlink(missing_ok=True)


def _secret(path: Path) -> bytes:
    """The secret of a private cache, made where there is none that can be one.

    Raises:   OSError
    """
    with suppress(OSError):
        found = path.lstat()
        is_own = found.st_uid == os.geteuid() and not found.st_mode & 0o077
        if is_own and stat.S_ISREG(found.st_mode) and found.st_size == _SECRET_BYTES:
            return read_regular(path, _SECRET_BYTES)
    secret = secrets.token_bytes(_SECRET_BYTES)
    write_whole(path, secret, 0o600)
    return secret


def _mark_used(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # somebody else's cache, or just deleted: only the sweep is less exact
        return
