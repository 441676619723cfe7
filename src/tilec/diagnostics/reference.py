"""docs/errors.md: the page of every code, on one page."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.diagnostics.pages import Page, codes, page

_HEADER = """\
# Errors

Generated from `src/tilec/diagnostics/pages`: do not edit, run `make bless`.

`tilec explain E0401` prints one of these pages. The first program of each is refused with its code,
the second is accepted.
"""


def reference() -> str:
    """The page as text: a table of the codes, then each page under its own heading."""
    return "\n".join([_HEADER, table(), *(f"#{found.text}" for found in _pages())])


def table(linked: str = "") -> str:
    """The codes with their titles, each linked to its section of the file `linked`."""
    rows = (f"| [{p.code}]({linked}#{_anchor(p)}) | {p.title} |\n" for p in _pages())
    return "".join(["| code | |\n| --- | --- |\n", *rows])


def _pages() -> Iterator[Page]:
    for code in codes():
        found = page(code)
        assert found is not None, f"{code} is one of the codes"
        yield found


def _anchor(found: Page) -> str:
    """The anchor of the page's heading, as GitHub makes it."""
    heading = f"{found.code}: {found.title}".lower()
    return "".join(c for c in heading if c.isalnum() or c in " -_").replace(" ", "-")
