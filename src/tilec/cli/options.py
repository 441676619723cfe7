"""Options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import click

from tilec.cli.report import Format, Reporter
from tilec.compilation import DEFAULT_PROOF_BUDGET
from tilec.diagnostics.setup_error import SetupError

Command = TypeVar("Command", bound=Callable[..., object])


def reporting(callback: Callable[..., int]) -> Callable[..., int]:
    """Adds `--error-format` and `--quiet`, and hands the callback a `reporter`."""
    return _reporting(callback, "json is one object a line on standard error.", "text", "json")


def reviewing(callback: Callable[..., int]) -> Callable[..., int]:
    """As `reporting`, for commands whose diagnostics can also be had as a SARIF document."""
    said = "json is one object a line on standard error, sarif one document on standard output."
    return _reporting(callback, said, "text", "json", "sarif")


def _reporting(callback: Callable[..., int], said: str, *formats: Format) -> Callable[..., int]:
    @click.option(
        "--error-format",
        type=click.Choice(formats),
        default="text",
        help=f"How errors are printed; {said}",
    )
    @click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
    @functools.wraps(callback)
    def with_reporter(*args: object, error_format: Format, quiet: bool, **kwargs: object) -> int:
        reporter = Reporter(error_format, quiet)
        try:
            status = callback(*args, reporter=reporter, **kwargs)
        except SetupError as error:
            reporter.setup_error(error)
            status = 2
        reporter.finish()
        return status

    return with_reporter


def instances(callback: Command) -> Command:
    """Adds what decides the instances: `-D`, `--instance`, `-I`."""
    for option in (
        click.option(
            "-I",
            "include",
            multiple=True,
            metavar="DIR",
            help="A further folder where `use` looks for files.",
        ),
        click.option(
            "--instance",
            "instances",
            multiple=True,
            metavar="'K<T=f32,B=64>'",
            help="An instance to build beside those in the file.",
        ),
        click.option(
            "-D",
            "defines",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_defines,
            help="Replace the value of a generic in every instance.",
        ),
    ):
        callback = option(callback)
    return callback


def proving(callback: Command) -> Command:
    """Adds `--proof-budget`."""
    return click.option(
        "--proof-budget",
        type=click.IntRange(min=1),
        default=DEFAULT_PROOF_BUDGET,
        show_default=True,
        metavar="STEPS",
        help="Steps that proofs of one instance may take: 7 million take 5 seconds at most.",
    )(callback)


def words(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """The distinct words of an option that takes commas and repeats."""
    for value in values:
        if not value.replace(",", "").strip():
            raise click.BadParameter(f"expected words between commas, got `{value}`")
    given = (word.strip() for value in values for word in value.split(","))
    return tuple(dict.fromkeys(word for word in given if word))


def _defines(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    for value in values:
        name, equals, replacement = value.partition("=")
        if not equals or not name.strip().isidentifier() or not replacement.strip():
            raise click.BadParameter(f"expected NAME=VALUE, got `{value}`")
    return values
