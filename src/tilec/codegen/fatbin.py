"""The cubins of several targets in one file, by CUDA's `fatbinary`."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tilec.artifact.fatbin import cubins_of


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
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FatbinError(f"fatbinary failed ({done.returncode}):\n{done.stderr}{done.stdout}")
        joined = (Path(folder) / "joined.fatbin").read_bytes()
    if cubins_of(joined) != list(cubins.values()):
        raise FatbinError("fatbinary changes cubins, or their order")
    return joined
