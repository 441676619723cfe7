"""The choice of layouts, on programs that are nothing but constraints and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.layout import Layout, blocked, transposed
from tilec.layout.candidates import Candidates
from tilec.layout.inference import Solution, cost_of, infer_layouts
from tilec.layout.nodes import Node, Places, Problem, Value
from tilec.layout.running_cost import RunningCost

SHAPE = (64, 64)
WARPS = 4
ROWS = blocked(SHAPE, WARPS, (1, 0), 4)
COLUMNS = blocked(SHAPE, WARPS, (0, 1), 4)
PLAIN = blocked(SHAPE, WARPS, (1, 0))


class Builder:
    """Writes problems: each method adds a node, and gives the number of the value that it makes."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.nodes: list[Node] = []
        self.numbers = count()

    def load(self, layout: Layout, *, again: bool = False, turns: float = 1) -> int:
        """Likes a layout; is made in no other, or in any (`again`)."""

        def serve(wanted: Layout) -> tuple[None] | None:
            return (None,) if again or wanted == layout else None

        place = _always(Places((), (layout,)))
        return self._made((), place, turns, serve=lambda x: () if serve(x) else None, is_open=True)

    def constant(self) -> int:
        return self._made((), _always(Places((), (None,))), 1, serve=lambda _: (), is_open=True)

    def turned(self, operand: int) -> int:
        """A transpose: open, for it moves nothing."""

        def place(known: Sequence[Layout | None]) -> Places:
            result = None if known[0] is None else transposed(known[0], (1, 0)).layout
            return Places((None,), (result,))

        serve = lambda wanted: (transposed(wanted, (1, 0)).layout,)  # noqa: E731
        return self._made((operand,), place, 1, serve=serve, is_open=True)

    def sum(
        self, *operands: int, group: int | None = None, element_bytes: int = 4, turns: float = 1
    ) -> int:
        """Element by element: one layout for all."""

        def place(known: Sequence[Layout | None]) -> Places:
            one = next((layout for layout in known if layout is not None), None)
            return Places((one,) * len(operands), (one,))

        return self._made(operands, place, turns, group=group, element_bytes=element_bytes)

    def store(self, operand: int, layout: Layout, *, other: float = 1e6, turns: float = 1) -> None:
        """Takes any layout, but each other one than its own at a price."""

        def place(known: Sequence[Layout | None]) -> Places:
            return Places((known[0] or layout,), ())

        def cost(places: Places) -> float:
            return 0.0 if places.operands[0] == layout else other

        self._add((operand,), (), place, turns, cost=cost)

    def _made(
        self,
        operands: tuple[int, ...],
        place: Callable[[Sequence[Layout | None]], Places],
        turns: float,
        *,
        element_bytes: int = 4,
        group: int | None = None,
        is_open: bool = False,
        serve: Callable[[Layout], tuple[Layout | None, ...] | None] = lambda _: None,
    ) -> int:
        self.values.append(Value(SHAPE, element_bytes, turns))
        number = len(self.values) - 1
        self._add(operands, (number,), place, turns, is_open=is_open, serve=serve, group=group)
        return number

    def _add(
        self,
        operands: tuple[int, ...],
        results: tuple[int, ...],
        place: Callable[[Sequence[Layout | None]], Places],
        turns: float,
        *,
        is_open: bool = False,
        serve: Callable[[Layout], tuple[Layout | None, ...] | None] = lambda _: None,
        cost: Callable[[Places], float] = lambda _: 1.0,
        group: int | None = None,
    ) -> None:
        own = next(self.numbers) + 1000
        chosen = own if group is None else group
        node = Node(operands, results, is_open, place, serve, cost, turns, chosen)
        self.nodes.append(node)

    @property
    def problem(self) -> Problem:
        return Problem(tuple(self.values), tuple(self.nodes), lambda shape: PLAIN)

    def solve(self) -> Solution:
        return infer_layouts(self.problem)


def _always(places: Places) -> Callable[[Sequence[Layout | None]], Places]:
    return lambda _: places


def test_what_comes_in_one_layout_and_leaves_in_it_is_never_converted() -> None:
    b = Builder()
    b.store(b.sum(b.load(ROWS), b.constant()), ROWS)
    solution = b.solve()
    assert {places.operands[0] for places in solution.places.values()} == {ROWS}


def test_a_tile_that_nothing_asks_anything_of_has_the_default() -> None:
    b = Builder()
    b.sum(b.constant(), b.constant(), group=1)
    assert b.solve().keys == {1: PLAIN}


