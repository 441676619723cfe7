"""The cubins of several targets in one file, by CUDA's `fatbinary`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tilec.artifact.fatbin import cubins_of
from tilec.target.running import run


class FatbinError(RuntimeError):
    """`fatbinary` does not join what we made: a fault of the compiler, never of the program."""


def join(cubins: Mapping[str, bytes], fatbinary: Path) -> bytes:
    """A fat binary of the cubins, which go by their targets (`sm_90a`).

    Guarantees: the same cubins give the same bytes, and stand in it as they are, in order

    Raises:   FatbinError
    """
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        command = [str(fatbinary), "--64", "--compress=false", "--create=joined.fatbin"]
        for target, cubin in cubins.items():
            (Path(folder) / f"{target}.cubin").write_bytes(cubin)
            sm = target.removeprefix("sm_")
            command.append(f"--image3=kind=elf,sm={sm},file={target}.cubin")
        done = run(command, Path(folder))
        if done.status:
            raise FatbinError(f"fatbinary failed ({done.status}):\n{done.log}{done.output}")
        joined = (Path(folder) / "joined.fatbin").read_bytes()
    if cubins_of(joined) != list(cubins.values()):
        raise FatbinError("fatbinary changes cubins, or their order")
    return joined
