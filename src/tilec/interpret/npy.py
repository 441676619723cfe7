"""Arrays as `.npy` files hold them, and as a kernel's parameters take them.

NumPy has no bf16 and f8, and its files cannot name them. They are written as unsigned integers of
the same width, and read from those or from the untyped bytes (`V2`, `V1`) that `np.save` makes of
an `ml_dtypes` array.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tilec.interpret.contract import DTYPES, Parameter
from tilec.interpret.memory import Array


def read_npy(content: bytes) -> Array:
    """The array of a file, in memory order and of this machine's bytes, however the file has it.

    Raises:   ValueError if it is none, or holds Python objects
    """
    if content.startswith(b"PK"):
        raise ValueError("an archive of several arrays")
    if not content.startswith(b"\x93NUMPY"):  # which NumPy would take for a pickle
        raise ValueError("it is no .npy file")
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
    except (EOFError, OSError) as error:
        raise ValueError(str(error)) from error
    native = loaded.dtype if loaded.dtype.isnative else np.dtype(loaded.dtype.str[1:])
    return np.asarray(loaded, native, order="C")


def written_npy(array: Array) -> bytes:
    """The file of an array."""
    if not _has_name(array.dtype):
        array = array.view(f"u{array.itemsize}")
    stream = io.BytesIO()
    np.save(stream, np.asarray(array, order="C"), allow_pickle=False)
    return stream.getvalue()


def as_parameter(parameter: Parameter, given: Any) -> Any:
    """The argument with the parameter's element type, where its file could not name it."""
    wanted = np.dtype(DTYPES[parameter.element])
    if not isinstance(given, np.ndarray) or given.dtype == wanted:
        return given
    is_stored = given.dtype.kind in "uV" and given.dtype.itemsize == wanted.itemsize
    return given.view(wanted) if is_stored and not _has_name(wanted) else given


def _has_name(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy itself has the type, and not a package beside it."""
    return dtype.isbuiltin == 1
