"""`tilec explain`: the page of an error code."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files

import click

from tilec.cli.entry import DONE
from tilec.diagnostics.setup_error import SetupError


@click.command()
@click.argument("code")
def command(code: str) -> int:
    """Say what the error CODE means, with a program that has it and the program to write instead.

    `tilec explain list` names every code.
    """
    pages = {
        page.name.removesuffix(".md"): page
        for page in files("tilec.diagnostics.pages").iterdir()
        if page.name.endswith(".md")
    }
    if code.lower() == "list":
        for _, found in sorted(pages.items()):
            click.echo(found.read_text(encoding="utf-8").splitlines()[0].lstrip("# "))
        return DONE
    page = pages.get(code.upper())
    if page is None:
        close = get_close_matches(code.upper(), pages, cutoff=0.5)
        near = f"near it: {', '.join(close)}; " if close else ""
        raise SetupError(
            f"`{code}` is no error code", help=f"{near}`tilec explain list` names every code"
        )
    click.echo(page.read_text(encoding="utf-8").rstrip())
    return DONE
