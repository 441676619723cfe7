"""How callers order launches on several streams, and what becomes of conflicts."""

from __future__ import annotations

from tilec.runtime.borrows import Policy
from tilec.runtime.cuda_driver import cuda_driver
from tilec.runtime.errors import LaunchError
from tilec.runtime.launch import UNDER_WAY, Launch


def ordered(first: object, then: object) -> None:
    """Lets a stream wait for a launch, or for all that another stream was given so far.

    What is given to the stream `then` from now on runs after it; nobody waits on the host. `first`
    is a handle or a stream, as `launch` takes them.

    Raises:   LaunchError if a stream is being captured into a graph, or the device failed
    """
    driver = cuda_driver()
    stream = driver.stream_of(then)
    if isinstance(first, Launch):
        if first.is_over:
            return
        device = first.entry.device
        earlier: Launch | tuple[int, int | None] = first
    else:
        on = driver.stream_of(first)
        device = driver.device_of(on)
        earlier = on, device

    def order() -> None:
        event = first.event() if isinstance(first, Launch) else driver.tail(on, device)
        if event is None or not driver.order(event, stream, device):
            raise LaunchError(
                "a stream that is being captured into a graph is ordered by the graph"
            )

    UNDER_WAY.ordered(earlier, stream, order)


def order_conflicts(policy: Policy) -> None:
    """What becomes of a launch that conflicts with one under way on another stream.

    "refuse" raises BorrowError where nothing can have ordered them, and orders them by an event
    where something may have; "wait" orders them by an event; "off" leaves it to the caller.

    Raises:   TilecError if it is none of these
    """
    UNDER_WAY.order_conflicts(policy)
