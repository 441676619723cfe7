"""The parse tables of `grammar/tile.lark`, from a cache where there is one.

Making the tables takes a third of a second, loading them some thirty milliseconds. The cache
file is named after its content's hash, written beside and moved into place, so that parallel
processes never see half of one; where the directory cannot be written, each makes its own. Nor is
one read that others may write: tables decide what programs mean.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

import lark

from tilec.private_folder import make_private
from tilec.regular_files import TEXT_LIMIT, read_regular
from tilec.whole_files import write_whole


def load_grammar(callbacks: object) -> lark.Lark:
    """The parser that calls, for each rule it completes, the method of `callbacks` of its name."""
    text = (files("tilec.grammar") / "tile.lark").read_text(encoding="utf-8")
    folder = _cache_directory()
    if folder is None or not _is_private(folder):
        return _parser(text, callbacks)
    cached = folder / f"grammar-{_content_key(text)}.lark-tables"
    # Whatever is wrong with a cache file, the grammar is still there.
    with suppress(Exception):
        tables = _Data(io.BytesIO(read_regular(cached, TEXT_LIMIT))).load()
        return lark.Lark._load_from_dict(**tables, transformer=callbacks)
    parser = _parser(text, callbacks)
    with suppress(OSError):
        _save(parser, cached)
    return parser


class _Data(pickle.Unpickler):
    """Reads numbers, text and what holds them, which tables are made of, and runs no code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def _parser(text: str, callbacks: object) -> lark.Lark:
    return lark.Lark(
        text,
        parser="lalr",
        lexer="contextual",
        # `vocabulary` is never parsed: see the end of the grammar.
        start=["file", "vocabulary"],
        # Spans are read off the first and the last token of a rule.
        keep_all_tokens=True,
        transformer=callbacks,
    )


def _save(parser: lark.Lark, path: Path) -> None:
    # Not by lark's option `cache`: it writes in place, and its check value depends on the path.
    tables = io.BytesIO()
    parser.save(tables, exclude_options=("transformer",))
    write_whole(path, tables.getvalue())


def _content_key(text: str) -> str:
    versions = f"{lark.__version__} {sys.version_info[:2]}"
    return hashlib.sha256(f"{versions}\n{text}".encode()).hexdigest()[:24]


def _is_private(folder: Path) -> bool:
    try:
        return make_private(folder) is None
    except OSError:
        return False


def _cache_directory() -> Path | None:
    """`$XDG_CACHE_HOME/tilec`; a relative path there counts as none (XDG specification).

    None for who has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base and Path(base).is_absolute():
        return Path(base) / "tilec"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "tilec"
    return None
