"""What launches borrow is let go when they are done, not before, whatever becomes of streams."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from manifest_samples import add_kernel
from noting_driver import module
from simulated_streams import Streams, stream
from test_borrows_of_launches import _begin_anew, own

from tilec.runtime import launch

pytestmark = pytest.mark.usefixtures("launch_path")

OBJECTS = {address: stream(address) for address in (0x40,)}  # which live as long as launches
ADDRESS = 0x200  # of streams that are destroyed at any time, and made anew

counts = st.sampled_from([1, 1, 2, 3, 12, 70])
steps = st.one_of(
    st.tuples(st.just("launch"), st.sampled_from([*OBJECTS, ADDRESS, ADDRESS]), counts),
    st.tuples(st.just("finish"), st.integers(0, 3), counts),
    st.tuples(st.just("settle")),
    st.tuples(st.just("ask"), st.integers(0, 40)),
    st.tuples(st.just("destroy"), st.just(ADDRESS)),
    st.tuples(st.just("capture"), st.sampled_from([*OBJECTS, ADDRESS])),
)


class Program:
    """A driver, and the handles of what it was given, by number."""

    def __init__(self):
        self.driver = Streams()
        self.add = module(self.driver, add_kernel()).add
        self.handles = []
        self.place = 0

    def launch(self, on, count):
        self.driver.create(on)
        for _ in range(count):
            at = self.place = self.place + 32  # each where no other one is
            given = own(at), own(at + 8), own(at + 16)
            handle = self.add.launch(*given, 1.0, stream=OBJECTS.get(on, on))
            if on not in self.driver.captured:
                self.handles.append(handle)

    def finish(self, number, count):
        queues = list(self.driver.queues)
        for _ in range(count if queues else 0):
            self.driver.finish_one(queues[number % len(queues)])

    def settle(self):
        launch.UNDER_WAY.settle()

    def ask(self, number):
        """On a stream that may be gone nobody asks for an event: it has one."""
        if number < len(self.handles):
            self.check(number, self.handles[number].done)

    def destroy(self, address):
        self.driver.captured.discard(address)
        self.driver.destroy(address)

    def capture(self, address):
        self.driver.captured ^= {address}

    def check(self, number, is_over):
        assert not is_over or number in self.driver.done

    def check_all(self):
        for number, handle in enumerate(self.handles):
            self.check(number, handle.is_over)


# Of three launches at one address the first and the last are done, which are on two streams.
REUSED = [
    ("launch", ADDRESS, 2),
    ("finish", 0, 1),
    ("destroy", ADDRESS),
    ("launch", ADDRESS, 1),
    ("finish", 1, 1),
    ("settle",),
]


@example(REUSED)
@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=8, max_size=40))
def test_what_is_let_go_is_done(program):
    with pytest.MonkeyPatch.context() as patch:
        _begin_anew(patch.setattr)
        run = Program()
        for name, *rest in program:
            getattr(run, name)(*rest)
            run.check_all()
        # Nothing is kept for ever.
        run.driver.captured.clear()
        run.settle()
        for queue in list(run.driver.queues):
            run.driver.finish_all(queue)
        run.settle()
        assert all(handle.is_over for handle in run.handles)
        assert not (launch.UNDER_WAY._timed or launch.UNDER_WAY._gathered)
