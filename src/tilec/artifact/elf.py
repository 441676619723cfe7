"""The sections of a cubin, which is an ELF file.

Source: System V ABI, "Object Files"
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")  # Elf64_Ehdr
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
SHT_PROGBITS = 1
_SHT_NOBITS = 8
_SHN_LORESERVE = 0xFF00
_ELFCLASS64 = 2
_ELFDATA2LSB = 1
_EM_CUDA = 190


class CubinError(ValueError):
    """The bytes are no whole cubin."""


@dataclass(frozen=True)
class Elf:
    """The section table of a cubin; each section as the ten numbers of its header."""

    data: bytes
    sections: tuple[tuple[int, ...], ...]
    names_index: int

    def contents(self, section: tuple[int, ...]) -> bytes:
        if section[1] == _SHT_NOBITS:
            return b""
        return _bytes_at(self.data, section[4], section[5], "a section")

    def named(self, name: str) -> bytes | None:
        """What the section of this name holds, or None where there is none."""
        for section in self.sections:
            if self.name(section) == name.encode():
                return self.contents(section)
        return None

    def name(self, section: tuple[int, ...]) -> bytes:
        names = self.contents(self.sections[self.names_index])
        end = names.find(b"\0", section[0])
        if section[0] >= len(names) or end < 0:
            raise CubinError("a section's name lies outside the table of names")
        return names[section[0] : end]


def parsed(data: bytes) -> Elf:
    """The sections of a cubin.

    Raises:   CubinError if the bytes are no cubin, or a damaged one
    """
    header = HEADER.unpack(_bytes_at(data, 0, HEADER.size, "the ELF header"))
    magic, file_class, byte_order = header[:3]
    if magic != b"\x7fELF":
        raise CubinError(f"expected a cubin, got a file that begins with {data[:4]!r}")
    if (file_class, byte_order) != (_ELFCLASS64, _ELFDATA2LSB) or header[7] != _EM_CUDA:
        raise CubinError("expected a cubin, got an ELF file for another machine")
    table_at, entry_size, count, names_index = header[11], *header[16:]
    if entry_size != SECTION_HEADER.size:
        raise CubinError(
            f"expected section headers of {SECTION_HEADER.size} bytes, got {entry_size}"
        )
    if not 0 < count < _SHN_LORESERVE - 1 or names_index >= count:
        raise CubinError("the cubin has no table of section names")
    table = _bytes_at(data, table_at, count * SECTION_HEADER.size, "the section table")
    return Elf(data, tuple(SECTION_HEADER.iter_unpack(table)), names_index)


def _bytes_at(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise CubinError(
            f"the cubin is cut off: {what} ends at byte {offset + size} of {len(data)}"
        )
    return data[offset : offset + size]
