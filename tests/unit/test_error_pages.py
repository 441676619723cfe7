"""Each page of an error code is its own test: the wrong program gives the code, the right none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilec.compilation import IN_KERNEL_CHECKS, Options
from tilec.diagnostics import Diagnostic, Severity
from tilec.diagnostics.pages import Page, codes, page
from tilec.driver import check_sources, compile_sources
from tilec.execution import execute
from tilec.interpret.npy import written_npy
from tilec.source import SourceFile
from tilec.sources import Sources

# Codes that only `build` gives; E0901 is of its options (tests/cli/test_exit_status.py).
GIVEN_BY_BUILD = frozenset({"E0901", "W0701"})
# Codes that only a sanitized run gives, with the extents of a launch of both programs.
GIVEN_BY_RUN = {"E0602": (300, 512), "W0801": (300, 300)}
# What makes a code an error, where it is none otherwise.
DENIED = {"E0603": (IN_KERNEL_CHECKS,)}
# The codes of the language's reference that this version can give.
FAMILIES = {"E01": 3, "E02": 4, "E03": 3, "E04": 4, "E05": 3, "E06": 1, "E08": 2}


def page_of(code: str) -> Page:
    found = page(code)
    assert found is not None
    return found


def codes_given(text: str, deny: tuple[str, ...] = ()) -> set[str]:
    sources = Sources(SourceFile("page.tile", text), {}, {}, {})
    found = check_sources(sources, Options(deny=deny)).diagnostics
    return {diagnostic.code for diagnostic in found}


@pytest.mark.parametrize("code", sorted(set(codes()) - GIVEN_BY_BUILD - set(GIVEN_BY_RUN)))
def test_the_wrong_program_gives_exactly_the_code(code: str) -> None:
    assert codes_given(page_of(code).wrong, DENIED.get(code, ())) == {code}


def codes_found(text: str, extent: int) -> set[str]:
    """What a sanitized launch of the page's kernel gives; of its tensors only inputs are given."""
    sources = Sources(SourceFile("page.tile", text), {}, {}, {})
    [name] = re.findall(r"fn (\w+)<N: Dim>", text)
    array = written_npy(np.ones(extent, np.float32))
    given = {"x": array} if "x: &Tensor" in text else {"z": array}
    executed = execute(sources, Options(), name, given, (), sanitize=True)
    assert executed.broken is None
    return {found.code for found in executed.findings}


@pytest.mark.parametrize("code", GIVEN_BY_RUN)
def test_a_sanitized_run_of_the_wrong_program_gives_exactly_the_code(code: str) -> None:
    assert codes_found(page_of(code).wrong, GIVEN_BY_RUN[code][0]) == {code}
    assert codes_found(page_of(code).right, GIVEN_BY_RUN[code][1]) == set()


def test_registers_that_spill_are_told_of_once_an_instance() -> None:
    def built(text: str) -> list[Diagnostic]:
        sources = Sources(SourceFile("page.tile", text), {}, {"page.tile": "0" * 64}, {})
        compiled = compile_sources(sources, Options())
        assert compiled.outputs
        return list(compiled.diagnostics)

    [found] = built(page_of("W0701").wrong)
    assert (found.code, found.severity) == ("W0701", Severity.WARNING)
    assert re.search(r"`centred` spills .* stores \d+ bytes and loads \d+$", found.message)
    assert built(page_of("W0701").right) == []


@pytest.mark.parametrize("code", codes())
def test_the_right_program_is_accepted(code: str) -> None:
    assert codes_given(page_of(code).right, DENIED.get(code, ())) == set()


def test_every_code_of_the_families_has_its_page() -> None:
    expected = [f"{family}{i:02}" for family, last in FAMILIES.items() for i in range(1, last + 1)]
    assert set(expected) <= set(codes())
    assert {"E0503", "E0701"} <= set(codes())


def test_there_is_no_page_of_a_code_that_is_none() -> None:
    assert page("E9999") is None
    assert page("../E0101") is None
