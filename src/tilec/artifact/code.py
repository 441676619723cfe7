"""Which machine code an instance has, as a short text: equal where the instructions are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tilec.artifact.elf import parsed
from tilec.artifact.manifest import Manifest


def codes_of(manifest: Manifest, cubin: bytes) -> Mapping[str, str]:
    """16 hexadecimal digits of each instance, of the instructions of all its variants.

    The rest of the cubin does not count, nor do other instances: they change for reasons that leave
    an instance as fast as it was.

    Raises:   CubinError if the bytes are no cubin
    """
    elf = parsed(cubin)
    found: dict[str, str] = {}
    for kernel in manifest.kernels:
        digest = hashlib.sha256()
        for variant in kernel.variants:
            code = elf.named(f".text.{variant.symbol}") or b""
            digest.update(len(code).to_bytes(8, "little") + code)
        found[kernel.symbol] = digest.hexdigest()[:16]
    return found
