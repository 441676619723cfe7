"""The documentation is true: programs check, generated parts are current, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_blocks import PAGES, ROOT, Block, blocks, programs

from tilec.compilation import Options
from tilec.diagnostics.reference import reference, table
from tilec.diagnostics.render import render
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

PROGRAMS = [pair for page in PAGES for pair in programs(page)]
LANGUAGE = ROOT / "docs" / "language.md"
ERRORS = ROOT / "docs" / "errors.md"
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:)([^)\s]*)\)")
_CODES = re.compile(r"(?<=<!-- codes -->\n).*?(?=<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize(("block", "text"), PROGRAMS, ids=[str(block) for block, _ in PROGRAMS])
def test_a_program_of_the_documentation_checks(block: Block, text: str) -> None:
    source = SourceFile("example.tile", text)
    found = check_sources(Sources(source, {}, {}, {}), Options()).diagnostics
    shown = "\n".join(render(diagnostic, {source.name: source}) for diagnostic in found)
    assert {d.code for d in found} == ({block.code} if block.code else set()), shown


def test_the_page_of_errors_is_current(bless: bool) -> None:
    if bless:
        ERRORS.write_text(reference(), encoding="utf-8")
    assert ERRORS.read_text(encoding="utf-8") == reference(), "run `make bless`"


def test_the_codes_of_the_language_are_those_with_pages(bless: bool) -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    if bless:
        text = _CODES.sub(lambda _: table("errors.md"), text)
        LANGUAGE.write_text(text, encoding="utf-8")
    found = _CODES.search(text)
    assert found is not None
    assert found[0] == table("errors.md"), "run `make bless`"


@pytest.mark.parametrize("page", [*PAGES, ERRORS, ROOT / "docs" / "ops.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(linked), f"{page.name} links to {target}"


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_in_the_documentation_is_python(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            compile(block.text, str(block), "exec")
