"""Bank conflicts: how long one warp's access to shared memory takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tilec.layout.layout import LANES


@dataclass(frozen=True)
class Banks:
    """The banks of shared memory: neighbouring words of `word_bytes` lie in neighbouring banks.

    Source:   CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later
    """

    count: int = 32
    word_bytes: int = 4

    @property
    def bytes_at_once(self) -> int:
        return self.count * self.word_bytes


BANKS = Banks()


def bank_conflicts(addresses: Sequence[int | None], width_bytes: int, banks: Banks = BANKS) -> int:
    """How many wavefronts one access of a warp takes; 0 if no lane takes part.

    An access of up to a word a lane is served at once, of 8 bytes by half warps, of 16 bytes by
    quarters. What is served at once takes as many wavefronts as the busiest bank has different
    words; lanes that want the same word share it.

    Shapes:   `addresses` has one entry a lane: bytes, a multiple of `width_bytes`, None: inactive
    """
    assert len(addresses) == LANES, "expected one address a lane"
    words = max(1, width_bytes // banks.word_bytes)
    group = LANES // words
    return sum(
        _wavefronts(addresses[start : start + group], words, banks)
        for start in range(0, LANES, group)
    )


def least_wavefronts(
    addresses: Sequence[int | None], width_bytes: int, banks: Banks = BANKS
) -> int:
    """How many wavefronts it would take if no bank had to give two words at once."""
    group = LANES // max(1, width_bytes // banks.word_bytes)
    return sum(
        any(address is not None for address in addresses[start : start + group])
        for start in range(0, LANES, group)
    )


def _wavefronts(addresses: Sequence[int | None], words: int, banks: Banks) -> int:
    wanted: dict[int, set[int]] = defaultdict(set)
    for address in addresses:
        if address is None:
            continue
        first = address // banks.word_bytes
        for word in range(first, first + words):
            wanted[word % banks.count].add(word)
    return max(map(len, wanted.values()), default=0)
