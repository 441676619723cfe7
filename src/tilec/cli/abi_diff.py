"""`tilec abi-diff`: what a new build means for those who call the old one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import click

from tilec.artifact.embed import CubinError
from tilec.artifact.manifest import Manifest, ManifestError
from tilec.artifact.validate import faults_of
from tilec.cli.entry import DONE, REFUSED
from tilec.cli.manifests import manifest_texts
from tilec.cli.options import reporting
from tilec.cli.output import say
from tilec.cli.report import Reporter
from tilec.compatibility.change import Change, Kind
from tilec.compatibility.compare import changes_between
from tilec.compatibility.older import from_any_json
from tilec.diagnostics.setup_error import SetupError
from tilec.printable import json_text, printable

_KINDS: tuple[Kind, ...] = get_args(Kind)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--deny",
    type=click.Choice(["recompile"]),
    help="End with status 1 also where programs must be compiled again.",
)
@reporting
def command(old: str, new: str, deny: str | None, reporter: Reporter) -> int:
    """Compare two builds (OLD and NEW: cubins, fat binaries or manifests) for their callers.

    `breaking`: calls that were right are refused, do something else, or do not compile.
    `recompile`: emitted launchers that are compiled into a program, and launches written by hand,
    must be made anew; `tilec.runtime` reads the new file by itself. `compatible`: nothing is to be
    done.

    Ends with status 1 if something is breaking, with 0 if not, and with 2 if a file cannot be read.
    With --error-format=json, each change is one object on standard output.
    """
    before, old_version = _read(old)
    after, new_version = _read(new)
    changes = changes_between(before, after)
    if old_version != new_version:
        message = f"has schema version {new_version}, was {old_version}: own readers must know it"
        changes.insert(0, Change("recompile", "", message))
    _print(changes, reporter)
    refused: set[Kind] = {"breaking", "recompile"} if deny else {"breaking"}
    return REFUSED if any(change.kind in refused for change in changes) else DONE


def _read(file: str) -> tuple[list[Manifest], int]:
    """The manifests of a file, and their schema version.

    Raises:   SetupError
    """
    try:
        read = [from_any_json(text) for text in manifest_texts(file)]
    except (CubinError, ManifestError) as error:
        raise SetupError(f"`{file}`: {error}") from None
    if not read:
        raise SetupError(f"`{file}` holds no cubin")
    manifests = [manifest for manifest, _ in read]
    fault = next((fault for one in manifests for fault in faults_of(one)), None)
    if fault is not None:
        raise SetupError(f"`{file}`: {fault}")
    return manifests, read[0][1]


def _print(changes: Sequence[Change], reporter: Reporter) -> None:
    if reporter.json:
        for change in changes:
            fields = {"kind": change.kind, "about": change.about, "message": change.message}
            say(json_text(fields, in_ascii=False))
        return
    for kind in _KINDS:
        of_kind = [change for change in changes if change.kind == kind]
        if of_kind and not (reporter.quiet and kind == "compatible"):
            say(kind)
            for change in of_kind:
                about = f"`{change.about}` " if change.about else ""
                say(f"  {printable(f'{about}{change.message}')}")
    if not changes:
        reporter.line("nothing changed for callers")
