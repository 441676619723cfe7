"""What one turn of a loop takes at least: the cycles for which it keeps each unit busy.

Products read both factors from shared memory: each instruction its 64 rows of the first and its
columns of the second. A factor that is computed is read once, by threads, as what it is computed
of; the second one is written, too. Copies write there, and read from L2: of what the blocks of a
cluster share, each block a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tilec.layout.wgmma import ROWS, columns_of_instructions
from tilec.schedule.products import Computed, Product, Staged
from tilec.target.description import Rates


@dataclass(frozen=True)
class Busy:
    """Units:    cycles of one multiprocessor"""

    tensor: int
    shared: int
    copies: int


def busy(
    products: Iterable[Product], copied_bytes: int, rates: Rates, *, shared_bytes: int = 0
) -> Busy:
    """How long these products, and copies of so many bytes, take at the least.

    `shared_bytes` of them are read from L2 by other blocks of the cluster.
    """
    steps = read = 0
    for product in products:
        size, k = product.instruction.element_bytes, product.k
        steps += prod(product.shape) * k * size
        read += (product.shape[0] // ROWS) * _read(product, k * size)
        if isinstance(product.a, Computed):
            read += sum(source.tile.bytes for source in product.a.sources)
        if isinstance(product.b, Staged):
            read += sum(source.tile.bytes for source in product.b.sources) + product.b.tile.bytes
    return Busy(
        -(-steps // rates.product_bytes),
        -(-(read + copied_bytes) // rates.shared_bytes),
        -(-(copied_bytes - shared_bytes) // rates.l2_bytes),
    )


def _read(product: Product, row_bytes: int) -> int:
    """Bytes that the instructions for 64 rows read."""
    columns: Sequence[int] = columns_of_instructions(product.shape[1])
    rows = 0 if isinstance(product.a, Computed) else ROWS
    return sum((rows + count) * row_bytes for count in columns)
