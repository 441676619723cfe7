"""The command `tilec`: arguments in, exit status out. One file a command, loaded when used."""

from __future__ import annotations

import sys
from contextlib import suppress

_USAGE = 2


def main() -> None:
    """The console script."""
    try:
        from tilec.cli.entry import run_command_line
        from tilec.cli.output import prepare_streams
        from tilec.cli.stopping import tidy_up_at_signals
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        _say_click_is_missing()
        sys.exit(_USAGE)
    prepare_streams()
    tidy_up_at_signals()
    sys.exit(run_command_line(sys.argv[1:]))


def _say_click_is_missing() -> None:
    """For an installation without dependencies (`pip install --no-deps tilec`)."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write("error: `click` is not installed, and the command `tilec` needs it\n")
            sys.stderr.write("  = help: pip install click\n")
            sys.stderr.flush()
