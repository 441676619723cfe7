"""A cubin in a file of Rust: its bytes as a literal, and what is known once it is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.artifact.architecture import capability_of
from tilec.emit.emitter import Artifact
from tilec.emit.rust.text import string, structure

_BYTES_PER_LINE = 48
_SIMPLE = {0: "\\0", ord('"'): '\\"', ord("\\"): "\\\\"}


def cubin_lines(artifact: Artifact, own: str, entries: int) -> Iterator[str]:
    """The `Cubin` called `CUBIN_own`."""
    manifest, image = artifact.manifest, artifact.cubin
    major, minor, specific = capability_of(manifest.target)
    yield f'static IMAGE_{own}: Image<[u8; {len(image)}]> = Image(*b"\\'
    for start in range(0, len(image), _BYTES_PER_LINE):
        line = _line(image[start : start + _BYTES_PER_LINE])
        yield f"{line}\\"
    yield '");'
    yield f"static LOADED_{own}: Loaded<{max(entries, 1)}> = Loaded::new();"
    value = structure(
        "Cubin",
        file=string(manifest.source.file),
        target=string(manifest.target),
        major=major,
        minor=minor,
        specific=f"b'{specific}'" if specific else 0,
        image=f"&IMAGE_{own}.0",
        state=f"LOADED_{own}.state()",
    )
    yield f"static CUBIN_{own}: Cubin = {value};"
    yield ""


def _line(image: bytes) -> str:
    """Bytes of a literal; those at its ends are no white space, which a line break swallows."""
    texts = [
        _SIMPLE.get(byte) or (chr(byte) if 32 < byte < 127 else f"\\x{byte:02x}") for byte in image
    ]
    return "".join(texts)
