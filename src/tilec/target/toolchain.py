"""Where the programs and files of CUDA are: in the installed wheels, below the package `nvidia`.

Finding them must be cheap, since every build asks: no search of site-packages, no metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from tilec.children import Crashed, run_in_children
from tilec.diagnostics.setup_error import SetupError
from tilec.target.running import run

# Names another ptxas than the wheel's.
PTXAS_VARIABLE = "TILEC_PTXAS"
# How long a program may take to say its version.
_ANSWER_S = 60.0


def ptxas() -> Path:
    """The assembler: `$TILEC_PTXAS`, or that of the wheel nvidia-cuda-nvcc.

    Raises:   SetupError if it is not there
    """
    override = os.environ.get(PTXAS_VARIABLE)
    if override is None:
        return _required("bin/ptxas", "nvidia-cuda-nvcc")
    if not os.access(override, os.X_OK) or not Path(override).is_file():
        raise SetupError(f"`{PTXAS_VARIABLE}` is `{override}`, which is no program")
    return Path(override).absolute()  # it is run in another folder


def nvdisasm() -> Path:
    """The disassembler of the wheel nvidia-cuda-nvdisasm.

    Raises:   SetupError if it is not there
    """
    return _required("bin/nvdisasm", "nvidia-cuda-nvdisasm")


def fatbinary() -> Path:
    """The program that joins cubins, of the wheel nvidia-cuda-nvcc.

    Raises:   SetupError if it is not there
    """
    return _required("bin/fatbinary", "nvidia-cuda-nvcc")


def libdevice() -> Path:
    """The mathematics library in LLVM bitcode, of the wheel nvidia-nvvm.

    Raises:   SetupError if it is not there
    """
    return _required("nvvm/libdevice/libdevice.10.bc", "nvidia-nvvm")


@cache
def ptxas_version() -> str:
    """The release of the assembler, such as `13.5.37`."""
    text = _output(ptxas(), "--version")
    match = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    return match[1] if match else "unknown"


@cache
def ptxas_targets() -> frozenset[str]:
    """Every target that the assembler takes, `sm_90a` and the like among them."""
    return frozenset(re.findall(r"'(sm_\d+[af]?)'", _output(ptxas(), "--help")))


def _output(program: Path, argument: str) -> str:
    """What a program says of itself. Raises SetupError"""
    said = _asked(program, argument)
    if isinstance(said, SetupError):
        raise said
    return said


@cache
def _asked(program: Path, argument: str) -> str | SetupError:
    """Asked once, also where it does not answer: who waits for that shall do it once."""
    try:
        # In a child, with which ends what the program has started, if it is no ptxas.
        [(_, ended)] = run_in_children([partial(run, [str(program), argument], None, _ANSWER_S)], 1)
    except SetupError as error:
        return error
    if isinstance(ended, Crashed):
        return SetupError(f"`{program}` does not run: {ended.reason}")
    if ended.status:
        return SetupError(f"`{program}` does not run: it ends with status {ended.status}")
    return ended.output


def _required(relative: str, wheel: str) -> Path:
    for folder in _cuda_folders():
        if (folder / relative).is_file():
            return folder / relative
    name = relative.rsplit("/", 1)[-1]
    raise SetupError(
        f"`{name}` is not installed", help=f"install the compiler: `pip install {wheel}`"
    )


@cache
def _cuda_folders() -> tuple[Path, ...]:
    return tuple(_search())


def _search() -> Iterator[Path]:
    """The folders of one CUDA release (`nvidia/cu13`), newest first; one a package before 13."""
    spec = find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted((p for p in Path(location).iterdir() if p.is_dir()), reverse=True)
