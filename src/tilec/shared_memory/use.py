"""What a finished function takes of shared memory, for the report of a build."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.ops.notes import PlacedBuffer, SharedMemoryUse, place_of
from tilec.shared_memory.accesses import Alloc, Barrier, Branch, Loop, Node, Skeleton


def use_of(skeleton: Skeleton, needed: int) -> SharedMemoryUse:
    """Of a function whose buffers have their places; `needed` bytes are what they take."""
    nodes = list(_nodes(skeleton))
    barriers = [node.is_of_block for node in nodes if isinstance(node, Barrier)]
    buffers = tuple(
        PlacedBuffer(place_of(node.buffer.op.location), node.buffer.offset, node.buffer.size)
        for node in nodes
        if isinstance(node, Alloc)
    )
    of_block = sum(barriers)
    return SharedMemoryUse(needed, buffers, of_block, len(barriers) - of_block)


def _nodes(skeleton: Skeleton) -> Iterator[Node]:
    for node in skeleton:
        yield node
        match node:
            case Branch(_, parts) | Loop(_, parts):
                for part in parts:
                    yield from _nodes(part)
