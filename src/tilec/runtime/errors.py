"""What can go wrong between a caller and a kernel, as exceptions."""

from __future__ import annotations


class TilecError(Exception):
    """Whatever the runtime raises of its own."""


class NoDevice(TilecError):  # noqa: N818  (says what is so, not what failed)
    """There is no CUDA driver or no GPU to run on."""


class ArtifactError(TilecError):
    """A file is no cubin of tilec, is damaged, or is of another version."""


class ArchitectureError(TilecError):
    """A cubin was built for another GPU than the one at hand."""


class ContractError(TilecError):
    """The arguments break what the kernel's manifest asks of them; nothing was launched."""


class LaunchError(TilecError):
    """The driver refused a launch, or the GPU failed while it ran; the message names the kernel."""
