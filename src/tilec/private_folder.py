"""Folders that only the user can read or write, for files that are trusted without a check."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_private(folder: Path) -> str | None:
    """Make a folder for the user alone, or one that is there; None, or what speaks against it.

    One of the user's own that others can only read becomes private; one that they can write may
    hold what they put there, and does not.

    Raises:   OSError if it can neither be made nor looked at
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    user = os.geteuid()
    if folder.is_symlink() and folder.lstat().st_uid not in (user, 0):
        return "it is a link that another user made"
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        return "it is no folder"
    if found.st_uid != user:
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write there"
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return None
