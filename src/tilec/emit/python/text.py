"""Words of Python: identifiers, docstrings."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection, Iterable, Sequence

from tilec.emit.names import distinct

# What a function has beside its parameters, or Python gives a meaning by its place.
_OWN = frozenset({"self", "stream", "streams", "workspace", "order"})


def identifier(name: str) -> str:
    """A name as Python has it, and as a file of it that is imported."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    plain = f"_{plain}" if plain[:1].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def parameter_names(names: Sequence[str]) -> list[str]:
    """Names of parameters that differ, and are no words that calls have already."""
    return distinct(names, identifier, _OWN.__contains__)


def attribute_names(names: Sequence[str], taken: Collection[str]) -> list[str]:
    """Names of attributes of a module; those between `__` are Python's, and some are taken."""
    is_python = re.compile(r"__\w*[^_]__").fullmatch
    return distinct(names, identifier, lambda name: name in taken or bool(is_python(name)))


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
