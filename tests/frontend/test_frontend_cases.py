"""The programs of `tests/cases/reject` that the front end and the ownership checks refuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from front_end import checked

from tilec.checks.check_borrows import check_borrows
from tilec.checks.check_grids import check_grids
from tilec.checks.check_moves import check_moves
from tilec.checks.check_writes import check_writes
from tilec.frontend.emit import emit
from tilec.ir.dialect import context
from tilec.transforms.inline_helpers import inline_helpers

REJECTED = Path(__file__).parent.parent / "cases" / "reject"
EXPECTED = re.compile(r"(E\d{4}) line (\d+)")
OURS = ("E01", "E02", "E03", "E04", "E0503", "E0701")


def expected(path: Path) -> list[tuple[str, int]]:
    header = path.read_text(encoding="utf-8").splitlines()[0]
    return [(code, int(line)) for code, line in EXPECTED.findall(header)]


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(REJECTED.glob("*.tile")) if expected(p)[0][0].startswith(OURS)],
    ids=lambda path: path.stem,
)
def test_the_program_gives_its_code_at_its_line(path: Path) -> None:
    instances, found, program = checked(path.read_text(encoding="utf-8"))
    if not found:
        with context():
            module = emit(instances, program.sources)
            for check in (check_writes, check_moves, check_borrows):
                found += check(module, program.sources)
            inline_helpers(module)
            found += check_grids(module, program.sources) if not found else ()
    lines = [program.sources[d.span.file].position(d.span.start)[0] + 1 for d in found]
    assert [(d.code, line) for d, line in zip(found, lines, strict=True)] == expected(path)
