"""Shapes as users write them: `M=512,N=512,K=64`, or `512x512x64` in the order of the `Dim`s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import read_regular_text

Shape = dict[str, int]


def listed(words: Iterable[str]) -> list[str]:
    """The shapes of some words, each of which may hold several between blanks; `@FILE` stands for
    those of a file, in which `#` begins a remark.

    Raises:   SetupError if a file cannot be read
    """
    found: list[str] = []
    for word in words:
        for item in word.split():
            found += _of_file(item[1:]) if item.startswith("@") else [item]
    return list(dict.fromkeys(found))


def _of_file(path: str) -> list[str]:
    try:
        text = read_regular_text(path)
    except UnicodeDecodeError as error:
        raise SetupError(f"cannot read the shapes of `{path}`: it is not UTF-8") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read the shapes of `{path}`: {reason}") from error
    return [item for line in text.splitlines() for item in line.partition("#")[0].split()]


def extents_of(text: str, dims: tuple[str, ...]) -> tuple[int, ...]:
    """The extents that a shape gives the `Dim`s, in their order.

    Raises:   SetupError if it does not say each of them once
    """
    expected = f"`{_named(dims)}` or `{'x'.join('…' for _ in dims)}`"
    if "=" not in text:
        numbers = [_number(part, text, expected) for part in text.split("x")]
        if len(numbers) != len(dims):
            raise SetupError(f"`{text}` is no shape of {', '.join(dims)}: expected {expected}")
        return tuple(numbers)
    given: Shape = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if name.strip() not in dims or name.strip() in given:
            raise SetupError(f"`{text}` is no shape of {', '.join(dims)}: expected {expected}")
        given[name.strip()] = _number(number, text, expected)
    if len(given) < len(dims):
        missing = ", ".join(dim for dim in dims if dim not in given)
        raise SetupError(f"`{text}` does not say {missing}: expected {expected}")
    return tuple(given[dim] for dim in dims)


def extents_by_owner(
    text: str, owners: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[int, ...]]:
    """The extents of each owner whose names a shape is of; other owners may have other names.

    Raises:   SetupError if it is a shape of none of them
    """
    found: dict[str, tuple[int, ...]] = {}
    refused: list[SetupError] = []
    for owner, names in owners.items():
        try:
            found[owner] = extents_of(text, names)
        except SetupError as error:
            refused.append(error)
    if found:
        return found
    if len(refused) == 1:
        raise refused[0]
    listed = ", ".join(f"`{owner}` ({_named(names)})" for owner, names in owners.items())
    raise SetupError(f"`{text}` is a shape of none of {listed}")


def _named(names: tuple[str, ...]) -> str:
    return ",".join(f"{name}=…" for name in names)


def _number(text: str, shape: str, expected: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise SetupError(f"`{shape}` is no shape: expected {expected}, got `{text}`")
    return number
