"""Launches on several streams: what conflicts is ordered or refused, and nothing else is."""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest_samples import add_kernel
from noting_driver import module, module_of
from pipeline_samples import with_pipelines
from simulated_streams import LEGACY, Streams, stream
from test_launching import TorchTensor

import tilec.runtime as rt
from tilec.runtime import graph, launch, launcher, memory, ordering, pipeline, tensor
from tilec.runtime.array import Array

pytestmark = pytest.mark.usefixtures("launch_path")

BASE = 2**40
KIB = 1024
A, B, BLOCKING = 0x40, 0x80, 0x20
USERS = (graph, launch, launcher, memory, ordering, pipeline, tensor)


def atomic_kernel():
    """As `add`, but that z is updated atomically."""
    kernel = add_kernel()
    z = replace(kernel.parameters[0], own="atomic", block=())
    variants = tuple(replace(v, symbol=v.symbol.replace("add", "count")) for v in kernel.variants)
    return replace(
        kernel,
        name="count",
        symbol="count",
        parameters=(z, *kernel.parameters[1:]),
        coverage=(),
        variants=variants,
    )


@pytest.fixture(autouse=True)
def nothing_under_way(monkeypatch):
    _begin_anew(monkeypatch.setattr)


def _begin_anew(set_attribute):
    fresh = launch.UnderWay()
    for user in USERS:
        set_attribute(user, "UNDER_WAY", fresh)


class Memory:
    """Device memory that notes that it was given back."""

    def __init__(self, at, size=64 * KIB):
        self.handle, self.size, self.is_closed = at, size, False

    def close(self):
        self.is_closed = True


def own(offset=0):
    """A tensor of the runtime of 4000 bytes, so many KiB into the memory."""
    array = Array(BASE + offset * KIB, "f32", (1000,), (1,), 0)
    return rt.Tensor(Memory(array.pointer), array)


def torch(offset=0):
    return TorchTensor(BASE + offset * KIB)


@pytest.fixture
def driver(monkeypatch):
    made = Streams(blocking=(BLOCKING,))
    monkeypatch.setattr(ordering, "cuda_driver", lambda: made)
    return made


@pytest.fixture
def add(driver):
    return module(driver, add_kernel(), atomic_kernel()).add


@pytest.fixture
def count(driver):
    return module(driver, add_kernel(), atomic_kernel()).count


# What is refused


def test_a_write_that_meets_a_write_on_another_stream_is_refused(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    with pytest.raises(
        rt.BorrowError,
        match=r"`add__f32_1024` on stream 0x80 writes `z`, which `add__f32_1024`, still under way "
        r"on stream 0x40, writes as `z`: wait for its handle, or give `order=True`",
    ):
        add.launch(own(0), own(24), own(32), 1.0, stream=stream(B))
    assert driver.launches == 1


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((32, 0, 24), "reads `x`, which .* writes as `z`"),
        ((32, 24, 3), "reads `y`, which .* writes as `z`"),
        ((8, 24, 32), "writes `z`, which .* reads as `x`"),
        ((19, 24, 32), "writes `z`, which .* reads as `y`"),
    ],
)
def test_reads_and_writes_meet_in_any_byte(add, second, message):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    with pytest.raises(rt.BorrowError, match=message):
        add.launch(*map(own, second), 1.0, stream=stream(B))


def test_a_call_is_refused_as_a_launch_is(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    with pytest.raises(rt.BorrowError, match="on the default stream writes `z`"):
        add(own(0), own(8), own(16), 1.0)
    assert driver.launches == 1


def test_an_atomic_update_meets_whatever_is_no_update(count, add):
    count.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    with pytest.raises(rt.BorrowError, match=r"reads `x`, which `count`.*updates as `z`"):
        add.launch(own(32), own(0), own(16), 1.0, stream=stream(B))
    count.launch(own(0), own(8), own(16), 1.0, stream=stream(B))


def test_a_launch_that_was_refused_is_no_obstacle(add, driver):
    handle = add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    for _ in range(2):
        with pytest.raises(rt.BorrowError):
            add.launch(own(8), own(24), own(32), 1.0, stream=stream(B))
    driver.finish_one(A)
    handle.wait()
    add.launch(own(8), own(24), own(32), 1.0, stream=stream(B))


# What is not


def test_reads_do_not_meet(add):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(32), own(8), own(16), 1.0, stream=stream(B))


