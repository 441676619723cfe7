"""Which operations are tried on which types, shapes and layouts, and in which kernel.

Every operation meets every element type that it takes; shapes, the ways by which operands come
(`forms`), and numbers of warps take turns, so that each operation meets several of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tests.programs.generate import combining, elementwise, shapes
from tests.programs.generate.use import IN_MEMORY, Shape, Use
from tilec.layout import LANES

# Ranks 0 to 4, extents 1 to 2048, powers of two and multiples of 16.
SMALL: tuple[Shape, ...] = (
    (64,), (16, 48), (2, 1, 80), (1, 128), (48,), (4, 8, 16), (96,), (2, 2, 4, 16), (32, 16), (1,),
    (80, 4), (1, 1, 16, 8), (128,), (16, 1), (1, 64, 1), (48, 8),
)  # fmt: skip
LARGE: tuple[Shape, ...] = (
    (1024,), (48, 64), (16, 8, 16), (2, 1, 16, 32), (96, 16), (1, 128), (64, 1), (2048,),
    (4, 1, 80), (32, 80), (64, 64), (2, 16, 48), (1, 1, 1, 16), (16,), (128, 16), (16, 2, 2, 16),
    (1,), (2, 1024), (80,), (1, 64, 1),
)  # fmt: skip
FORMS = ("plain", "turned", "viewed", "reduced", "doubled")
WARPS = (4, 1, 16, 2)
OUTPUTS = 8  # of a kernel, at most


@dataclass(frozen=True)
class Trial:
    """One kernel: these uses on tiles of one shape."""

    name: str
    shape: Shape
    form: str
    warps: int
    uses: tuple[Use, ...]


Uses = Callable[[str, Shape], Iterator[Use]]


def trials() -> dict[str, list[Trial]]:
    """All kernels, by file: one family of operations on one element type each."""
    found = {}
    for number, element in enumerate(IN_MEMORY):
        found[f"elementwise_{element}"] = _elementwise(element, number)
        found[f"shapes_{element}"] = _on_shapes("moved", shapes.rearranging, element, number, 4)
        found[f"reductions_{element}"] = _on_shapes(
            "folded", combining.reductions, element, number, 4
        )
        found[f"scans_{element}"] = _on_shapes("running", combining.scans, element, number, 3)
        found[f"shapes_{element}"] += _on_shapes("made", shapes.made, element, number, 1)
    return found


def _elementwise(element: str, number: int) -> list[Trial]:
    """Every use once on tiles and once on scalars: threads do the same whatever the shape is."""
    found = [
        Trial(f"scalars_{place}", (), "plain", WARPS[place % len(WARPS)], chunk)
        for place, chunk in enumerate(_chunks([*elementwise.uses(element, ())], 3 * OUTPUTS))
    ]
    for place, _ in enumerate(_chunks([*elementwise.uses(element, (16,))])):
        at = number + place
        shape = SMALL[at % len(SMALL)]
        chunk = _chunks([*elementwise.uses(element, shape)])[place]
        found.append(_trial("each", at, shape, chunk))
    return found


def _on_shapes(name: str, uses: Uses, element: str, number: int, times: int) -> list[Trial]:
    found = []
    for turn in range(times):
        # 7 and the number of shapes have no common factor: neighbours in the list take turns.
        at = number * times + turn
        shape = () if name == "moved" and turn == times - 1 else LARGE[7 * at % len(LARGE)]
        for chunk in _chunks([*uses(element, shape)]):
            found.append(_trial(name, at, shape, chunk))
    return [
        Trial(f"{one.name}_{place}", one.shape, one.form, one.warps, one.uses)
        for place, one in enumerate(found)
    ]


def _trial(name: str, at: int, shape: Shape, uses: tuple[Use, ...]) -> Trial:
    form = FORMS[at % len(FORMS)] if shape else "plain"
    # At most 16 elements a thread: more is more code of the same kind.
    warps = max(WARPS[at // 2 % len(WARPS)], _power_of_two(prod(shape) // (16 * LANES)))
    return Trial(f"{name}_{at}", shape, form, warps, uses)


def _chunks(uses: Sequence[Use], most: int = OUTPUTS) -> list[tuple[Use, ...]]:
    """Of one tolerance each, in order."""
    found: list[list[Use]] = []
    for ulps in sorted({use.ulps for use in uses}):
        same = [use for use in uses if use.ulps == ulps]
        found += [same[start : start + most] for start in range(0, len(same), most)]
    return [tuple(chunk) for chunk in found]


def _power_of_two(number: int) -> int:
    """The largest that is not above the number; 1 for 0."""
    return 1 << max(1, number).bit_length() - 1
