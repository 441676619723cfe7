"""Our contender: a kernel of a prebuilt cubin, launched on torch's current stream."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch

import tilec.runtime as rt
from tilec.artifact.embed import extract
from tilec.artifact.manifest import from_json

# Where the cubins are: `tilec build kernels/*.tile -o build` puts them there.
BUILD = Path(os.environ.get("TILEC_BUILD", "build"))
TARGET = os.environ.get("TILEC_TARGET", "sm_90a")


def kernel(file: str) -> Callable[..., object]:
    """The kernel that has its file's name; a call launches it on torch's current stream.

    It does not wait. The first call with arguments of new shapes loads machine code, so it may not
    be inside a graph's capture.
    """
    launcher = rt.load(_path(file))[file]

    def launch(*arguments: torch.Tensor) -> None:
        launcher.launch(*arguments, stream=torch.cuda.current_stream())

    return launch


def versions(file: str) -> dict[str, str]:
    """What built a cubin."""
    manifest = extract(_path(file).read_bytes())
    assert manifest is not None, "a built cubin holds its manifest"
    toolchain = from_json(manifest).toolchain
    return {"tilec": toolchain.tilec, "mlir": toolchain.mlir, "ptxas": toolchain.ptxas}


def _path(file: str) -> Path:
    return BUILD / f"{file}.{TARGET}.cubin"
