"""The command `tilec`: arguments in, exit status out. One file a command, loaded when used."""

from __future__ import annotations

import sys


def main() -> None:
    """The console script."""
    from tilec.cli.entry import run_command_line
    from tilec.cli.output import prepare_streams
    from tilec.cli.stopping import tidy_up_at_signals

    prepare_streams()
    tidy_up_at_signals()
    sys.exit(run_command_line(sys.argv[1:]))
