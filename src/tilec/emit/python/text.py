"""Words of Python: identifiers, docstrings."""

from __future__ import annotations

import json
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Sequence

from tilec.emit.names import distinct

# What some Python from 3.10 to 3.14 has and another has not: files have the same names by each.
_PASSING = frozenset((
    "aifc", "annotationlib", "asynchat", "asyncore", "audioop", "binhex", "cgi", "cgitb", "chunk",
    "compression", "crypt", "distutils", "imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis",
    "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "tomllib",
    "uu", "xdrlib",
))  # fmt: skip
_IMPORTED = frozenset({"__init__", "__main__", "numpy", "tilec", "torch"})
_MODULES = sys.stdlib_module_names | _PASSING | _IMPORTED
# What a function has beside its parameters, or Python gives a meaning by its place.
_OWN = frozenset({"self", "stream", "streams", "workspace", "order"})


def identifier(name: str) -> str:
    """A name as Python has it, and as a file of it that is imported."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    plain = f"_{plain}" if plain[:1].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def module_name(stem: str) -> str:
    """The name of a module that hides none of Python's, nor what emitted files import."""
    name = identifier(stem)
    return f"{name}_" if name in _MODULES else name


def parameter_names(names: Sequence[str]) -> list[str]:
    """Names of parameters that differ, and are no words that calls have already."""
    return distinct(names, identifier, _OWN.__contains__)


def attribute_names(names: Sequence[str], is_taken: Callable[[str], bool]) -> list[str]:
    """Names of attributes of a module; those between `__` are Python's, and some are taken."""
    is_python = re.compile(r"__\w*[^_]__").fullmatch
    return distinct(names, identifier, lambda name: is_taken(name) or bool(is_python(name)))


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
