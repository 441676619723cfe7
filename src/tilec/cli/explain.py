"""`tilec explain`: the page of an error code."""

from __future__ import annotations

from difflib import get_close_matches

import click

from tilec.cli.entry import DONE
from tilec.cli.output import say
from tilec.diagnostics.pages import codes, page
from tilec.diagnostics.setup_error import SetupError


@click.command()
@click.argument("code")
def command(code: str) -> int:
    """Say what the error CODE means, with a program that has it and the program to write instead.

    `tilec explain list` names every code.
    """
    if code.lower() == "list":
        for found in filter(None, map(page, codes())):
            say(f"{found.code}: {found.title}")
        return DONE
    explained = page(code.upper())
    if explained is None:
        close = get_close_matches(code.upper(), codes(), cutoff=0.5)
        near = f"near it: {', '.join(close)}; " if close else ""
        raise SetupError(
            f"`{code}` is no error code", help=f"{near}`tilec explain list` names every code"
        )
    say(explained.text.rstrip())
    return DONE
