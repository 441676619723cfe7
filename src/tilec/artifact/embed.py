"""A manifest inside a cubin: one more ELF section, `.tilec.manifest`.

Everything that ptxas wrote keeps its place and its bytes, except three fields of the ELF header
and one section header: the manifest, a section-name table with one more name, and the section
headers with one more entry go to the end of the file. (Tools that rewrite the whole file renumber
symbols, which the driver does not take.)

Source: System V ABI, "Object Files"; tests/unit/test_embed.py reads results with nvdisasm
"""

from __future__ import annotations

import struct

from tilec.artifact.elf import SECTION_HEADER, SHT_PROGBITS, CubinError, parsed

__all__ = ["SECTION", "CubinError", "embed", "extract"]

SECTION = ".tilec.manifest"

_SECTION_TABLE_OFFSET_AT = 40  # of e_shoff in Elf64_Ehdr
_SECTION_COUNT_AT = 60  # of e_shnum


def embed(cubin: bytes, manifest_json: bytes) -> bytes:
    """The cubin with a manifest in it.

    Raises:   CubinError if the bytes are no cubin, or already hold a manifest
    """
    elf = parsed(cubin)
    if extract(cubin) is not None:
        raise CubinError("the cubin already holds a manifest")
    names = elf.contents(elf.sections[elf.names_index])
    new_names = names + SECTION.encode() + b"\0"

    manifest_at = _padded(len(cubin))
    names_at = _padded(manifest_at + len(manifest_json))
    table_at = _padded(names_at + len(new_names))

    sections = list(elf.sections)
    old = sections[elf.names_index]
    sections[elf.names_index] = (*old[:4], names_at, len(new_names), *old[6:])
    sections.append((len(names), SHT_PROGBITS, 0, 0, manifest_at, len(manifest_json), 0, 0, 1, 0))
    result = bytearray(table_at)
    result[: len(cubin)] = cubin
    result[manifest_at : manifest_at + len(manifest_json)] = manifest_json
    result[names_at : names_at + len(new_names)] = new_names
    for section in sections:
        result += SECTION_HEADER.pack(*section)
    struct.pack_into("<Q", result, _SECTION_TABLE_OFFSET_AT, table_at)
    struct.pack_into("<H", result, _SECTION_COUNT_AT, len(sections))
    return bytes(result)


def extract(cubin: bytes) -> bytes | None:
    """The manifest that a cubin holds, or None.

    Raises:   CubinError if the bytes are no cubin, or a damaged one
    """
    return parsed(cubin).named(SECTION)


def _padded(offset: int) -> int:
    return -(-offset // 8) * 8
