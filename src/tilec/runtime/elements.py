"""Element types by the names that array libraries give them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tilec.runtime.errors import TilecError

# NumPy's names, which CuPy and JAX share, and PyTorch's behind `torch.`.
_ELEMENT_OF = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
}  # fmt: skip
_NAME_OF = {element: name for name, element in _ELEMENT_OF.items()} | {"usize": "int64"}
_NOT_IN_NUMPY = ("bf16", "f8e4m3", "f8e5m2")


@lru_cache(maxsize=256)
def element_of(dtype: object) -> str | None:
    """The element type that a library's dtype object stands for, or None."""
    name = getattr(dtype, "name", None)
    text = name if isinstance(name, str) else str(dtype)
    return _ELEMENT_OF.get(text.removeprefix("torch."))


def library_name(element: str) -> str:
    """What NumPy and PyTorch call an element type; `usize` is `int64` to both."""
    return _NAME_OF[element]


def numpy_dtype(element: str) -> np.dtype[np.generic]:
    """NumPy's dtype of an element type; bf16 and f8 need the package ml_dtypes.

    Raises:   TilecError if the name is no element type, or ml_dtypes is wanted and not there
    """
    if element not in _NAME_OF:
        raise TilecError(f"expected an element type, got {element!r}")
    if element not in _NOT_IN_NUMPY:
        return np.dtype(_NAME_OF[element])
    try:
        import ml_dtypes
    except ImportError:
        raise TilecError(
            f"`{element}` in NumPy needs the package ml_dtypes; `.bits()` does without"
        ) from None
    dtype: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _NAME_OF[element]))
    return dtype
