"""The names of the files that a build may write of one program: what a cached result is held to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilec.compilation import INTERMEDIATE, Compiled, Options
from tilec.sources import Sources


def is_expected(compiled: Compiled, sources: Sources, options: Options) -> bool:
    """Whether a stored result can be one of this program: its files are those that a build writes,
    and what it read is what there is to read."""
    if not set(compiled.used) <= set(sources.files):
        return False
    stem = Path(sources.root.name).stem
    needed = set(_needed(stem, options))
    allowed = needed | set(_asked_for(stem, options))
    names = set(compiled.outputs)
    return not names or needed <= names <= allowed


def _needed(stem: str, options: Options) -> Iterator[str]:
    """Cubins and their manifests, which each program with kernels has."""
    for target in options.targets:
        yield f"{stem}.{target}.cubin"
        yield f"{stem}.json" if len(options.targets) == 1 else f"{stem}.{target}.json"
    if options.fatbin:
        yield f"{stem}.fatbin"


def _asked_for(stem: str, options: Options) -> Iterator[str]:
    """What `--emit` adds."""
    for step, suffix in INTERMEDIATE.items():
        if step in options.emit:
            yield f"{stem}{suffix}"
            yield from (f"{stem}.{target}{suffix}" for target in options.targets)
    if "rust" in options.emit:
        yield f"{stem}.rs"
    yield from other_names(stem, options)


def other_names(stem: str, options: Options) -> Iterator[str]:
    """What is named otherwise than by adding to the stem."""
    if "header" in options.emit:
        from tilec.emit.header import header_file

        yield header_file(stem)
    if "python" in options.emit:
        from tilec.emit.python import python_files

        yield from python_files(stem)
