"""What a kernel of the library must compute: inputs, what is exact, and how far results may be off.

Tolerances are bounds, with u = 2^-24 the unit roundoff of f32 and v that of the result's type:
|result - exact| <= e + v (|exact| + e) + the smallest number of the type / 2, where e bounds the
error of the value in f32 before it is rounded to the result. e is derived at each kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tests.gpu.element_bits import rounded

U = 2.0**-24
UNIT_ROUNDOFF = {"f32": U, "f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4}
_SMALLEST = {"f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133, "f8e4m3": 2.0**-9}

# Additions behind one another in a sum of a row: language.md leaves their order to the build, which
# adds in a thread first, then over lanes and warps.
SUM_DEPTH = 64


@dataclass(frozen=True)
class Argument:
    """A tensor that is given. `values` are numbers of the element type, as float64."""

    values: np.ndarray
    element: str


@dataclass(frozen=True)
class Output:
    """A tensor that a kernel writes; `given` is what it holds before, where that is read."""

    shape: tuple[int, ...]
    element: str
    given: np.ndarray | None = None


@dataclass(frozen=True)
class Result:
    """What an output must hold. `tolerance` is zero where that is the nearest number by IEEE."""

    exact: np.ndarray
    tolerance: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Problem:
    """A launch and its right results. `arguments` are in the order of the kernel's parameters, the
    outputs first; `results` are by output, in that order too."""

    symbol: str
    extents: Mapping[str, int]
    arguments: Mapping[str, Argument | Output | float]
    results: Mapping[str, Result]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.results)

    def __str__(self) -> str:
        return f"{self.symbol} at {', '.join(f'{n} = {v}' for n, v in self.extents.items())}"

    def fault_of(self, found: Mapping[str, np.ndarray]) -> str | None:
        """The first element of the outputs that is wrong, in words; None if all are right."""
        faults = (self._fault_of(name, found[name]) for name in self.outputs)
        return next(filter(None, faults), None)

    def _fault_of(self, name: str, found: np.ndarray) -> str | None:
        exact, tolerance = self.results[name].exact, self.results[name].tolerance
        with np.errstate(invalid="ignore"):
            right = np.abs(found - exact) <= tolerance
            right |= (found == exact) | (np.isnan(found) & np.isnan(exact))
        # Adding and moving keep the sign of zero.
        zeros = (exact == 0) & (tolerance == 0)
        right &= ~zeros | (np.signbit(found) == np.signbit(exact))
        if right.all():
            return None
        wrong = np.argwhere(~right)
        where = tuple(map(int, wrong[0]))
        return (
            f"{self}: {len(wrong)} of {found.size} elements of `{name}` are wrong, first "
            f"{list(where)}: expected {exact[where]!r}, got {found[where]!r} "
            f"(allowed: {tolerance[where]:.3g})"
        )


def toleranced(exact: np.ndarray, error: np.ndarray | float | None, element: str) -> np.ndarray:
    if error is None:
        return np.zeros(exact.shape)
    if element not in UNIT_ROUNDOFF:
        return np.broadcast_to(np.asarray(error), exact.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = np.abs(exact) + error
        allowed = error + UNIT_ROUNDOFF[element] * magnitude + _SMALLEST[element] / 2
    return np.broadcast_to(np.asarray(allowed), exact.shape)


# ---- inputs --------------------------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...], element: str, scale: float = 1.0):
    return Argument(rounded(rng.normal(scale=scale, size=shape), element), element)


def wide(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> Argument:
    """Numbers of all magnitudes of the type, zeros of both signs, infinities and NaN."""
    exponents = {"f16": (-24, 15), "bf16": (-126, 127), "f32": (-140, 127)}[element]
    values = rng.choice([-1.0, 1.0], shape) * np.exp2(rng.uniform(*exponents, shape))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
    return Argument(
        rounded(np.where(rng.random(shape) < 0.1, rng.choice(special, shape), values), element),
        element,
    )


# ---- descriptions --------------------------------------------------------------------------------

# The arguments, what is exact, and e, which is None where the result is the nearest number. Kernels
# with several outputs give the last two by output.
Error = "np.ndarray | float | None"
Built = tuple[
    dict[str, "Argument | Output | float"],
    "np.ndarray | Mapping[str, np.ndarray]",
    "Error | Mapping[str, Error]",
]
Extents = Mapping[str, int]


@dataclass(frozen=True)
class Kernel:
    build: Callable[[str, Extents, np.random.Generator], Built]
    shapes: Callable[[int], list[Extents]]
    large: tuple[Extents, ...]  # for machines with a GPU
    instances: tuple[tuple[str, str, int], ...]  # suffix of the symbol, element, size of a tile


def each_type(suffix: str, block: int) -> tuple[tuple[str, str, int], ...]:
    return tuple((f"{e}_{suffix}", e, block) for e in ("f32", "f16", "bf16"))
