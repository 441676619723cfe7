"""Several findings of the same thing, which instances of one kernel give, as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilec.diagnostics.diagnostic import Diagnostic


def once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Each finding once, in the order of its place: code, place and message decide."""
    seen: set[tuple[str, object, str]] = set()
    for diagnostic in sorted(diagnostics, key=lambda d: (d.span.file, d.span.start)):
        key = diagnostic.code, diagnostic.span, diagnostic.message
        if key not in seen:
            seen.add(key)
            yield diagnostic
