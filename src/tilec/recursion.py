"""Room for recursion over trees, which may be far deeper than Python's own limit bears."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# The parser's limit is 1,000 levels; a level takes up to ten calls.
_FRAMES = 12_000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit for a while."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
