"""The C path of launches (hot_path.c), where it was built: without it all is as it is, but slower.

`pip install` builds it where there is a C compiler. TILEC_PURE_PYTHON in the environment does
without it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast
from zlib import crc32

try:
    from tilec.runtime import _hot_path  # type: ignore[attr-defined, unused-ignore]
except ImportError:
    _hot_path = None

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tilec.runtime.entry import Start
    from tilec.runtime.launch import Launch

    # Starts a launch of what was launched before, given the arguments, the address of a stream or
    # None, what the handle keeps alive, whether that stream is passing (launch.py), and the weight
    # of what is borrowed, None for that of the entry. It gives the handle, which is held; or None,
    # and has started nothing, where something is new, or wrong, or under way on another stream: all
    # of which is for `Launcher._start`.
    HotStart: TypeAlias = Callable[
        [tuple[object, ...], "int | None", object, bool, "int | None"], "Launch | None"
    ]


class HotPath(Protocol):
    """The launches of one `Launcher`."""

    @property
    def start(self) -> HotStart: ...


class Built(Protocol):
    """What hot_path.c makes."""

    Start: Callable[..., Start]
    HotPath: Callable[..., HotPath]
    Handle: type

    def know_torch(
        self, tensor: type, parameter: type, exchange: object, is_neg: object, /
    ) -> bool: ...


_SOURCE = Path(__file__).with_name("hot_path.c")


def _usable(module: object, source: Path = _SOURCE) -> Built | None:
    """The C path, if it may be used. What `git pull` left under an editable install was built of
    another source than the one that lies there now; a wheel has no source."""
    if module is None or os.environ.get("TILEC_PURE_PYTHON"):
        return None
    if source.exists() and getattr(module, "source", None) != crc32(source.read_bytes()):
        return None
    return cast("Built", module)


_BUILT = _usable(_hot_path)


def built() -> Built | None:
    """The C path; None where it was not built, or of another source."""
    return _BUILT


def why_not() -> str | None:
    """Why the C path is not used; None if it is."""
    if _BUILT is not None:
        return None
    if os.environ.get("TILEC_PURE_PYTHON"):
        return "TILEC_PURE_PYTHON is set"
    if _hot_path is None:
        return "hot_path.c was not built"
    return "hot_path.c has changed since it was built: install tilec again"


def is_native(start: Start, handle: type) -> bool:
    """Whether the C path can start a frame with this function, and give handles of this class."""
    return _BUILT is not None and type(start) is _BUILT.Start and issubclass(handle, _BUILT.Handle)


def fields_of_handles(otherwise: type) -> type:
    """The class with the fields of handles that C can fill in; without the C path, another one."""
    return otherwise if _BUILT is None else _BUILT.Handle


_known_torch: object = None  # the class of tensors that C was told of
_reads_torch = False


def know_torch() -> None:
    """Tells C how tensors of PyTorch are read, once it is imported, and if it says so to C.

    Its classes have `__dlpack_c_exchange_api__` (DLPack 1.3) from PyTorch 2.10 on. Other classes of
    tensors, derived ones too, are asked by Python's protocols.
    """
    global _known_torch, _reads_torch
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if _BUILT is None or tensor is None or tensor is _known_torch:
        return
    exchange = getattr(tensor, "__dlpack_c_exchange_api__", None)
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    is_neg = getattr(tensor, "is_neg", None)
    if exchange is None or parameter is None or is_neg is None:
        return
    _reads_torch = False
    with suppress(TypeError, ValueError):  # what is no capsule of that name says nothing
        _reads_torch = _BUILT.know_torch(tensor, parameter, exchange, is_neg)
    _known_torch = tensor


def reads_torch() -> bool:
    """Whether C reads tensors of PyTorch by that."""
    return _reads_torch


def no_hot_path(
    given: tuple[object, ...],
    stream: int | None,
    borrowed: object,
    is_passing: bool,
    weight: int | None,
    /,
) -> None:
    """Stands for `HotPath.start` where there is none (yet)."""
