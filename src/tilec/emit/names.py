"""One rule for what files of all languages call kernels, pipelines and parameters.

A name that may stay as it is does; of two whose functions would have one name, the shorter. All
others get underscores until nothing else is called so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_ALONE = ("",)


def identifier(name: str) -> str:
    """A name as C and Rust can have it."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def distinct(
    names: Sequence[str],
    spelled: Callable[[str], str],
    is_taken: Callable[[str], bool],
    words: Sequence[Sequence[str]] = (),
) -> list[str]:
    """What a language calls these, each by itself: all differ, and none is taken.

    `spelled` leaves a name alone that the language can write; what is taken must be free with
    enough underscores behind it. `words` are what follows each name in the names of its functions.
    """
    endings = words or [_ALONE] * len(names)
    used: set[str] = set()
    found: dict[int, str] = {}
    by_length = sorted(range(len(names)), key=lambda i: len(names[i]))
    for i in by_length:
        if spelled(names[i]) == names[i] and _is_free(names[i], endings[i], used, is_taken):
            found[i] = names[i]
            used.update(names[i] + word for word in endings[i])
    for i in by_length:
        if i in found:
            continue
        plain = spelled(names[i])
        while not _is_free(plain, endings[i], used, is_taken):
            plain += "_"
        found[i] = plain
        used.update(plain + word for word in endings[i])
    return [found[i] for i in range(len(names))]


def _is_free(
    plain: str, words: Sequence[str], used: set[str], is_taken: Callable[[str], bool]
) -> bool:
    return not any(plain + word in used or is_taken(plain + word) for word in words)
