"""The manifests that a file holds, whichever kind of file it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from tilec.artifact.embed import CubinError, extract
from tilec.artifact.fatbin import cubins_of, is_fatbin
from tilec.artifact.manifest import Manifest, ManifestError, from_json
from tilec.artifact.validate import faults_of
from tilec.diagnostics.setup_error import SetupError
from tilec.printable import printable
from tilec.regular_files import BINARY_LIMIT, read_regular

T = TypeVar("T")


def read_manifests(file: str) -> list[Manifest]:
    """The manifest of a cubin or a `.json` file; of a fat binary, that of each cubin in it.

    Every text in it is printable, and on one line: only documentation has several.

    Raises:   SetupError if the file cannot be read; CubinError, ManifestError if it is damaged, or
              says what cannot be
    """
    manifests = [from_json(text) for text in manifest_texts(file)]
    for manifest in manifests:
        fault = next(faults_of(manifest), None)
        if fault is not None:
            raise ManifestError(fault)
    return [_shown(manifest) for manifest in manifests]


def manifest_texts(file: str) -> Iterator[bytes]:
    """As `read_manifests`, the manifests as JSON.

    Raises:   SetupError if the file cannot be read; CubinError if it is damaged, or is no such file
    """
    try:
        content = read_regular(file, BINARY_LIMIT)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{file}`: {reason}") from error
    if is_fatbin(content):
        yield from map(_embedded, cubins_of(content))
    elif content.startswith(b"\x7fELF"):
        yield _embedded(content)
    elif content.lstrip().startswith((b"{", b"[")):
        yield content
    else:
        raise CubinError("it is neither a cubin, nor a fat binary, nor a manifest")


def _shown(value: T, keep: str = "") -> T:
    """A part of a manifest with its texts made printable; the same one where they are."""
    if isinstance(value, str):
        return cast(T, printable(value, keep))
    if isinstance(value, tuple):
        return cast(T, tuple(map(_shown, value)))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {}
    for field in fields(value):
        old = getattr(value, field.name)
        new = _shown(old, "\n" if field.name == "documentation" else "")
        if new != old:
            changed[field.name] = new
    return replace(value, **changed) if changed else value


def _embedded(cubin: bytes) -> bytes:
    text = extract(cubin)
    if text is None:
        raise CubinError("the cubin holds no manifest")
    return text