def test_the_smaller_of_two_values_is_converted() -> None:
    # Read by columns, widened, narrowed, written by rows: the change is where elements are small.
    b = Builder()
    narrow = b.sum(b.load(COLUMNS), group=1, element_bytes=1)
    wide = b.sum(narrow, b.constant(), group=2, element_bytes=8)
    b.store(b.sum(wide, group=2, element_bytes=8), ROWS)
    assert b.solve().keys[2] == ROWS


def test_what_a_loop_does_not_change_is_converted_before_it() -> None:
    b = Builder()
    outside = b.load(COLUMNS)
    inside = b.load(ROWS, turns=8)
    b.store(b.sum(outside, inside, group=1, turns=8), ROWS, turns=8)
    assert b.solve().keys[1] == ROWS


def test_two_uses_in_one_layout_are_one_conversion() -> None:
    # One store by columns against two by rows, of one value that was read by columns: two stores
    # are worth the conversion, which costs once.
    b = Builder()
    value = b.load(COLUMNS)
    for _ in range(2):
        b.store(value, ROWS, other=60.0)
    layouts = [places.operands[0] for places in b.solve().places.values()]
    assert layouts == [ROWS, ROWS]


def test_a_load_that_may_be_made_again_is_made_in_both_layouts() -> None:
    b = Builder()
    value = b.load(ROWS, again=True)
    b.store(b.sum(value, group=1), ROWS)
    b.store(b.sum(value, group=2), COLUMNS)
    assert b.solve().keys == {1: ROWS, 2: COLUMNS, **_stores(b)}


def test_layouts_come_through_views() -> None:
    b = Builder()
    b.store(b.sum(b.turned(b.load(ROWS)), group=1), COLUMNS)
    found = b.solve()
    assert found.keys[1] == transposed(ROWS, (1, 0)).layout == COLUMNS


def _stores(b: Builder) -> dict[int, Layout]:
    """The keys of the nodes that are in no named group."""
    return {group: key for group, key in b.solve().keys.items() if group >= 1000}


layouts = st.sampled_from([ROWS, COLUMNS, PLAIN])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_change_of_one_group_makes_the_program_cheaper(data: st.DataObject) -> None:
    b = Builder()
    values = [b.load(data.draw(layouts)) for _ in range(data.draw(st.integers(1, 3)))]
    for group in range(data.draw(st.integers(1, 4))):
        picked = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=2))
        bytes_ = data.draw(st.sampled_from([1, 4]))
        values.append(b.sum(*picked, group=group, element_bytes=bytes_))
    for _ in range(data.draw(st.integers(1, 3))):
        price = data.draw(st.floats(0, 200))
        b.store(data.draw(st.sampled_from(values)), data.draw(layouts), other=price)
    found = b.solve()
    assert found.cost == cost_of(b.problem, found.keys)
    for group in found.keys:
        for layout in set(found.keys.values()):
            assert found.cost <= cost_of(b.problem, {**found.keys, group: layout}) + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_a_change_costs_is_what_the_whole_program_costs_more(data: st.DataObject) -> None:
    b = Builder()
    values = [b.load(data.draw(layouts), again=data.draw(st.booleans())), b.constant()]
    for group in range(data.draw(st.integers(1, 4))):
        operand = data.draw(st.sampled_from(values))
        values.append(b.turned(operand) if data.draw(st.booleans()) else operand)
        picked = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=2))
        turns = data.draw(st.sampled_from([1.0, 8.0**30]))
        values.append(b.sum(*picked, group=group, turns=turns))
    b.store(values[-1], data.draw(layouts), other=64.0)
    candidates = Candidates(b.problem)
    keys = {group: found[0] for group, found in candidates.of_group.items()}
    cost = RunningCost(candidates, keys)
    for _ in range(data.draw(st.integers(1, 5))):
        group = data.draw(st.sampled_from(sorted(keys)))
        before = cost.total
        more = cost.change(group, data.draw(layouts))
        anew = cost_of(b.problem, cost.keys)
        assert cost.total == anew
        assert abs(before + more - anew) <= 1e-12 * max(before, anew)


def _chain(length: int) -> Builder:
    b = Builder()
    last = b.load(ROWS)
    for group in range(length):
        last = b.sum(b.turned(last), last, group=group)
    b.store(last, COLUMNS)
    return b


def test_the_search_looks_at_what_a_change_changes() -> None:
    visits = {length: _chain(length).solve().visits for length in (20, 40)}
    assert visits[40] <= 2.3 * visits[20]
