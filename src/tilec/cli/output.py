"""What commands print, whatever becomes of where it goes."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO

import click

from tilec.diagnostics.setup_error import SetupError
from tilec.printable import printable_lines


def say(text: str, *, nl: bool = True) -> None:
    """Print a result on standard output: text, of which a terminal just shows every character.

    What nobody reads any more (`tilec … | head`) is left out, and the command goes on: it may have
    files to write, and its status is still asked.

    Raises:   SetupError if it cannot be written
    """
    try:
        click.echo(printable_lines(text), nl=nl)
    except BrokenPipeError:
        leave(sys.stdout)
    except OSError as error:
        leave(sys.stdout)
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot write to standard output: {reason}") from error


def say_aside(text: str) -> None:
    """Print a remark or an error on standard error; where that fails there is nobody to tell."""
    say_styled(printable_lines(text))


def say_styled(text: str, *, nl: bool = True, color: bool | None = None) -> None:
    """As `say_aside`, with what steers the terminal.

    Assumes:  what comes from files in it is printable already
    """
    try:
        click.echo(text, err=True, nl=nl, color=color)
    except OSError:
        leave(sys.stderr)


def leave(stream: TextIO) -> None:
    """Send what is in a stream's buffer, and all that follows, nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def prepare_streams() -> None:
    """Make the standard streams such that commands need not think of them.

    Where one is closed Python has None, and the next file that is opened gets its number: it is the
    null device instead. What an encoding lacks, as ASCII lacks `…`, is printed as an escape.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free, which is this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