def test_interleaved_rows_do_not_meet(driver):
    rows = [Array(BASE + 128 * i, "i8", (6, 64), (512, 1), 0) for i in range(4)]
    copy = module(driver).copy
    copy.launch(rows[0], rows[1], 1, stream=stream(A))
    copy.launch(rows[2], rows[3], 1, stream=stream(B))
    with pytest.raises(rt.BorrowError, match="writes `target`"):
        copy.launch(rows[1], rows[2], 1, stream=stream(0xC0))


def test_a_later_launch_hides_an_earlier_one_of_the_same_bytes_only(driver):
    copy = module(driver).copy
    whole, comb = (Array(BASE, "i8", (n, 64), (s, 1), 0) for n, s in ((10, 64), (4, 192)))
    assert whole.span_bytes == comb.span_bytes  # but between the teeth of the comb is the whole
    far = [Array(2 * BASE + 2**20 * n, "i8", (n, 64), (64, 1), 0) for n in (2, 4, 10)]
    copy.launch(whole, far[2], 1, stream=stream(A))
    copy.launch(comb, far[1], 1, stream=stream(A))
    between = Array(BASE + 64, "i8", (2, 64), (192, 1), 0)
    copy.launch(far[0], between, 1, stream=stream(B))
    [event] = waits(driver, B)
    assert 0 in event.before


def test_without_programs_nothing_is_borrowed(driver, add):
    empty = [Array(BASE, "f32", (0,), (1,), 0)] * 3
    add.launch(*empty, 1.0, stream=stream(A))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    add.launch(*empty, 1.0, stream=stream(A))


@pytest.mark.parametrize("how", ["stream", "done", "handle", "ordered handle", "ordered stream"])
def test_what_is_ordered_is_launched(how, add, driver):
    handle = add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    then = A if how == "stream" else B
    if how in ("done", "handle"):
        driver.finish_one(A)
    if how == "handle":
        assert handle.done
        handle.wait()
    if how.startswith("ordered"):
        rt.ordered(handle if how.endswith("handle") else stream(A), stream(B))
        assert driver.known(B) == {0}
    waits = len(driver.queues.get(B, ()))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(then))
    assert driver.launches == 2
    assert len(driver.queues[then]) == (2 if then == A else waits + 1)  # no further wait


def test_only_what_was_launched_before_is_ordered(add, driver):
    add.launch(own(24), own(8), own(16), 1.0, stream=stream(A))
    rt.ordered(stream(A), stream(B))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    driver.finish_one(A)
    driver.run()  # stream B has nothing left to do
    with pytest.raises(rt.BorrowError, match=r"on stream 0x80.*under way on stream 0x40"):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))


def test_what_another_thread_launches_behind_the_event_is_not_ordered_by_it(add, driver):
    add.launch(own(32), own(8), own(16), 1.0, stream=stream(A))
    launched, tail = threading.Event(), driver.tail

    def work():
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
        launched.set()

    other = threading.Thread(target=work)

    def tail_and_more(address, device):
        event = tail(address, device)
        other.start()
        launched.wait(0.2)  # it may have to wait for this
        return event

    driver.tail = tail_and_more
    rt.ordered(stream(A), stream(B))
    driver.tail = tail
    other.join()
    add.launch(own(0), own(24), own(40), 1.0, stream=stream(B), order=True)
    assert driver.known(B) == {0, 1, 2}


def test_order_is_passed_on_from_stream_to_stream(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    rt.ordered(stream(A), stream(B))
    add.launch(own(32), own(40), own(48), 1.0, stream=stream(B))
    rt.ordered(stream(B), stream(0xC0))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(0xC0))
    assert driver.known(0xC0) == {0, 1, 2}
    with pytest.raises(rt.BorrowError, match="still under way on stream 0x40"):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(0x100))


def test_the_default_stream_and_blocking_streams_wait_for_each_other(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(BLOCKING))
    add.launch(own(0), own(8), own(16), 1.0, stream=LEGACY)
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(BLOCKING))
    assert [item for queue in driver.queues.values() for item in queue if item[0] == "wait"] == []
    with pytest.raises(rt.BorrowError, match="on stream 0x40 writes"):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))


