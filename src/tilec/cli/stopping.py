"""What becomes of a command that is told to end: it tidies up, and ends as it was told to.

Child processes end with it by themselves (`tilec.children`).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType

from tilec.cli.entry import INTERRUPTED
from tilec.unfinished import delete_unfinished

# Of `kill` and `timeout`; of a terminal that is closed.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def tidy_up_at_signals() -> None:
    """From here on a signal to end leaves no file behind.

    One that whoever started the command ignores (`nohup`) stays ignored.
    """
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _end(number: int, frame: FrameType | None) -> None:
    delete_unfinished()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    delete_unfinished()
    # Not by Python's streams, in the midst of whose writing this may be.
    with suppress(OSError):
        os.write(2, b"\ninterrupted\n")
    os._exit(INTERRUPTED)
