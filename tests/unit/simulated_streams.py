"""A driver whose streams run what they are given when a test says so, and which knows, from what it
was given alone, which launches come before which."""

from __future__ import annotations

from types import SimpleNamespace

from noting_driver import NotingDriver, started_by_c

from tilec.runtime import native

LEGACY = 0


class Event:
    """Done when the stream that it was recorded on comes to it."""

    def __init__(self, driver, before):
        self._driver = driver
        self.before = before  # the launches that are done when it is
        self.is_reached = False

    @property
    def is_done(self):
        self._driver.run()
        return self.is_reached

    def sync(self):
        assert self.is_done, "tests wait for what is done only: here nothing runs meanwhile"


class Streams(NotingDriver):
    """Streams by address; those in `blocking` and the default stream wait for each other.

    `launches` are what was started, in order, by the number that `start` gave them. What comes
    before a launch follows from the queues: events that streams wait for, whoever asked for that.
    """

    def __init__(self, blocking=()):
        super().__init__()
        self.blocking = set(blocking)
        self.queues = {}
        self.before = {}  # of each stream: the launches that come before what it is given next
        self.launches = 0
        self.done = set()
        self.captured = set()
        self._waited_for = {}  # by each launch
        self._gone = 0  # streams that were destroyed
        self._gone_at = set()  # their addresses, while no other stream has them

    # What the runtime asks for

    def prepared(self, code, entry, cells, early=False):
        def start(stream):
            self._check_there(stream)
            if stream in self.captured:
                return
            self._join_default(stream)
            number = self.launches
            self.launches += 1
            self._queue(stream).append(("launch", number))
            self.before[stream] = self.known(stream) | {number}

        return started_by_c(start, cells) if native.built() and cells else start

    def recorded(self, entry, stream):
        return self.tail(stream, entry.device)

    def tail(self, stream, device):
        self._check_there(stream)
        if stream in self.captured:
            return None
        event = Event(self, self.known(stream))
        self._queue(stream).append(("record", event))
        return event

    def order(self, event, stream, device):
        self._check_there(stream)
        if stream in self.captured:
            return False
        self._queue(stream).append(("wait", event))
        self.before[stream] = self.known(stream) | event.before
        return True

    def is_over(self, event):
        return event.is_done

    def is_captured(self, stream):
        self._check_there(stream)
        return stream in self.captured

    def waits_for_legacy(self, stream):
        self._check_there(stream)
        return stream in self.blocking

    # What tests ask for

    def known(self, stream):
        return self.before.get(stream, frozenset())

    def known_if_launched(self, stream):
        """The launches that come before one that is launched on a stream now."""
        before = self.known(stream)
        for other in self._defaults(stream):
            before |= self.known(other)
        return before

    def run(self):
        """What takes no time is done: events, and waits for events that are done."""
        moved = True
        while moved:
            moved = False
            for queue in self.queues.values():
                while queue and (queue[0][0] == "record" or _is_over(queue[0])):
                    kind, what = queue.pop(0)
                    if kind == "record":
                        what.is_reached = True
                    moved = True

    def finish_one(self, stream):
        """The launch that a stream is at is done; whether there is one, and nothing before it."""
        self.run()
        queue = self.queues.get(stream)
        if not queue or queue[0][0] != "launch":
            return False
        before = self._waited_for[queue[0][1]]
        if not before <= self.done:
            return False
        self.done.add(queue.pop(0)[1])
        return True

    def finish_all(self, stream):
        """As a host that waits for a stream: whatever that takes."""
        while self.queues.get(stream):
            if not any(self.finish_one(one) for one in list(self.queues)):
                self.run()
                return

    def create(self, stream):
        """A stream at an address where none is, or one that is there already."""
        self._gone_at.discard(stream)

    def destroy(self, stream):
        """As CUDA does: what it was given goes on, and its address may be the next stream's."""
        self._gone += 1
        self._gone_at.add(stream)
        gone = "gone", self._gone
        for of in (self.queues, self.before):
            if stream in of:
                of[gone] = of.pop(stream)

    def is_idle(self, stream):
        self.run()
        return not self.queues.get(stream)

    def _check_there(self, stream):
        assert stream not in self._gone_at, "a stream that is gone is asked about"

    def _queue(self, stream):
        return self.queues.setdefault(stream, [])

    def _defaults(self, stream):
        if stream == LEGACY:
            return list(self.blocking)
        return [LEGACY] if stream in self.blocking else []

    def _join_default(self, stream):
        self.before[stream] = self.known_if_launched(stream)
        self._waited_for[self.launches] = self.before[stream]


def _is_over(item):
    return item[0] == "wait" and item[1].is_reached


def stream(address):
    return SimpleNamespace(address=address)
