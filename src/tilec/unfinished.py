"""Files and folders that are deleted however the process ends, by a signal too.

A handler of signals may raise nothing: Python drops what is raised within a destructor or a fork,
and the command would go on. So what is to be tidied up is written down here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_paths: set[Path] = set()


@contextmanager
def unfinished(paths: Iterable[Path]) -> Iterator[None]:
    """Delete these at the end of the block, those of them that are there."""
    own = frozenset(paths)
    _paths.update(own)
    try:
        yield
    finally:
        _delete(own)
        _paths.difference_update(own)


def delete_unfinished() -> None:
    """For a process that ends now."""
    _delete(frozenset(_paths))


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            # A process that is just killed may still write there.
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
