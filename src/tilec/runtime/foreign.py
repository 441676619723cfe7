"""Which stream a tensor of PyTorch is worked on, without importing PyTorch.

Its tensors are known by what they answer (`is_cuda`, `data_ptr()`, `stride()`, `get_device()`):
a caller who has one has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

DEFAULT_STREAM = 0


def current_stream(device: int) -> int:
    """The address of PyTorch's current stream on a device; the default stream without PyTorch."""
    ask = _ask or _found()
    return DEFAULT_STREAM if ask is None else ask(device)


_ask: Callable[[int], int] | None = None


def _found() -> Callable[[int], int] | None:
    # The function that PyTorch's own compiler calls before it launches; `current_stream()` makes
    # an object each time, which takes longer than a launch.
    global _ask
    bindings = getattr(sys.modules.get("torch"), "_C", None)
    _ask = getattr(bindings, "_cuda_getCurrentRawStream", None)
    return _ask
