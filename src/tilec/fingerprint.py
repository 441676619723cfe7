"""A hash of what of tilec decides the code that it makes: the same on every machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_SOURCES = (".py", ".mlir", ".lark", ".json", ".h", ".rs")
# Packages that machine code does not depend on.
_BESIDE = frozenset(
    {
        "artifact", "bench", "buildsystem", "cli", "diagnostics", "emit", "header", "interpret",
        "runtime", "rust", "tune",
    }
)  # fmt: skip


def own_files() -> Iterator[Path]:
    """All of tilec's own files, in the same order everywhere."""
    for package in ("tilec", "tilec.dialects", "tilec.grammar"):
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            for folder, folders, names in os.walk(location):
                folders.sort()
                yield from (Path(folder, n) for n in sorted(names) if n.endswith(_SOURCES))


@cache
def code_fingerprint(*versions: str) -> str:
    """16 hexadecimal digits, of the files that generate code and of versions of other tools."""
    digest = hashlib.sha256(" ".join(versions).encode())
    for path in own_files():
        if not _BESIDE.intersection(path.parts[-3:-1]):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