def test_an_address_may_be_that_of_another_stream_later(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(BLOCKING))
    add.launch(own(0), own(8), own(16), 1.0, stream=LEGACY)
    driver.finish_all(LEGACY)
    driver.blocking.clear()
    add.launch(own(0), own(8), own(16), 1.0, stream=LEGACY)
    with pytest.raises(rt.BorrowError, match="on stream 0x20 writes"):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(BLOCKING))


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_stream_that_was_given_as_an_address_is_not_asked_about_later(add, driver, is_gone):
    """It may be gone. What it was given is ordered by an event, if it may be in order already."""
    add.launch(own(0), own(8), own(16), 1.0, stream=BLOCKING)
    add.launch(own(24), own(8), own(16), 1.0, stream=A)
    if is_gone:
        driver.destroy(BLOCKING)
        driver.destroy(A)
    with pytest.raises(rt.BorrowError, match="still under way on stream 0x40"):
        add.launch(own(24), own(8), own(16), 1.0, stream=LEGACY)
    add.launch(own(0), own(8), own(16), 1.0, stream=LEGACY)
    waits = [item for item in driver.queues[LEGACY] if item[0] == "wait"]
    assert len(waits) == 1 and driver.known(LEGACY) >= {0}


def test_what_was_captured_on_an_address_is_not_asked_about_later(add, driver):
    driver.captured.add(A)
    handle = add.launch(own(0), own(8), own(16), 1.0, stream=A)
    driver.captured.clear()
    driver.destroy(A)
    with pytest.raises(rt.LaunchError, match="does not run before the graph"):
        handle.wait()
    launch.UNDER_WAY.settle()
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    assert launch.UNDER_WAY.only == B


def test_a_threads_own_stream_is_another_one_in_each_thread(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=2)
    add.launch(own(0), own(8), own(16), 1.0, stream=2)
    refused = []

    def work():
        with pytest.raises(rt.BorrowError) as error:
            add.launch(own(0), own(8), own(16), 1.0, stream=2)
        refused.append(str(error.value))

    driver.is_idle = lambda stream: True
    driver.tail = lambda stream, device: SimpleNamespace(is_done=True)  # this thread's has no work
    driver.is_over = lambda event: event.is_done
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert refused and "its thread's default stream" in refused[0]


def test_a_thread_that_is_gone_does_not_lend_its_stream_to_the_next_one(add, driver):
    """Threads get the number of one that is gone; its own stream is not theirs."""
    numbers = []

    def work():
        numbers.append(threading.get_ident())
        add.launch(own(0), own(8), own(16), 1.0, stream=2)

    while len(numbers) == len(set(numbers)) and len(numbers) < 50:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    # The driver of this test knows one stream 2: that each launch waits for the last one is said by
    # an event, which one stream would not need.
    waited_for = {max(event.before) for event in waits(driver, 2)}
    assert waited_for == set(range(len(numbers) - 1))


def test_a_launch_that_another_thread_starts_meanwhile_hides_nothing(add, driver):
    meanwhile = [lambda: add.launch(own(32), own(40), own(48), 1.0, stream=stream(B))]
    prepared = driver.prepared

    def interleaved(*arguments):
        start = prepared(*arguments)

        def both(on):
            start(on)
            while meanwhile:
                meanwhile.pop()()

        return both

    driver.prepared = interleaved
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    assert driver.finish_one(B)
    with pytest.raises(rt.BorrowError, match="still under way on stream 0x40"):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))


# What is ordered by an event, since it may be ordered already


def waits(driver, address):
    return [what for kind, what in driver.queues[address] if kind == "wait"]


