"""A cubin in a header: its bytes as 64-bit words, and what is known once it is loaded."""

from __future__ import annotations

import struct

from tilec.artifact.architecture import capability_of
from tilec.artifact.manifest import Manifest
from tilec.emit.emitter import Artifact
from tilec.emit.header.text import filled, string

_WORDS_PER_LINE = 12


def cubin_lines(artifact: Artifact, name: str, entries: int) -> list[str]:
    """The image, the state, and the `tilec_cubin` of this name."""
    manifest, padded = artifact.manifest, artifact.cubin + b"\0" * (-len(artifact.cubin) % 8)
    words = struct.unpack(f"<{len(padded) // 8}Q", padded)
    count = len(words)
    return [
        f"/* The cubin for {manifest.target}: {len(artifact.cubin)} bytes, little-endian. */",
        f"extern const uint64_t {name}_image[{count}] TILEC_ONE;",
        f"const uint64_t {name}_image[{count}] = {{",
        *_rows(words),
        "};",
        f"TILEC_ONE void *{name}_library;",
        f"TILEC_ONE tilec_entry {name}_entries[{max(entries, 1)}];",
        filled(
            f"static const tilec_cubin {name} = {{", _fields(manifest, name, max(entries, 1)), "};"
        ),
    ]


def _fields(manifest: Manifest, name: str, entries: int) -> tuple[object, ...]:
    major, minor, specific = capability_of(manifest.target)
    return (
        string(manifest.source.file), string(manifest.target), major, minor,
        f"'{specific}'" if specific else 0, f"{name}_image", f"&{name}_library", f"{name}_entries",
        entries,
    )  # fmt: skip


def _rows(words: tuple[int, ...]) -> list[str]:
    texts = [hex(word) if word > 9 else str(word) for word in words]
    return [
        f"{','.join(texts[i : i + _WORDS_PER_LINE])},"
        for i in range(0, len(texts), _WORDS_PER_LINE)
    ]
