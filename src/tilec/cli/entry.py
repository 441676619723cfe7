"""From arguments to an exit status, whatever happens: no traceback ever reaches the user.

0 done, 1 errors in the input, 2 usage, 70 internal error, 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import StringIO

import click

from tilec import __version__
from tilec.cli.output import leave, say_aside
from tilec.diagnostics.setup_error import SetupError, of_the_machine

DONE, REFUSED, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130

# Here, so that `tilec --help` loads no command.
COMMANDS = {
    "build": "Compile files to cubins.",
    "check": "Find the errors of files, and write nothing.",
    "explain": "Say what an error code means, with an example and its fix.",
    "inspect": "Show what a cubin, a fat binary or a manifest holds.",
    "abi-diff": "Say what a new build means for those who call the old one.",
    "opt": "Run passes on a file of MLIR.",
    "run": "Execute a kernel on .npy files.",
    "bench": "Measure kernels against rivals on a GPU.",
    "tune": "Measure which instance of a kernel is the fastest at which extents.",
    "doctor": "Say what is installed and what it can do.",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"tilec.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="tilec %(version)s")
def tilec() -> None:
    """Compile small Rust-flavoured tile programs ahead of time to CUDA machine code."""


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit status."""
    try:
        status = tilec.main(args=list(arguments), prog_name="tilec", standalone_mode=False)
    except click.ClickException as error:
        return _usage_error(error)
    except SetupError as error:
        return _setup_error(error)
    except (click.Abort, KeyboardInterrupt):
        say_aside("interrupted")
        return INTERRUPTED
    except SystemExit:
        # Whoever was to read a text of click's own, such as --help, has left.
        leave(sys.stdout)
        return DONE
    except Exception as error:
        if (missing := of_the_machine(error)) is not None:
            leave(sys.stdout)
            return _setup_error(missing)
        return _internal_error(error)
    return status if isinstance(status, int) else DONE


def _usage_error(error: click.ClickException) -> int:
    """Says it as click does, but for what a terminal would act on: names of files are arguments."""
    said = StringIO()
    error.show(said)
    say_aside(said.getvalue().rstrip())
    return USAGE


def _setup_error(error: SetupError) -> int:
    from tilec.cli.report import Reporter

    Reporter().setup_error(error)
    return USAGE


def _internal_error(error: Exception) -> int:
    from tilec.cli.report import Reporter

    reason = f"{type(error).__name__}: {error}"
    Reporter().internal_error(reason, traceback.format_exc())
    return INTERNAL
