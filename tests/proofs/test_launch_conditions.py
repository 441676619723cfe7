"""Conditions under which an access is inside: evaluated beside it, over all numbers of the types.

The access is computed from its definition, with integers of Python kept as the type keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.front_end import checked
from tilec.artifact.expression import Expression, TooLarge, evaluate, evaluate_exactly
from tilec.frontend.emit import emit
from tilec.integers.conditions import Comparison, Floor, Linear
from tilec.integers.polynomial import Unknown
from tilec.ir.dialect import context
from tilec.ir.walk import functions
from tilec.proofs.bounds import Verdict
from tilec.proofs.launch_conditions import expression_of
from tilec.proofs.proof import Proof

EXTENT = 64


def kept(bits: int, value: int) -> int:
    """The signed number of these bits."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def truncated(a: int, b: int) -> int:
    return abs(a) // b * (1 if a >= 0 else -1)


@dataclass(frozen=True)
class Index:
    """An index over `q` and `r` of a type: as the program has it, and by its definition."""

    element: str
    text: str
    value: Callable[[int, int], int]


# Quotients of quotients, of both signs, remainders of either kind, numbers that wrap.
INDICES = [
    Index("i32", "q.rem_euclid(1000) % 65", lambda q, r: q % 1000 % 65),
    Index("i64", "q.rem_euclid(1099511627776) % 65", lambda q, r: q % 2**40 % 65),
    Index("i64", "q.rem_euclid(1000).rem_euclid(65)", lambda q, r: q % 1000 % 65),
    Index("i32", "(q >> 3) / 5", lambda q, r: truncated(q >> 3, 5)),
    Index("i64", "(q / 7) >> 2", lambda q, r: truncated(q, 7) >> 2),
    Index("i32", "(q / 7 - 3) % 5 + 60", lambda q, r: (a := truncated(q, 7) - 3)
          - 5 * truncated(a, 5) + 60),
    Index("i16", "q + 7", lambda q, r: kept(16, q + 7)),
    Index("i8", "q * 2 + 1", lambda q, r: kept(8, kept(8, q * 2) + 1)),
    Index("i32", "q.max(r) / 3", lambda q, r: truncated(max(q, r), 3)),
    Index("i32", "q.min(r) % 7", lambda q, r: (a := min(q, r)) - 7 * truncated(a, 7)),
    Index("u32", "q / 3 - 5", lambda q, r: (q // 3 - 5) % 2**32),
]  # fmt: skip


def limits(element: str) -> tuple[int, int]:
    bits = int(element[1:])
    return (0, 2**bits - 1) if element[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def conditions_of(index: Index) -> list[Expression] | None:
    """What the load of a kernel is said to be inside under; None if nobody knows."""
    text = f"""#[kernel]
pub fn k(
    z: Part<&mut Tensor<f32, 1>, 1>, x: &Tensor<f32, {EXTENT}>,
    q: {index.element}, r: {index.element},
) {{
    z.store(x.load_at::<1>([{index.text}]));
}}
"""
    instances, found, program = checked(text)
    assert not found, [d.message for d in found]
    with context():
        module = emit(instances, program.sources)
        proof = Proof(next(functions(module)))
        [load] = [bounds for bounds in proof.bounds if not bounds.access.writes]
        if load.verdict is Verdict.IN_KERNEL:
            return None
        assert load.verdict is Verdict.LAUNCH_CHECKED
        return [proof.expression_of(condition) for condition in load.conditions]


@pytest.mark.parametrize("index", INDICES, ids=lambda index: f"{index.element} {index.text}")
def test_a_condition_holds_only_where_the_access_is_inside(index: Index) -> None:
    conditions = conditions_of(index)
    assert conditions is not None, "a condition is found"
    low, high = limits(index.element)
    near = st.integers(max(low, -200), min(high, 3000))
    ends = (
        st.integers(0, 200)
        .flatmap(lambda n: st.sampled_from([low + n, high - n]))
        .filter(lambda n: low <= n <= high)
    )
    numbers = near | ends | st.integers(low, high) | st.just(max(low, -7797517464808100842))
    met = [0]

    @settings(max_examples=150, deadline=None, database=None)
    @given(numbers, numbers)
    def is_inside(q: int, r: int) -> None:
        values = {"q": q, "r": r}
        holds = all(evaluate_exactly(condition, values) for condition in conditions)
        inside = 0 <= index.value(q, r) < EXTENT
        assert inside or not holds, f"outside, at {index.value(q, r)}"
        met[0] += holds
        # Launchers' own numbers, of 64 bits, give the same or are known not to.
        with suppress(TooLarge):
            assert all(evaluate(condition, values) for condition in conditions) == holds

    is_inside()
    assert met[0], "some launch meets it"


NAMES = {Unknown("q", -(2**63), 2**63 - 1, 1): "q", Unknown("N", 0, 2**40, 2): "N"}
numbers_near = st.integers(-70, 70) | st.sampled_from([-(2**40), 2**31, 2**53])


def linear(inside: int) -> st.SearchStrategy[Linear]:
    """Sums of unknowns and of quotients, these so deep in each other at most."""
    terms = st.sampled_from([*NAMES])
    if inside:
        terms |= st.builds(Floor, linear(inside - 1), st.integers(2, 2**40) | st.integers(2, 9))
    factors = numbers_near.filter(bool)
    return st.builds(
        lambda found, constant: Linear(tuple((c, t) for t, c in found.items()), constant),
        st.dictionaries(terms, factors, max_size=3),
        numbers_near,
    )


@st.composite
def remainders(draw: st.DrawFn) -> Comparison:
    """That something leaves a remainder, as isl says it."""
    dividend, divisor = draw(linear(1)), draw(st.integers(2, 9))
    floor = Floor(dividend, divisor)
    terms = (*dividend.terms, (-divisor, floor))
    sign = draw(st.sampled_from([1, -1]))
    constant = dividend.constant - draw(st.integers(0, 9))
    return Comparison(Linear(tuple((sign * c, t) for c, t in terms), sign * constant), True)


def value_of(value: Linear, values: dict[str, int]) -> int:
    total = value.constant
    for coefficient, term in value.terms:
        if isinstance(term, Floor):
            total += coefficient * (value_of(term.dividend, values) // term.divisor)
        else:
            total += coefficient * values[term.name]
    return total


@settings(max_examples=300, deadline=None)
@given(
    st.builds(Comparison, linear(3), st.booleans()) | remainders(),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-90, 90),
    st.integers(0, 2**40) | st.integers(0, 90),
)
def test_a_condition_says_what_its_sums_and_quotients_say(
    comparison: Comparison, q: int, n: int
) -> None:
    values = {"q": q, "N": n}
    exact = value_of(comparison.value, values)
    wanted = exact == 0 if comparison.is_equality else exact >= 0
    assert evaluate_exactly(expression_of(((comparison,),), NAMES), values) == wanted
