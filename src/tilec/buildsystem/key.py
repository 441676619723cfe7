"""The name of a result: a hash of everything that decides it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tilec import __version__
from tilec.compilation import Options
from tilec.diagnostics.setup_error import SetupError
from tilec.fingerprint import own_files
from tilec.sources import Sources
from tilec.target import toolchain

# Packages whose answers are in the result. They change by being installed, which sets their time.
_TOOLS = ("mlir", "lark", "islpy", "numpy", "ml_dtypes")


def key_of(sources: Sources, options: Options) -> str:
    """The key of what a compile of this program gives: 64 hexadecimal digits.

    The files' names count, since line tables and messages hold them.
    """
    content = {
        "compiler": compiler_fingerprint(),
        "root": sources.root.name,
        "files": dict(sources.digests),
        "modules": sorted([*pair, name] for pair, name in sources.modules.items()),
        "options": asdict(options),
        "tuning": [sources.tuning, dict(sources.used_tuning)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@cache
def compiler_fingerprint() -> str:
    """A hash of tilec's own files by content, and of the tools by place, size and time."""
    digest = hashlib.sha256(f"{__version__} {sys.version}".encode())
    for path in own_files():
        digest.update(str(path.name).encode())
        digest.update(path.read_bytes())
    for path in _tools():
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _tools() -> Iterator[Path]:
    for find in (toolchain.ptxas, toolchain.libdevice, toolchain.fatbinary):
        try:
            yield find()
        except SetupError:  # what needs it says so; the key is then that of a machine without it
            continue
    for package in _TOOLS:
        spec = find_spec(package)
        if spec is None:
            continue
        for location in spec.submodule_search_locations or ():
            yield Path(location)
            if spec.origin:
                yield Path(spec.origin)
