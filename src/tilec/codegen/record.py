"""The report of a build, from what lowering noted (`tilec.ops.notes`).

One `Recorder` serves all variants of a kernel: layouts get their numbers from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.lowering_report import (
    HeldLayout,
    LoweringReport,
    Movement,
    Product,
    SharedBuffer,
    TileAccess,
)
from tilec.artifact.schedule_report import ScheduleReport
from tilec.layout import Layout
from tilec.layout.costs import least_sectors, sectors
from tilec.ops.notes import Accessed, Moved, Multiplied, Note, Place, SharedMemoryUse

# What types of the IR are called in a program; those of any sign as signed ones.
_NAMES = {"i1": "bool", "index": "usize", "f8E4M3FN": "f8e4m3", "f8E5M2": "f8e5m2"}


class Recorder:
    """Makes reports; `elements` are those of the tensors, by parameter."""

    def __init__(self, elements: Mapping[str, str]) -> None:
        self._elements = elements
        self._numbers: dict[Layout, int] = {}

    @property
    def layouts(self) -> tuple[HeldLayout, ...]:
        """All that reports named, by number."""
        return tuple(
            HeldLayout(**{name: tuple(numbers) for name, numbers in layout.to_dict().items()})
            for layout in self._numbers
        )

    def report(
        self,
        notes: Iterable[tuple[Place, Note]],
        shared: SharedMemoryUse,
        schedule: ScheduleReport,
    ) -> LoweringReport:
        accesses: list[TileAccess] = []
        movements: list[Movement] = []
        products: list[Product] = []
        for place, note in notes:
            match note:
                case Accessed():
                    accesses.append(self._access(_at(place), note))
                case Moved():
                    movements.append(self._movement(_at(place), note))
                case Multiplied():
                    products.append(self._product(_at(place), note))
        buffers = (SharedBuffer(*_at(b.place), b.offset, b.size) for b in shared.buffers)
        return LoweringReport(
            tuple(accesses), tuple(movements), tuple(products), tuple(buffers),
            shared.block_barriers, shared.warp_barriers, schedule,
        )  # fmt: skip

    def _access(self, at: tuple[str, int, int], note: Accessed) -> TileAccess:
        element = self._elements[note.parameter]
        size = note.element_bytes
        assert size == ELEMENT_BYTES[element], f"{note} does not access {element}"
        return TileAccess(
            *at, note.kind, note.parameter, element, self._number(note.layout), note.width * size,
            note.instructions, note.is_masked,
            sectors(note.layout, note.contiguous, size, note.width),
            least_sectors(note.layout, size, note.width),
        )  # fmt: skip

    def _movement(self, at: tuple[str, int, int], note: Moved) -> Movement:
        took = note.traffic
        return Movement(
            *at, note.kind, tuple(_NAMES.get(e, e) for e in note.elements),
            self._number(note.source), self._number(note.target),
            took.folds, took.shuffles, took.selects, took.stores, took.loads, took.shared_bytes,
            took.wavefronts, took.least_wavefronts,
        )  # fmt: skip

    def _product(self, at: tuple[str, int, int], note: Multiplied) -> Product:
        left, right, sums = map(self._number, (note.left, note.right, note.sums))
        return Product(*at, note.instruction, note.count, left, right, sums)

    def _number(self, layout: Layout) -> int:
        return self._numbers.setdefault(layout, len(self._numbers))


def _at(place: Place) -> tuple[str, int, int]:
    return Path(place.file).name, place.line, place.column
