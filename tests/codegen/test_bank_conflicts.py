"""Bank conflicts of the kernel library, counted on paper, and what the report says of them.

The count is independent of layouts and plans: `shared_traffic` executes the addresses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lowered import ALIGNED, program
from shared_traffic import Wavefronts, wavefronts_by_place

from tests.kernels.twins import some_tiles
from tilec.artifact.lowering_report import Movement
from tilec.codegen.record import Recorder

KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.tile"))


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_there_are_no_bank_conflicts_but_of_wide_rows_and_the_report_says_so(path: Path) -> None:
    with program(some_tiles(path.read_text(encoding="utf-8"), 3)) as compiled:
        for symbol, instance in compiled.instances.items():
            point, code = compiled.lowered(symbol, ALIGNED)
            elements = {p.name: p.element for p in instance.description.parameters}
            report = Recorder(elements).report(point.notes, point.shared, point.schedule)
            reported: dict[tuple[int, int], Wavefronts] = {}
            for one in report.movements:
                if one.stores or one.kind in ("slot", "box"):
                    at = one.line, one.column
                    reported[at] = reported.get(at, Wavefronts()) + Wavefronts(
                        one.stores + one.loads, one.wavefronts, one.least_wavefronts
                    )
            function = code.body.owner
            counted = wavefronts_by_place(function, point.threads)
            found = {(place.line, place.column): count for place, count in counted.items()}
            assert found == reported, symbol
            for one in report.movements:
                assert one.wavefronts <= _most(one), (symbol, one)


def _most(one: Movement) -> int:
    """Two rows of 32-bit elements meet where copies want them swizzled and lanes have 8 bytes of a
    row: in boxes of sums, and in slots that threads read."""
    is_wide = one.kind in ("box", "slot") and one.elements == ("f32",)
    return one.least_wavefronts * (2 if is_wide else 1)