@pytest.mark.parametrize("kinds", [(own, torch), (torch, own), (torch, torch)])
def test_launches_with_tensors_of_other_libraries_are_ordered(kinds, add, driver):
    first, second = kinds
    add.launch(first(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(second(0), own(8), own(16), 1.0, stream=stream(B))
    [event] = waits(driver, B)
    assert event.before == {0}
    add.launch(second(0), own(8), own(16), 1.0, stream=stream(B))
    assert waits(driver, B) == [event]  # once is enough


def test_a_stream_that_has_work_may_be_waiting_already(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    driver.order(driver.tail(A, 0), B, 0)  # as `b.wait(a)` of another library
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    assert driver.launches == 2


def test_somebody_may_have_waited_before_later_launches(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    driver.finish_all(A)  # as `a.sync()` of another library
    add.launch(own(24), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    assert driver.launches == 3


@pytest.mark.parametrize("use", ["launch", "free"])
def test_an_event_takes_a_moment_even_on_a_stream_that_is_done(use, add, driver):
    z = own(0)
    add.launch(z, own(8), own(16), 1.0, stream=stream(A))
    driver.finish_all(A)  # as `a.sync()` of another library: no event tells of it yet
    asked = []

    def is_over(event):
        asked.append(event)
        return len(asked) > 5 and event.is_done

    driver.is_over = is_over
    if use == "launch":
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    else:
        z.free()


# What callers choose


def test_order_lets_the_later_launch_wait(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B), order=True)
    assert [event.before for event in waits(driver, B)] == [{0}]


def test_conflicts_may_always_wait_or_be_left_to_the_caller(add, driver):
    rt.order_conflicts("off")
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    assert waits(driver, B) == []
    rt.order_conflicts("wait")
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    assert [event.before for event in waits(driver, A)] == [{1}]
    rt.order_conflicts("refuse")
    with pytest.raises(rt.BorrowError):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(0xC0))
    with pytest.raises(rt.TilecError, match="expected one of refuse, wait, off, got 'never'"):
        rt.order_conflicts("never")


def test_streams_under_capture_are_left_to_their_graph(add, driver):
    driver.captured = {B}
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    assert B not in driver.queues and driver.launches == 2
    for pair in ((A, B), (B, A)):
        with pytest.raises(rt.LaunchError, match="captured into a graph"):
            rt.ordered(*map(stream, pair))


def test_a_device_that_failed_refuses_nothing(add, driver):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))

    def failing(entry, stream):
        raise rt.LaunchError("illegal address")

    driver.recorded = failing
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
    assert ("device finished", 0) in driver.log


# What is on one stream costs nothing


def test_on_one_stream_nobody_is_asked(add, monkeypatch):
    asked = []
    admit = launch.UnderWay.admit
    monkeypatch.setattr(
        launch.UnderWay, "admit", lambda self, *given: asked.append(given) or admit(self, *given)
    )
    for _ in range(200):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    assert len(asked) == 1


def test_back_on_one_stream_nobody_is_asked_again(add, driver, monkeypatch):
    add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(24), own(32), own(40), 1.0, stream=stream(B))
    assert launch.UNDER_WAY.only is None
    assert driver.finish_one(A)
    launch.UNDER_WAY.settle()
    driver.run()
    launch.UNDER_WAY.settle()
    assert launch.UNDER_WAY.only == B
    with pytest.raises(rt.BorrowError):
        add.launch(own(24), own(32), own(40), 1.0, stream=stream(A))


def test_soon_after_a_change_of_streams_nobody_is_asked_if_the_first_is_done(
    add, driver, monkeypatch
):
    """What the first stream was given is asked about at the change, not much later."""
    for _ in range(launch.LIMIT_AFTER_CHANGE):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    add.launch(own(24), own(32), own(40), 1.0, stream=stream(B))
    for _ in range(launch.LIMIT_AFTER_CHANGE):
        assert driver.finish_one(A)
    driver.run()
    for _ in range(launch.LIMIT_AFTER_CHANGE):
        add.launch(own(24), own(32), own(40), 1.0, stream=stream(B))
    assert launch.UNDER_WAY.only == B

    def refuse(*given):
        raise AssertionError("asked again")

    monkeypatch.setattr(launch.UnderWay, "admit", refuse)
    add.launch(own(24), own(32), own(40), 1.0, stream=stream(B))


def test_another_stream_is_the_only_one_at_once_if_the_first_is_known_to_be_done(add, driver):
    for _ in range(launch.LIMIT):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(A))
    driver.finish_all(A)
    for _ in range(2):
        add.launch(own(0), own(8), own(16), 1.0, stream=stream(B))
        assert launch.UNDER_WAY.only == B


def test_after_some_launches_in_a_row_streams_that_are_done_count_no_more(add, driver):
    of_stream = {A: (own(0), own(8), own(16)), B: (own(24), own(32), own(40))}
    for _ in range(3):
        for one, tensors in of_stream.items():
            add.launch(*tensors, 1.0, stream=stream(one))
    assert launch.UNDER_WAY.only is None
    driver.finish_all(A)
    for _ in range(2 * launch.LIMIT_AFTER_CHANGE):
        add.launch(*of_stream[B], 1.0, stream=stream(B))
        driver.run()
    assert launch.UNDER_WAY.only == B


