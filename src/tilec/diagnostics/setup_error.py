"""What is wrong outside of the user's program."""

from __future__ import annotations

import errno

# What a machine runs out of, or breaks: no fault of the compiler.
_EXHAUSTED = {
    errno.ENOSPC: "on a disk that was written, for temporary files perhaps (TMPDIR=DIR says where)",
    errno.EDQUOT: "on a disk that was written, for temporary files perhaps (TMPDIR=DIR says where)",
    errno.EROFS: "for temporary files perhaps (TMPDIR=DIR says where)",
    errno.EIO: None,
    errno.ENOMEM: "try fewer files at a time (`-j 1`)",
    errno.EAGAIN: "no further process could be started: try fewer files at a time (`-j 1`)",
    errno.EMFILE: "see `ulimit -n`",
    errno.ENFILE: None,
}


class SetupError(Exception):
    """The request cannot be served: a file, a tool or a target is not there.

    Distinct from a `Diagnostic`, which is about a program and has a place in it. Ends as exit
    status 2.
    """

    def __init__(self, message: str, help: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.code = code


def of_the_machine(error: Exception) -> SetupError | None:
    """What to say of an error by which the machine refuses what every program may ask of it.

    None for all others: those are the compiler's own.
    """
    if not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
        return None
    reason = (error.strerror or str(error)).lower()
    where = f"`{error.filename}`: " if error.filename else ""
    return SetupError(f"{where}{reason}", help=_EXHAUSTED[error.errno])
