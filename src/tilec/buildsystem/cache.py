"""Results kept between builds, one file each, by their key.

Several processes may share a cache: an entry appears whole by a rename, holds its own hash, and is
ignored when it does not match. A cache that cannot be read or written is an empty one.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilec.buildsystem.writing import write_whole
from tilec.compilation import Compiled
from tilec.diagnostics.diagnostic import Diagnostic, Label, Severity
from tilec.source import Span

FOLDER_VARIABLE = "TILEC_CACHE"
_MAGIC = b"tilec result 1\n"
_DAY_S = 24 * 3600
_KEPT_UNUSED_S = 30 * _DAY_S


def cache_folder() -> Path | None:
    """`$TILEC_CACHE`, or `tilec` in `$XDG_CACHE_HOME` or `~/.cache`; None for who has no home."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "tilec"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "tilec"
    return None


class Cache:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Compiled | None:
        """The result under a key, or None: never stored, or not whole."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        compiled = _decoded(content)
        if compiled is not None:
            _mark_used(path)
        return compiled

    def put(self, key: str, compiled: Compiled) -> None:
        """Keep a result; a cache that cannot be written keeps nothing."""
        try:
            write_whole(self._path(key), _encoded(compiled))
            self._forget_unused()
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / "results" / key[:2] / key

    def _forget_unused(self) -> None:
        """Once a day, delete what no build has read for a month."""
        stamp = self.folder / "swept"
        now = time.time()
        if stamp.exists() and now - stamp.stat().st_mtime < _DAY_S:
            return
        write_whole(stamp, b"")
        for path in (self.folder / "results").glob("*/*"):
            if now - path.stat().st_mtime > _KEPT_UNUSED_S:
                path.unlink(missing_ok=True)


def _mark_used(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # somebody else's cache, or just deleted: only the sweep is less exact
        return


def _encoded(compiled: Compiled) -> bytes:
    header = {
        "outputs": [[name, len(data)] for name, data in compiled.outputs.items()],
        "diagnostics": [{**asdict(d), "severity": d.severity.value} for d in compiled.diagnostics],
        "used": compiled.used,
        "texts": dict(compiled.texts),
        "unmatched": compiled.unmatched,
    }
    body = json.dumps(header).encode() + b"\n" + b"".join(compiled.outputs.values())
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decoded(content: bytes) -> Compiled | None:
    start = len(_MAGIC) + 65
    digest, body = content[len(_MAGIC) : start - 1], content[start:]
    if not content.startswith(_MAGIC) or hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    line, _, data = body.partition(b"\n")
    header = json.loads(line)
    outputs: dict[str, bytes] = {}
    position = 0
    for name, size in header["outputs"]:
        outputs[name] = data[position : position + size]
        position += size
    diagnostics = tuple(_diagnostic(d) for d in header["diagnostics"])
    used, unmatched = tuple(header["used"]), tuple(header["unmatched"])
    return Compiled(outputs, diagnostics, used, header["texts"], unmatched)


def _diagnostic(stored: dict[str, Any]) -> Diagnostic:
    labels = tuple(Label(Span(**label["span"]), label["text"]) for label in stored["labels"])
    return Diagnostic(
        stored["code"],
        stored["message"],
        labels,
        tuple(stored["notes"]),
        stored["help"],
        Severity(stored["severity"]),
    )
