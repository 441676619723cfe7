"""Which streams a pipeline's launches go to; that they order all that they must, and so does what
is left of an order where launches are left out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.runtime.pipeline_plan import _without_others
from tilec.runtime.stream_schedule import FORK, schedule_of


@st.composite
def orders(draw):
    """What each launch comes after, with and without what follows from the rest."""
    count = draw(st.integers(0, 12))
    return [
        tuple(sorted(draw(st.sets(st.integers(0, n - 1), max_size=3)))) if n else ()
        for n in range(count)
    ]


def closure(after):
    before = []
    for earlier in after:
        before.append(set(earlier).union(*(before[n] for n in earlier)))
    return before


def clocks(schedule):
    """What has happened before each launch, and at the end, by what CUDA says of streams.

    A vector clock: of each stream how many of its launches are done. An event stands for the clock
    of its stream when it was recorded, which is right after the launch.
    """
    streams = [None] * schedule.streams
    streams[0] = [0] * schedule.streams
    fork = list(streams[0])
    events, places, started = {}, {}, {}
    for launch, stream, waits, is_recorded, follows in schedule.turns:
        for wait in waits:
            heard = fork if wait == FORK else events[wait]
            mine = streams[stream] or [0] * schedule.streams
            streams[stream] = [max(a, b) for a, b in zip(mine, heard, strict=True)]
        assert streams[stream] is not None, "a stream begins with what the caller's was given"
        assert follows == (streams[stream][stream] > 0 and not waits)
        started[launch] = list(streams[stream])
        streams[stream][stream] += 1
        places[launch] = stream, streams[stream][stream]
        if is_recorded:
            events[launch] = list(streams[stream])
    for join in schedule.joins:
        streams[0] = [max(a, b) for a, b in zip(streams[0], events[join], strict=True)]
    return started, places, streams[0]


def happened(place, clock):
    stream, number = place
    return clock[stream] >= number


@settings(max_examples=150, deadline=None)
@given(orders(), st.integers(1, 5))
def test_streams_order_all_that_must_have_an_order(after, most):
    schedule = schedule_of(after, most)
    assert [turn.launch for turn in schedule.turns] == list(range(len(after)))
    assert schedule.streams <= most
    started, places, end = clocks(schedule)
    for launch, before in enumerate(closure(after)):
        assert all(happened(places[n], started[launch]) for n in before)
        assert happened(places[launch], end)


@settings(max_examples=60, deadline=None)
@given(orders())
def test_with_enough_streams_nothing_else_is_ordered(after):
    started, places, _ = clocks(schedule_of(after, len(after) + 1))
    for launch, before in enumerate(closure(after)):
        assert {n for n in range(launch) if happened(places[n], started[launch])} == before


@settings(max_examples=100, deadline=None)
@given(orders(), st.data())
def test_what_is_left_out_hands_its_order_on(after, data):
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(after)))))) if after else []
    left = _without_others(after, kept)
    before = closure(after)
    expected = [{kept.index(n) for n in before[launch] if n in kept} for launch in kept]
    assert closure(left) == expected
    for earlier in left:  # nothing follows from the rest
        assert not any(n in closure(left)[other] for n in earlier for other in earlier)


def test_a_chain_stays_on_the_callers_stream():
    after = [(), *((n,) for n in range(9))]
    schedule = schedule_of(after, 4)
    assert schedule.streams == 1 and not schedule.joins
    assert [turn.follows for turn in schedule.turns] == [False] + [True] * 9


def test_a_diamond_has_two_arms():
    schedule = schedule_of([(), (0,), (0,), (1, 2)], 4)
    assert [turn.stream for turn in schedule.turns] == [0, 0, 1, 0]
    assert [turn.waits for turn in schedule.turns] == [(), (), (0,), (2,)]
    assert not schedule.joins


def test_what_shares_a_stream_is_not_waited_for():
    """Launches 0 and 1 have no order, but one stream; what comes after both waits for one event."""
    schedule = schedule_of([(), (), (), (0, 1, 2)], 2)
    assert [turn.stream for turn in schedule.turns] == [0, 1, 0, 0]
    assert schedule.turns[3].waits == (1,)
