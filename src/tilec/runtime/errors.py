"""What can go wrong between a caller and a kernel, as exceptions."""

from __future__ import annotations

from tilec.printable import printable_lines


class TilecError(Exception):
    """Whatever the runtime raises of its own.

    Messages have names and texts of cubins in them, and end on terminals.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(printable_lines(message))


class NoDevice(TilecError):  # noqa: N818  (says what is so, not what failed)
    """There is no CUDA driver or no GPU to run on."""


class ArtifactError(TilecError):
    """A file is no cubin of tilec, is damaged, or is of another version."""


class ArchitectureError(TilecError):
    """A cubin was built for another GPU than the one at hand."""


class ContractError(TilecError):
    """The arguments break what the kernel's manifest asks of them; nothing was launched."""


class BorrowError(TilecError):
    """Memory is in use by a launch that is under way, or is gone; nothing was done."""


class LaunchError(TilecError):
    """The driver refused a launch, or the GPU failed while it ran; the message names the kernel."""


class Trapped(LaunchError):  # noqa: N818  (says what is so, not what failed)
    """A checked build (`tilec build --checked`) came upon what it traps on.

    CUDA has printed the line of the source, and what does not hold there, on standard error. It
    refuses all further work of this process.
    """


_TRAPPED = (
    "a check of a `--checked` build does not hold; standard error says which, and in which line. "
    "CUDA takes no more work from this process"
)


def failure(what_failed: str, reason: object) -> LaunchError:
    """The exception for what the driver says; `what_failed` is a sentence up to the reason."""
    if "CUDA_ERROR_ASSERT" in str(reason):
        return Trapped(f"{what_failed}: {_TRAPPED} ({reason})")
    return LaunchError(f"{what_failed}: {reason}")