def test_streams_that_take_turns_are_asked_about_seldom(add, driver, monkeypatch):
    asked = []
    recorded = driver.recorded
    monkeypatch.setattr(driver, "recorded", lambda *given: asked.append(1) or recorded(*given))
    of_stream = {A: (own(0), own(8), own(16)), B: (own(24), own(32), own(40))}
    for _ in range(5 * launch.LIMIT):
        for one, tensors in of_stream.items():
            add.launch(*tensors, 1.0, stream=stream(one))
            assert driver.finish_one(one)
    assert 0 < len(asked) <= 2 * 2 * 5


# Memory that is given back


def test_memory_is_given_back_by_hand_once_nothing_needs_it(add, driver):
    x = own(8)
    buffer = x._shared.buffer
    handle = add.launch(own(0), x, own(16), 1.0, stream=stream(A))
    for _ in range(2):
        with pytest.raises(rt.BorrowError, match=r"`add__f32_1024`, which may still .*`x`"):
            x.free()
    assert not buffer.is_closed
    driver.finish_all(A)
    x.free()
    assert buffer.is_closed and x.is_freed and handle.done


def test_what_launches_let_go_of_may_free_memory(add, driver):
    class View(TorchTensor):
        """Another library's tensor in memory of the runtime, which it gives back at its end."""

        def __init__(self, memory):
            super().__init__(memory.pointer)
            self.memory = memory

        def __del__(self):
            self.memory.free()

    memory_ = own(8)
    add.launch(own(0), View(memory_), own(16), 1.0, stream=stream(A))
    launch.UNDER_WAY.settle()
    driver.finish_all(A)
    last = threading.Thread(target=launch.UNDER_WAY.settle, daemon=True)
    last.start()
    last.join(5)
    assert not last.is_alive(), "it waits for itself"
    assert memory_.is_freed


def test_a_finalizer_in_the_midst_of_a_launch_does_not_wait_for_itself(add, driver):
    memory_, refusals = own(256), []

    def asked(address):
        """Stands for a line at which garbage is collected."""
        try:
            memory_.free()
        except rt.BorrowError as error:
            refusals.append(str(error))
        return False

    driver.is_captured = asked

    def work():
        add.launch(own(0), own(16), own(24), 1.0, stream=stream(A))
        add.launch(own(32), own(40), own(48), 1.0, stream=stream(B))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive() and driver.launches == 2
    assert refusals == ["a finalizer came in the midst of a launch; call this elsewhere"]
    memory_.free()


def test_a_freed_tensor_is_of_no_use(add, driver, monkeypatch):
    x = own(8)
    part = x.at(4, (999,))
    z, y = own(0), own(16)
    add(z, x, y, 1.0)  # the shapes are known
    driver.finish_all(LEGACY)
    part.free()
    for use in (
        lambda: add(z, x, y, 1.0),
        lambda: add.launch(z, x, y, 1.0, stream=stream(A)),
        lambda: add.plan(z, x, y, 1.0),
    ):
        with pytest.raises(rt.BorrowError, match="`x` was freed"):
            use()
    for use in (x.numpy, x.bits, x.free, part.free, x.__dlpack__, lambda: x.at(0, (1,))):
        with pytest.raises(rt.BorrowError, match="the tensor was freed"):
            use()
    assert driver.launches == 1 and "f32" in repr(x)


def test_memory_that_a_graph_or_another_library_has_is_not_freed(monkeypatch):
    class Graph:
        def __repr__(self):
            return "Graph(mlp)"

    graph, x = Graph(), own()
    x.lend(graph)
    with pytest.raises(rt.BorrowError, match=r"Graph\(mlp\) holds its memory"):
        x.at(0, (3,)).free()
    x.take_back(graph)
    imported = []

    def exported(array, owner):
        imported.append(owner)
        return SimpleNamespace(__dlpack__=lambda: "capsule")

    monkeypatch.setattr(tensor, "cuda_driver", lambda: SimpleNamespace(exported=exported))
    assert x.__dlpack__() == "capsule"
    with pytest.raises(rt.BorrowError, match=r"another library \(DLPack\)"):
        x.free()
    imported.clear()
    x.free()


# Pipelines and graphs


