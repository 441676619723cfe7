"""Words of Python: identifiers, docstrings."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection, Iterable, Sequence

# What a function has beside its parameters, or Python gives a meaning by its place.
_OWN = frozenset({"self", "stream", "streams", "workspace", "order"})


def identifier(name: str) -> str:
    """A name as Python has it, and as a file of it that is imported."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    plain = f"_{plain}" if plain[:1].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def parameter_names(names: Sequence[str]) -> list[str]:
    """Names of parameters that differ, and are no words that calls have already."""
    return distinct(names, _OWN)


def distinct(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Identifiers for names that differ: these differ too, and none is taken. Whatever can stay as
    it is does."""
    kept = {name for name in names if identifier(name) == name and name not in taken}
    found: list[str] = []
    for name in names:
        plain = identifier(name)
        while (plain != name and plain in kept) or plain in taken or plain in found:
            plain += "_"
        found.append(plain)
    return found


def quoted(text: str) -> str:
    """A text as Python has it, between double quotes."""
    return json.dumps(text, ensure_ascii=False)


def docstring(lines: Iterable[str], indent: str = "") -> list[str]:
    """A docstring of these lines."""
    texts = [line.replace("\\", "\\\\").replace('"""', '""\\"') for line in lines]
    while texts and not texts[-1]:
        texts.pop()
    if texts and texts[-1].endswith('"'):
        texts[-1] = f'{texts[-1][:-1]}\\"'
    if len(texts) == 1:
        return [f'{indent}"""{texts[0]}"""']
    head, *rest = texts or [""]
    return [
        f'{indent}"""{head}',
        *(f"{indent}{line}".rstrip() for line in rest),
        f'{indent}"""',
    ]
