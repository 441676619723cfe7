"""The C path of launches (hot_path.c), where it was built: without it all is as it is, but slower.

`pip install` builds it where there is a C compiler. TILEC_PURE_PYTHON in the environment does
without it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, cast

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


_BUILT = None if os.environ.get("TILEC_PURE_PYTHON") else cast("Built | None", _hot_path)


def built() -> Built | None:
    """The C path; None where it was not built."""
    return _BUILT


def is_native(start: Start) -> bool:
    """Whether the C path can start a frame with this function."""
    return _BUILT is not None and type(start) is _BUILT.Start


def no_hot_path(
    given: tuple[object, ...],
    stream: int | None,
    borrowed: object,
    is_passing: bool,
    weight: int | None,
    /,
) -> None:
    """Stands for `HotPath.start` where there is none (yet)."""
