"""Reports of internal errors: one file with all that is needed to see the error again."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tilec import __version__
from tilec.buildsystem.cache import cache_folder
from tilec.source import SourceFile
from tilec.whole_files import write_whole


def save_report(reason: str, details: str, sources: Iterable[SourceFile] = ()) -> Path | None:
    """Write a report and give its path, or None where nothing can be written.

    Guarantees: the same error of the same input has the same path, so that reports do not pile up
    """
    text = "\n".join(
        [
            f"tilec {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {shlex.join(sys.argv)}",
            f"error: {reason}",
            "",
            details.rstrip(),
            *(f"\n==== {file.name}\n{file.text.rstrip()}" for file in sources),
            "",
        ]
    )
    content = text.encode("utf-8", "replace")
    name = f"crash-{hashlib.sha256(content).hexdigest()[:12]}.txt"
    for folder in _folders():
        try:
            write_whole(folder / name, content, 0o600)  # it holds the program
        except OSError:
            continue
        return folder / name
    return None


def _folders() -> Iterator[Path]:
    """Where a report may be, the best place first."""
    if (cache := cache_folder()) is not None:
        yield cache / "crashes"
    with suppress(OSError):  # a machine without any folder for temporary files
        yield Path(tempfile.gettempdir())
