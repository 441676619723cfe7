"""Whether two strided tensors share a byte, and whether one tensor maps two indices to one place.

Two tensors meet when their addresses agree for some pair of indices:

    a + Σ iₖ·sₖ + e  =  b + Σ jₖ·tₖ + f        (e and f: bytes inside an element)

With j and f counted from their far ends this is one sum of bounded multiples of positive
coefficients, `Σ cₖ·xₖ = d` with `0 ≤ xₖ ≤ mₖ`. Equal coefficients merge, so that slices of one
buffer with equal outer strides (packed q, k, v) come down to a question about their rows. The
search takes coefficients in descending order; what the smaller ones can still make up leaves few
values for each, usually one or two. The bounded problem is hard in general, so the search has a
budget of steps; when it is spent, the tensors count as overlapping.
"""

from __future__ import annotations

from collections import Counter
from math import gcd

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.runtime.array import Array

_STEP_BUDGET = 2000


def may_overlap(one: Array, other: Array) -> bool:
    """Whether the tensors share a byte; exact, except that a hopeless search answers yes.

    Assumes:  no stride is negative
    """
    if one.is_empty or other.is_empty:
        return False
    if one.pointer + one.span_bytes <= other.pointer:
        return False
    if other.pointer + other.span_bytes <= one.pointer:
        return False
    bounds: Counter[int] = Counter()
    for array in (one, other):
        size = ELEMENT_BYTES[array.element]
        bounds[1] += size - 1
        for extent, stride in zip(array.shape, array.strides, strict=True):
            bounds[stride * size] += extent - 1
    # The far end of `other` is where its counted-down indices are all zero.
    distance = other.pointer + other.span_bytes - 1 - one.pointer
    terms = sorted(((c, m) for c, m in bounds.items() if c and m), reverse=True)
    return _Search(terms).can_make(distance)


def overlaps_itself(array: Array) -> bool:
    """Whether two indices of a tensor may lie at one place.

    They do not where each stride, of axes of extent above 1, is at least the span of the axes of
    smaller stride.
    """
    if array.is_empty:
        return False
    span = 1
    for stride, extent in sorted(zip(array.strides, array.shape, strict=True)):
        if extent == 1:
            continue
        if stride < span:
            return True
        span += (extent - 1) * stride
    return False


class _Search:
    """Bounded sums of positive coefficients, in descending order."""

    def __init__(self, terms: list[tuple[int, int]]) -> None:
        self.terms = terms
        self.reach = [0]  # the most that the terms from here on can make
        self.divisor = [0]  # what divides all that they can make
        for coefficient, most in reversed(terms):
            self.reach.append(self.reach[-1] + coefficient * most)
            self.divisor.append(gcd(self.divisor[-1], coefficient))
        self.reach.reverse()
        self.divisor.reverse()
        self.steps = 0

    def can_make(self, total: int, index: int = 0) -> bool:
        """Whether the terms from `index` on can sum to `total`; yes when the budget is spent."""
        self.steps += 1
        if self.steps > _STEP_BUDGET:
            return True
        if not 0 <= total <= self.reach[index]:
            return False
        if index == len(self.terms):
            return True
        if total % self.divisor[index]:
            return False
        coefficient, most = self.terms[index]
        least = max(0, -(-(total - self.reach[index + 1]) // coefficient))
        greatest = min(most, total // coefficient)
        return any(
            self.can_make(total - coefficient * count, index + 1)
            for count in range(greatest, least - 1, -1)
        )
