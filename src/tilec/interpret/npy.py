"""Arrays as `.npy` files hold them, and as a kernel's parameters take them.

NumPy has no bf16 and f8, and its files cannot name them. They are written as unsigned integers of
the same width, and read from those or from the untyped bytes (`V2`, `V1`) that `np.save` makes of
an `ml_dtypes` array.
"""

from __future__ import annotations

import io
import warnings
from math import prod
from typing import Any

import numpy as np

from tilec.interpret.contract import DTYPES, Parameter
from tilec.interpret.memory import Array

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # NumPy's own limit, for longer ones take long to parse
_MOST_AXES = 32
_LARGEST_EXTENT = 2**62
_SHOWN = 80


def read_npy(content: bytes) -> Array:
    """The array of a file, in memory order and of this machine's bytes, however the file has it.

    Raises:   ValueError if it is none, holds Python objects, or less than its header says
    """
    if content.startswith(b"PK"):
        raise ValueError("an archive of several arrays")
    if not content.startswith(_MAGIC):  # which NumPy would take for a pickle
        raise ValueError("it is no .npy file")
    shape, is_fortran, dtype, start = _header(content)
    count = _count(shape, dtype, len(content) - start)
    flat = np.frombuffer(content, dtype, count, start)
    native = dtype if dtype.isnative else np.dtype(dtype.str[1:])
    return np.array(flat.reshape(shape, order="F" if is_fortran else "C"), native, order="C")


def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether it is in Fortran's order, type, and where the elements begin.

    Raises:   ValueError
    """
    major = content[len(_MAGIC)] if len(content) > len(_MAGIC) else 0
    length_bytes = {1: 2, 2: 4, 3: 4}.get(major)
    if length_bytes is None:
        raise ValueError(f"its format has version {major}, and those known are 1, 2 and 3")
    begin = len(_MAGIC) + 2 + length_bytes
    length = int.from_bytes(content[begin - length_bytes : begin], "little")
    if begin + length > len(content):
        raise ValueError("it ends within its header")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length} bytes, more than {_LONGEST_HEADER}")
    shape, is_fortran, dtype = _described(content[begin : begin + length], major)
    return _shape(shape), is_fortran, dtype, begin + length


def _described(header: bytes, major: int) -> tuple[object, bool, np.dtype[Any]]:
    """What NumPy reads in a header. It is an expression of Python, and it may be any."""
    prefix = len(header).to_bytes(2, "little")
    if major == 3:
        header = header.decode("utf-8").encode("latin1", "replace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            read: Any = np.lib.format.read_array_header_1_0  # untyped before NumPy 2.3
            shape, is_fortran, dtype = read(
                io.BytesIO(prefix + header), max_header_size=_LONGEST_HEADER
            )
            return shape, is_fortran, dtype
    except ValueError as error:
        raise ValueError(f"its header is none: {_start_of(str(error))}") from None
    except (RecursionError, MemoryError):  # the latter is how Python's parser says it
        raise ValueError("its header is none: it is nested too deeply") from None
    except Exception as error:  # whatever Python's tokenizer and parser raise, by its version
        raise ValueError(f"its header is none: {type(error).__name__}") from None


def _shape(shape: object) -> tuple[int, ...]:
    """The extents, which NumPy takes as truth values and of any size, too."""
    if not isinstance(shape, tuple) or any(type(extent) is not int for extent in shape):
        raise ValueError(f"its shape is {_start_of(repr(shape))}, and extents are integers")
    if len(shape) > _MOST_AXES:
        raise ValueError(f"it has {len(shape)} axes, more than {_MOST_AXES}")
    if any(extent < 0 for extent in shape):
        raise ValueError(f"its shape is {_start_of(repr(shape))}, and no extent is negative")
    if any(extent > _LARGEST_EXTENT for extent in shape):
        raise ValueError(f"its shape is {_start_of(repr(shape))}, of more elements than there are")
    return shape


def _count(shape: tuple[int, ...], dtype: np.dtype[Any], there: int) -> int:
    """How many elements there are, of so many bytes that are there.

    Raises:   ValueError, before any memory is taken for them
    """
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if dtype.subdtype is not None or dtype.itemsize == 0:
        raise ValueError(f"its elements are {_start_of(str(dtype))}, which no tensor has")
    count = prod(shape)
    if count * dtype.itemsize > there:
        raise ValueError(
            f"its shape {_start_of(repr(shape))} of {_start_of(str(dtype))} takes "
            f"{count * dtype.itemsize} bytes, and {there} are there"
        )
    return count


def _start_of(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
