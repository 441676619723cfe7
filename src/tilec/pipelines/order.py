"""Which launches must be done before which: the order of those that share a tensor.

Sets of launches are numbers here, bit n for launch n: plans have a thousand launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def predecessors(uses: Sequence[Mapping[str, bool]]) -> list[tuple[int, ...]]:
    """For each launch those right before it, without those that come before these anyway.

    `uses` are the tensors of each launch, with whether it may write them. Two launches keep their
    order if they share a tensor and one of them may write it.
    """
    writer: dict[str, int] = {}  # the last launch that may write a tensor
    readers: dict[str, list[int]] = {}  # those that read it since
    before: list[int] = []
    found: list[tuple[int, ...]] = []
    for number, used in enumerate(uses):
        direct: set[int] = set()
        for tensor, writes in used.items():
            if tensor in writer:
                direct.add(writer[tensor])
            if writes:
                direct.update(readers.pop(tensor, ()))
                writer[tensor] = number
            else:
                readers.setdefault(tensor, []).append(number)
        implied = 0
        for one in direct:
            implied |= before[one]
        after = tuple(sorted(one for one in direct if not implied >> one & 1))
        found.append(after)
        before.append(implied | sum(1 << one for one in after))
    return found


def done_before(after: Sequence[Sequence[int]]) -> list[int]:
    """For each launch the set of all that are done when it starts."""
    before: list[int] = []
    for direct in after:
        known = 0
        for one in direct:
            known |= before[one] | 1 << one
        before.append(known)
    return before