class Executable:
    """A graph that runs on the simulated streams, as one launch."""

    def __init__(self, driver):
        self._start = driver.prepared(None, None, None)

    def launch(self, stream):
        self._start(stream)

    def update(self, nodes):
        return True


@pytest.fixture
def chain(driver):
    """`sums`: out = 8 x, by way of temporaries."""
    driver.stream_memory = lambda size, entry, stream: 2**41
    driver.free_stream_memory = lambda address, entry, stream: None
    driver.allocated = lambda size, device: Memory(2**41, size)
    driver.built_graph = lambda code, entry, nodes: Executable(driver)
    return module_of(driver, with_pipelines()).sums


def test_a_pipeline_borrows_its_arguments(chain, add):
    chain.launch(own(0), own(8), 1.0, stream=stream(A))
    with pytest.raises(
        rt.BorrowError, match=r"`add__f32_1024` on .* writes `z`, which `sums`.* reads as `x`"
    ):
        add.launch(own(8), own(16), own(24), 1.0, stream=stream(B))
    add.launch(own(16), own(8), own(24), 1.0, stream=stream(B))
    with pytest.raises(rt.BorrowError, match=r"`sums` on .* reads `x`, which `add__f32_1024`"):
        chain.launch(own(32), own(16), 1.0, stream=stream(0xC0))


def test_a_pipeline_waits_where_it_is_asked_to(chain, driver):
    chain.launch(own(0), own(8), 1.0, stream=stream(A))
    first = driver.launches
    chain.launch(own(16), own(0), 1.0, stream=stream(B), order=True)
    assert [event.before for event in waits(driver, B)] == [set(range(first))]


def test_a_workspace_is_used_by_one_launch_at_a_time(chain):
    memory_ = Array(2**42, "u8", (2**20,), (1,), 0)
    chain.launch(own(0), own(8), 1.0, stream=stream(A), workspace=memory_)
    with pytest.raises(rt.BorrowError, match=r"writes `workspace`, which `sums`"):
        chain.launch(own(16), own(24), 1.0, stream=stream(B), workspace=memory_)
    chain.launch(own(16), own(24), 1.0, stream=stream(B))


def test_a_graph_is_ordered_with_itself_and_refused_beside_others(chain, add, driver):
    graph = chain.graph(own(0), own(8), 1.0)
    graph.replay(stream(A))
    graph.replay(stream(B))  # CUDA lets it wait
    with pytest.raises(rt.BorrowError, match="writes `z`, which `sums`"):
        add.launch(own(0), own(16), own(24), 1.0, stream=stream(0xC0))
    driver.finish_all(A)
    driver.finish_all(B)
    add.launch(own(8), own(16), own(24), 1.0, stream=stream(0xC0))
    with pytest.raises(rt.BorrowError, match=r"`sums` on stream 0x40 reads `x`"):
        graph.replay(stream(A))
    graph.replay(stream(A), order=True)


def test_a_graph_that_was_refused_orders_nothing(chain, add, driver):
    graph = chain.graph(own(0), own(8), 1.0)
    graph.replay(stream(A))
    add.launch(own(32), own(0), own(40), 1.0, stream=stream(0xC0), order=True)
    with pytest.raises(rt.BorrowError, match=r"`sums` on stream 0x80 writes `out`"):
        graph.replay(stream(B))
    with pytest.raises(rt.BorrowError, match=r"writes `z`, which `sums`.* reads as `x`"):
        add.launch(own(8), own(16), own(24), 1.0, stream=stream(B))


