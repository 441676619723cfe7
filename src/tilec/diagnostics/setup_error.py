"""What is wrong outside of the user's program."""

from __future__ import annotations

import errno

# What a machine runs out of, or breaks: no fault of the compiler.
_EXHAUSTED = {
    errno.ENOSPC: "on a disk that was written, for temporary files perhaps (TMPDIR=DIR says where)",
    errno.EDQUOT: "on a disk that was written, for temporary files perhaps (TMPDIR=DIR says where)",
    errno.EFBIG: "see `ulimit -f`",
    errno.ESTALE: None,
    errno.EROFS: "for temporary files perhaps (TMPDIR=DIR says where)",
    errno.EIO: None,
    errno.ENOMEM: "try fewer files at a time (`-j 1`)",
    errno.EAGAIN: "no further process could be started: try fewer files at a time (`-j 1`)",
    errno.EMFILE: "see `ulimit -n`",
    errno.ENFILE: None,
}

# Modules of other packages, by what to install.
_COMPILER = ("mlir", "lark", "islpy", "ml_dtypes", "rich")
_INSTALLED_BY = {
    **dict.fromkeys(_COMPILER, "pip install 'tilec[compiler]'"),
    **dict.fromkeys(("click", "numpy", "cuda"), "pip install tilec"),
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
    if isinstance(error, ImportError):
        return _of_an_import(error)
    if isinstance(error, MemoryError):
        return SetupError("out of memory", help=_EXHAUSTED[errno.ENOMEM])
    if not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
        return None
    reason = (error.strerror or str(error)).lower()
    where = f"`{error.filename}`: " if error.filename else ""
    return SetupError(f"{where}{reason}", help=_EXHAUSTED[error.errno])


def _of_an_import(error: ImportError) -> SetupError | None:
    """A package that is not installed, or does not load here; None for a module of ours."""
    package = (error.name or "").partition(".")[0]
    if package not in _INSTALLED_BY:
        return None
    help_ = _INSTALLED_BY[package]
    if not isinstance(error, ModuleNotFoundError):
        return SetupError(f"`{package}` does not load: {error}", help=f"install it anew: {help_}")
    if package not in _COMPILER:
        return SetupError(f"`{package}` is not installed", help=help_)
    reason = f"there is no module `{error.name}`"
    return SetupError(f"the compiler is not installed: {reason}", help=help_)
