"""Bank conflicts of the kernel library, counted on paper, and what the report says of them.

The count is independent of layouts and plans: `shared_traffic` executes the addresses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lowered import ALIGNED, program
from shared_traffic import Wavefronts, wavefronts_by_place

from tilec.codegen.record import Recorder

KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.tile"))

# Those of one warp in all instances together, where there are any. `column_sum`, after its loop,
# sums what warps have of each column: that lies side by side, so that the columns of a thread lie
# far apart.
CONFLICTS: dict[str, int] = {"column_sum": 1740}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_the_report_admits_every_bank_conflict(path: Path) -> None:
    conflicts = 0
    with program(path.read_text(encoding="utf-8")) as compiled:
        for symbol, instance in compiled.instances.items():
            point, code = compiled.lowered(symbol, ALIGNED)
            elements = {p.name: p.element for p in instance.description.parameters}
            report = Recorder(elements).report(point.notes, point.shared)
            reported: dict[tuple[int, int], Wavefronts] = {}
            for one in report.movements:
                if one.stores:
                    at = one.line, one.column
                    reported[at] = reported.get(at, Wavefronts()) + Wavefronts(
                        one.stores + one.loads, one.wavefronts, one.least_wavefronts
                    )
            function = code.body.owner
            counted = wavefronts_by_place(function, point.threads)
            found = {(place.line, place.column): count for place, count in counted.items()}
            assert found == reported, symbol
            conflicts += report.bank_conflicts
    assert conflicts == CONFLICTS.get(path.stem, 0)
