"""A manifest inside a cubin: one more ELF section, `.tilec.manifest`.

Everything that ptxas wrote keeps its place and its bytes, except three fields of the ELF header
and one section header: the manifest, a section-name table with one more name, and the section
headers with one more entry go to the end of the file. (Tools that rewrite the whole file renumber
symbols, which the driver does not take.)

Source: System V ABI, "Object Files"; tests/unit/test_embed.py reads results with nvdisasm
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SECTION = ".tilec.manifest"

_HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SECTION_TABLE_OFFSET_AT = 40  # of e_shoff in Elf64_Ehdr
_SECTION_COUNT_AT = 60  # of e_shnum
_SHT_PROGBITS = 1
_SHT_NOBITS = 8
_SHN_LORESERVE = 0xFF00
_ELFCLASS64 = 2
_ELFDATA2LSB = 1
_EM_CUDA = 190


class CubinError(ValueError):
    """The bytes are no whole cubin."""


@dataclass(frozen=True)
class _Elf:
    """The section table of an ELF file; each section as the ten numbers of its header."""

    data: bytes
    sections: tuple[tuple[int, ...], ...]
    names_index: int

    def contents(self, section: tuple[int, ...]) -> bytes:
        if section[1] == _SHT_NOBITS:
            return b""
        return _bytes_at(self.data, section[4], section[5], "a section")

    def name(self, section: tuple[int, ...]) -> bytes:
        names = self.contents(self.sections[self.names_index])
        end = names.find(b"\0", section[0])
        if section[0] >= len(names) or end < 0:
            raise CubinError("a section's name lies outside the table of names")
        return names[section[0] : end]


def embed(cubin: bytes, manifest_json: bytes) -> bytes:
    """The cubin with a manifest in it.

    Raises:   CubinError if the bytes are no cubin, or already hold a manifest
    """
    elf = _parsed(cubin)
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
    sections.append((len(names), _SHT_PROGBITS, 0, 0, manifest_at, len(manifest_json), 0, 0, 1, 0))
    result = bytearray(table_at)
    result[: len(cubin)] = cubin
    result[manifest_at : manifest_at + len(manifest_json)] = manifest_json
    result[names_at : names_at + len(new_names)] = new_names
    for section in sections:
        result += _SECTION.pack(*section)
    struct.pack_into("<Q", result, _SECTION_TABLE_OFFSET_AT, table_at)
    struct.pack_into("<H", result, _SECTION_COUNT_AT, len(sections))
    return bytes(result)


def extract(cubin: bytes) -> bytes | None:
    """The manifest that a cubin holds, or None.

    Raises:   CubinError if the bytes are no cubin, or a damaged one
    """
    elf = _parsed(cubin)
    for section in elf.sections:
        if elf.name(section) == SECTION.encode():
            return elf.contents(section)
    return None


def _parsed(data: bytes) -> _Elf:
    header = _HEADER.unpack(_bytes_at(data, 0, _HEADER.size, "the ELF header"))
    magic, file_class, byte_order = header[:3]
    if magic != b"\x7fELF":
        raise CubinError(f"expected a cubin, got a file that begins with {data[:4]!r}")
    if (file_class, byte_order) != (_ELFCLASS64, _ELFDATA2LSB) or header[7] != _EM_CUDA:
        raise CubinError("expected a cubin, got an ELF file for another machine")
    table_at, entry_size, count, names_index = header[11], *header[16:]
    if entry_size != _SECTION.size:
        raise CubinError(f"expected section headers of {_SECTION.size} bytes, got {entry_size}")
    if not 0 < count < _SHN_LORESERVE - 1 or names_index >= count:
        raise CubinError("the cubin has no table of section names")
    table = _bytes_at(data, table_at, count * _SECTION.size, "the section table")
    return _Elf(data, tuple(_SECTION.iter_unpack(table)), names_index)


def _bytes_at(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise CubinError(
            f"the cubin is cut off: {what} ends at byte {offset + size} of {len(data)}"
        )
    return data[offset : offset + size]


def _padded(offset: int) -> int:
    return -(-offset // 8) * 8
