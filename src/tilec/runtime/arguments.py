"""What callers may give for a tensor, to type checkers."""

from __future__ import annotations

from typing import Any, Protocol, Union

from tilec.runtime.tensor import Tensor


class DLPackTensor(Protocol):
    """A tensor of PyTorch, CuPy, JAX."""

    def __dlpack__(self, *arguments: Any, **options: Any) -> Any: ...


class CudaArray(Protocol):
    """A tensor of Numba, and of whatever else has the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


TensorLike = Union[Tensor, DLPackTensor, CudaArray]  # noqa: UP007  (evaluated on Python 3.10)
