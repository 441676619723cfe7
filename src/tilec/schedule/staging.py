"""Factors that threads write to shared memory: the room for them, and how that is told."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.schedule.products import Product, Staged
from tilec.schedule.reason import Reason


def staged_bytes(products: Sequence[Product]) -> int:
    """What one place of each such factor takes."""
    tiles = {one.b.value: one.b.tile for one in products if isinstance(one.b, Staged)}
    return sum(tile.bytes for tile in tiles.values())


def why_staged(products: Sequence[Product], places: int) -> list[Reason]:
    """One reason for all of them; none where there are none."""
    if not places:
        return []
    size = staged_bytes(products)
    each = f"{size} bytes" if places == 1 else f"{places} times {size} bytes"
    why = "tensor cores take only the first one from registers: all threads write the second one"
    if places == 1:
        why += ", when the product before is done: there is no room for two"
    return [Reason(f"factors in shared memory ({each})", why)]
