"""Options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import click

from tilec.cli.report import Reporter
from tilec.diagnostics.setup_error import SetupError

Command = TypeVar("Command", bound=Callable[..., object])


def reporting(callback: Callable[..., int]) -> Callable[..., int]:
    """Adds `--error-format` and `--quiet`, and hands the callback a `reporter`."""

    @click.option(
        "--error-format",
        type=click.Choice(["text", "json"]),
        default="text",
        help="How errors are printed; json is one object a line on standard error.",
    )
    @click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
    @functools.wraps(callback)
    def with_reporter(*args: object, error_format: str, quiet: bool, **kwargs: object) -> int:
        reporter = Reporter(json=error_format == "json", quiet=quiet)
        try:
            return callback(*args, reporter=reporter, **kwargs)
        except SetupError as error:
            reporter.setup_error(error)
            return 2

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


def words(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """The distinct words of an option that takes commas and repeats."""
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
