"""Ranges of monomials: what comparisons leave of what each unknown and each product can be.

Bounds propagation: of `sum + c * m >= 0` the largest that the sum can be bounds `m`; the ranges of
factors bound their product, and the product and the other factors bound a factor. It finds that
`i * N + i` fits where `i < N` and `N <= 1000`, at the cost of a few additions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import isqrt

from tilec.integers.budget import spend
from tilec.integers.formula import All, Any, Formula, IsZero, NotNegative
from tilec.integers.polynomial import Interval, Monomial, Polynomial

# How often every comparison is looked at. Ranges that shrink for longer do so by steps of one.
_ROUNDS = 8
# The steps that it takes to look at one product as one of two factors.
_SPLIT = 5


class Ranges:
    """The ranges of some monomials; an empty one says that nothing is left."""

    def __init__(self, monomials: Iterable[Monomial]) -> None:
        self._of: dict[Monomial, Interval] = {}
        for monomial in monomials:
            self._of[monomial] = Polynomial(((monomial, 1),)).interval
        self._products = [(m, self._splits(m)) for m in self._of if len(m) > 1]
        self.is_empty = False
        # When each range last changed, counted in looks at comparisons and products.
        self._time = self._last_change = 0
        self._changed = dict.fromkeys(self._of, 0)

    def of(self, monomial: Monomial) -> Interval:
        """What a monomial can be."""
        return self._of[monomial]

    def items(self) -> Iterable[tuple[Monomial, Interval]]:
        return self._of.items()

    def interval(self, value: Polynomial) -> Interval:
        """Numbers that a polynomial is never below or above."""
        low = high = 0
        for monomial, coefficient in value.terms:
            if not monomial:
                low, high = low + coefficient, high + coefficient
                continue
            ends = [coefficient * end for end in self._range(monomial)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def narrow(self, zero: Sequence[Polynomial], not_negative: Sequence[Polynomial]) -> None:
        """Take what polynomials that are 0, or not below it, say of their monomials."""
        signed = [*not_negative, *zero, *(-polynomial for polynomial in zero)]
        looked_at = [0] * len(signed)
        multiplied = [0] * len(self._products)
        for _ in range(_ROUNDS):
            start = self._tick()
            for place, polynomial in enumerate(signed):
                if self._changed_since(looked_at[place], polynomial.monomials):
                    self._bound(polynomial)
                    # What it says itself gives it nothing more to say.
                    looked_at[place] = self._tick()
            for place, (product, splits) in enumerate(self._products):
                if self._changed_since(multiplied[place], (product, *chain(*splits))):
                    multiplied[place] = self._tick()
                    self._multiply(product, splits)
            if self.is_empty or self._last_change < start:
                return

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def _changed_since(self, time: int, monomials: Sequence[Monomial]) -> bool:
        """Whether some range may say more than it did; at first, all may."""
        return time == 0 or any(self._changed[m] >= time for m in monomials)

    def can_hold(self, formula: Formula) -> bool:
        """Whether the ranges leave it possible."""
        match formula:
            case NotNegative(polynomial):
                return self.interval(polynomial)[1] >= 0
            case IsZero(polynomial):
                low, high = self.interval(polynomial)
                return low <= 0 <= high
            case All(parts):
                return all(map(self.can_hold, parts))
            case Any(parts):
                return any(map(self.can_hold, parts))

    def holds(self, formula: Formula) -> bool:
        """Whether it holds for everything that the ranges leave."""
        match formula:
            case NotNegative(polynomial):
                return self.interval(polynomial)[0] >= 0
            case IsZero(polynomial):
                return self.interval(polynomial) == (0, 0)
            case All(parts):
                return all(map(self.holds, parts))
            case Any(parts):
                return any(map(self.holds, parts))

    def _range(self, monomial: Monomial) -> Interval:
        if monomial in self._of:
            return self._of[monomial]
        return Polynomial(((monomial, 1),)).interval

    def _bound(self, polynomial: Polynomial) -> None:
        """`sum >= 0`: each term is at least what the others leave it."""
        spend(2 + 2 * len(polynomial.terms))
        high = self.interval(polynomial)[1]
        if high < 0:
            self.is_empty = True
            return
        for monomial, coefficient in polynomial.terms:
            if not monomial:
                continue
            low, top = self._of[monomial]
            most = coefficient * (top if coefficient > 0 else low)
            least = most - high  # of coefficient * monomial
            if coefficient > 0:
                self._keep(monomial, -(-least // coefficient), top)
            else:
                self._keep(monomial, low, least // coefficient)
            if self.is_empty:
                return

    def _keep(self, monomial: Monomial, low: int, high: int) -> None:
        known = self._of[monomial]
        found = max(low, known[0]), min(high, known[1])
        if found == known:
            return
        self._of[monomial] = found
        self._changed[monomial] = self._last_change = self._time
        self.is_empty |= found[0] > found[1]

    def _splits(self, product: Monomial) -> list[tuple[Monomial, Monomial]]:
        """A product as one of two, of which ranges are known."""
        found = []
        for place in sorted({product.index(u) for u in product}):
            factor, rest = product[place : place + 1], (*product[:place], *product[place + 1 :])
            if factor in self._of and rest in self._of:
                found.append((factor, rest))
        return found

    def _multiply(self, product: Monomial, splits: Sequence[tuple[Monomial, Monomial]]) -> None:
        for factor, rest in splits:
            if self.is_empty:
                return
            spend(_SPLIT)
            ends = [x * y for x in self._of[factor] for y in self._of[rest]]
            self._keep(product, min(ends), max(ends))
            if self.is_empty:
                return
            if factor == rest:
                self._root(product, factor)
                continue
            self._divide(product, factor, rest)
            self._divide(product, rest, factor)

    def _root(self, product: Monomial, factor: Monomial) -> None:
        low, high = self._of[product]
        self._keep(product, max(low, 0), high)
        if self.is_empty:
            return
        root = isqrt(max(high, 0))
        self._keep(factor, -root, root)

    def _divide(self, product: Monomial, factor: Monomial, other: Monomial) -> None:
        """`factor = product / other`, where neither product nor other is below 0."""
        low, high = self._of[product]
        least, most = self._of[other]
        if low >= 1 and least == 0:
            least = 1
            self._keep(other, least, most)
        if self.is_empty or least < 1:
            return
        above = high // (least if high >= 0 else most)
        below = -(-low // (most if low > 0 else least))
        self._keep(factor, below, above)


def ranges_of(
    zero: Sequence[Polynomial], not_negative: Sequence[Polynomial], monomials: Iterable[Monomial]
) -> Ranges:
    """What comparisons leave of the ranges of their monomials."""
    found = Ranges(monomials)
    found.narrow(zero, not_negative)
    return found
