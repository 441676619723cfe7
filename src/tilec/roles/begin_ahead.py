"""Begin loads before the loops of products that they follow, as a schedule says.

Before:   for k { … }; i = …; t = load x i; …
After:    i = …; t = load x i; for k { … }; …
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.schedule.ahead import Ahead


def begin_loads(loads: Sequence[Ahead]) -> None:
    """Rewrites the block of each load in place."""
    for one in loads:
        for op in (*one.moved, one.op):
            op.operation.move_before(one.loop)
