"""A fat binary: the cubins of several targets in one file, each with its own manifest.

`fatbinary` of CUDA writes it, and `cuModuleLoadData` and `cuLibraryLoadData` take it as they take a
cubin. Here it is read: a header, then for each image a header of its own and the image.

Source: `fatBinaryHeader` of CUDA's `fatbinary_section.h`; the header of an image is not
        documented: its first 16 bytes, which are read here, are the same in all releases since
        CUDA 4. tests/unit/test_fatbin.py compares with what `cuobjdump` takes out
"""

from __future__ import annotations

import struct

from tilec.artifact.embed import CubinError

_MAGIC = struct.pack("<I", 0xBA55ED50)
_FILE = struct.Struct("<4sHHQ")  # magic, version, bytes of this header, bytes of all images
_IMAGE = struct.Struct("<HHIQ")  # kind, version, bytes of this header, bytes of the image
_CUBIN = 2  # of the kinds of images


def is_fatbin(data: bytes) -> bool:
    """Whether a file begins as a fat binary does."""
    return data.startswith(_MAGIC)


def cubins_of(fatbin: bytes) -> list[bytes]:
    """The cubins in a fat binary, in order.

    Raises:   CubinError if it is damaged, or has images that are no cubins or are compressed, or
              none
    """
    _, _, position, size = _unpacked(_FILE, fatbin, 0)
    end = position + size
    if end > len(fatbin):
        raise CubinError(f"the fat binary is cut off: it ends at byte {end} of {len(fatbin)}")
    cubins: list[bytes] = []
    while position < end:
        kind, _, header_bytes, image_bytes = _unpacked(_IMAGE, fatbin, position)
        start = position + header_bytes
        position = start + image_bytes
        if header_bytes < _IMAGE.size or position > end:
            raise CubinError("the fat binary is damaged: an image ends behind it")
        if kind != _CUBIN or not fatbin.startswith(b"\x7fELF", start):
            raise CubinError(f"image {len(cubins) + 1} of the fat binary is no plain cubin")
        cubins.append(fatbin[start:position])
    if not cubins:
        raise CubinError("the fat binary holds no cubin")
    return cubins


def _unpacked(form: struct.Struct, data: bytes, offset: int) -> tuple[int, ...]:
    if offset + form.size > len(data):
        raise CubinError(f"the fat binary is cut off: a header ends behind byte {len(data)}")
    return form.unpack_from(data, offset)