@pytest.mark.parametrize("at", ["captured", "launched", "recorded"])
def test_a_finalizer_may_close_a_graph_in_the_midst_of_its_replay(
    add, chain, driver, at, monkeypatch
):
    out, x = own(0), own(8)
    memory = [weakref.ref(one._shared.buffer) for one in (out, x)]
    graphs = [chain.graph(out, x, 1.0)]
    del out, x

    def then_close(do):
        def done_and_closed(*given):
            answer = do(*given)
            graphs[0].close()
            return answer

        return done_and_closed

    if at == "launched":
        launched = then_close(Executable.launch)
        monkeypatch.setattr(Executable, "launch", launched)
    else:
        name = {"captured": "is_captured", "recorded": "recorded"}[at]
        setattr(driver, name, then_close(getattr(driver, name)))
    add.launch(own(64), own(72), own(80), 1.0, stream=stream(A))  # so that something is asked
    replays = []
    thread = threading.Thread(target=lambda: replays.append(graphs[0].replay(B)), daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it waits for itself"
    [handle] = replays
    with pytest.raises(rt.TilecError, match="is closed"):
        graphs[0].replay(B)
    assert all(one() is not None for one in memory)
    driver.finish_all(B)
    handle.wait()
    assert all(one() is None for one in memory)


def test_a_tensor_is_not_freed_while_a_graph_has_it(chain):
    out, x, y = own(0), own(8), own(16)
    with chain.graph(out, x, 1.0) as graph:
        with pytest.raises(rt.BorrowError, match=r"Graph\(sums, 5 launches\) holds its memory"):
            x.free()
        graph.update(x=y)
        x.free()
        with pytest.raises(rt.BorrowError, match="holds its memory"):
            y.free()
        with pytest.raises(rt.BorrowError, match="`x` was freed"):
            graph.update(x=x)
    y.free()
    out.free()


# Random programs, against what the driver was given

OWN = launch.PER_THREAD_STREAM
ADDRESSES = (LEGACY, BLOCKING, A, B, OWN)
PLACES = (0, 3, 8, 16)
streams = st.sampled_from(ADDRESSES)
places = st.permutations(PLACES[1:]).map(lambda three: tuple(three))
actions = st.one_of(
    st.tuples(
        st.just("launch"),
        streams,
        st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES), st.sampled_from(PLACES)),
        st.sampled_from(["add", "add", "count"]),
        st.sampled_from([own, own, torch]),
        st.booleans(),
        st.booleans(),
    ),
    st.tuples(st.just("finish"), streams),
    st.tuples(st.sampled_from(["ordered", "unseen wait"]), streams, streams),
    st.tuples(st.just("unseen sync"), streams),
    st.tuples(st.just("settle")),
)


def conflict(one, other):
    """By the definition: two places that share a byte, one of which is written."""
    for first, first_own in zip(one[1], one[0], strict=True):
        for second, second_own in zip(other[1], other[0], strict=True):
            shares = abs(first - second) * KIB < 4000
            if shares and not (first_own == second_own and first_own in ("shared", "atomic")):
                return True
    return False


@settings(max_examples=100, deadline=None)
@given(st.lists(actions, max_size=25))
def test_programs_never_race_and_are_never_refused_for_nothing(program):
    with pytest.MonkeyPatch.context() as patch:
        _begin_anew(patch.setattr)
        driver = Streams(blocking=(BLOCKING,))
        patch.setattr(ordering, "cuda_driver", lambda: driver)
        kernels = module(driver, add_kernel(), atomic_kernel())
        objects = {address: stream(address) for address in ADDRESSES}
        launched, last, is_torch = [], {}, []
        for action, *rest in program:
            if action == "finish":
                driver.finish_one(rest[0])
            elif action == "unseen sync":
                driver.finish_all(rest[0])
            elif action == "settle":
                launch.UNDER_WAY.settle()
            elif action == "ordered":
                rt.ordered(objects[rest[0]], objects[rest[1]])
            elif action == "unseen wait":
                driver.order(driver.tail(rest[0], 0), rest[1], 0)
            else:
                on, at, kernel, kind, order, by_address = rest
                if abs(at[0] - at[1]) * KIB < 4000 or abs(at[0] - at[2]) * KIB < 4000:
                    continue  # refused by the contract
                this = ("atomic" if kernel == "count" else "part", "shared", "shared"), at
                known = driver.known_if_launched(on)
                open_ = [
                    number
                    for number, other in enumerate(launched)
                    if number not in driver.done | known and conflict(this, other)
                ]
                is_idle = driver.is_idle(on)
                try:
                    given = on if by_address else objects[on]
                    kernels[kernel].launch(*map(kind, at), 1.0, stream=given, order=order)
                except rt.BorrowError:
                    assert open_ and not order and kind is own
                    assert driver.launches == len(launched), "nothing was launched"
                    continue
                # Whatever conflicts with it comes before it, by what the driver was given.
                number = len(launched)
                assert driver.launches == number + 1
                assert set(open_) <= driver.known(on)
                certain = {last[s] for s in last} & set(open_)
                if len(open_) == 1 and certain and is_idle and not order and kind is own:
                    assert is_torch[open_[0]], "nothing can have ordered them"
                launched.append(this)
                is_torch.append(kind is torch)
                last[on] = number
