"""Mathematical functions on the GPU within the accuracy that they state (docs/ops.md), in steps
from the number nearest to the exact result: f32 against float64, f64 against the extended precision
of x86, f16 and bf16 at all their numbers."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
from cubins import CUBINS, FOLDER
from distance import distance
from element_bits import from_bits, to_bits
from host_driver import DRY_RUN

import tilec.runtime as rt

COUNT = 2**12 if DRY_RUN else 2**20
ELEMENTS = ("f32", "f64", "f16", "bf16")
WIDTH = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16}
MANTISSA = {"f32": 23, "f64": 52, "f16": 10, "bf16": 7}

# f16 and bf16 are computed in f32 and rounded once more: the nearest number or its neighbour.
NARROW_STEPS = 1


def stated():
    path = CUBINS / FOLDER / "stated-accuracy.json"
    return json.loads(path.read_text()) if path.exists() else {}


def half_away(x):
    whole = np.trunc(x)
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0), x)


def erf(x):
    return np.array([math.erf(v) for v in x.astype(np.float64)]).astype(x.dtype)


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


# What NumPy calls otherwise, or lacks.
REFERENCES = {
    "exp_m1": np.expm1, "ln": np.log, "ln_1p": np.log1p, "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "powf": np.power, "erf": erf, "round": half_away, "recip": lambda x: 1 / x,
    "sigmoid": sigmoid,
}  # fmt: skip


def reference(name, inputs, element):
    """The bits of the numbers nearest to the exact results, and how many steps these may be off."""
    # What is rounded correctly is so in float64 too, and must not be rounded twice.
    is_longer = element == "f64" and stated()[name]["f64"]
    wide = np.longdouble if is_longer else np.float64
    with np.errstate(all="ignore"):
        exact = REFERENCES.get(name, getattr(np, name, None))(*(x.astype(wide) for x in inputs))
        nearest = exact.astype(np.float64)
        bits = to_bits_once(nearest, element)
    exactly = element != "f64" or (name != "erf" and np.finfo(np.longdouble).nmant > 60)
    return bits, 0 if exactly else 1


def to_bits_once(values, element):
    """As `to_bits`, but in one rounding also to bf16, which is reached through f32: rounded to odd
    there (Boldo and Melquiond, "When double rounding is odd")."""
    if element != "bf16":
        return to_bits(values, element)
    near = values.astype(np.float32)
    bits = near.view(np.uint32)
    inexact = np.isfinite(values) & (near.astype(np.float64) != values)
    up = inexact & (np.abs(near.astype(np.float64)) > np.abs(values))
    odd = np.where(inexact, (bits - up) | np.uint32(1), bits).astype(np.uint32)
    return to_bits(odd.view(np.float32), element)


# ---- inputs --------------------------------------------------------------------------------------


@cache
def numbers(element, seed=0):
    """Bits of many numbers: all of a narrow type; of others random ones of every magnitude,
    ordinary ones, and what is near to edges."""
    width = WIDTH[element]
    unsigned = np.dtype(f"u{width // 8}")
    if width == 16:
        return np.arange(2**16, dtype=np.uint64).astype(unsigned)
    rng = np.random.default_rng(seed)
    count = COUNT // 4 if element == "f64" else COUNT
    random = rng.integers(0, 2**width - 1, count, np.uint64, endpoint=True).astype(unsigned)
    ordinary = to_bits(rng.normal(scale=4, size=count // 2), element)
    scales = 2.0 ** rng.integers(-30, 0, count // 8)
    near_one = to_bits(1 + rng.normal(size=count // 8) * scales, element)
    turns = to_bits(np.arange(1, count // 16) * (np.pi / 2), element)
    magnitudes = edges(element)
    return np.concatenate([random, ordinary, near_one, turns, turns + 1, turns - 1, magnitudes])


def edges(element):
    """The first, last and some middle numbers of every binade, of both signs; zero, infinity,
    NaN."""
    width, mantissa = WIDTH[element], MANTISSA[element]
    unsigned = np.dtype(f"u{width // 8}")
    exponents = np.arange(2 ** (width - 1 - mantissa), dtype=np.uint64) << np.uint64(mantissa)
    last = 2**mantissa - 1
    offsets = np.array([0, 1, 2, last // 2, last // 2 + 1, last - 1, last], np.uint64)
    positive = (exponents[:, None] | offsets).ravel()
    return np.concatenate([positive, positive | np.uint64(1 << (width - 1))]).astype(unsigned)


def inputs_of(element, count):
    """The bits of one or two arguments."""
    first = numbers(element)
    if count == 1:
        return [first]
    rng = np.random.default_rng(1)
    special = to_bits(
        np.array([0.0, -0.0, 1, -1, 0.5, 2, 3, -2, -3, 2.5, np.inf, -np.inf, np.nan, 1e-30]),
        element,
    )
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    tame = to_bits(np.abs(rng.normal(scale=3, size=(2, len(first)))), element)
    shuffled = rng.permutation(first)
    return [
        np.concatenate([first, tame[0], pairs[0]]),
        np.concatenate([shuffled, tame[1], pairs[1]]),
    ]


@cache
def problem(name, element, count):
    """The inputs of a function, and what is nearest to its exact results; one is kept for all
    targets."""
    bits = inputs_of(element, count)
    return bits, *reference(name, [from_bits(b, element) for b in bits], element)


# ---- the test ------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", stated())
def test_within_the_stated_accuracy(load, name, element):
    entry = stated()[name]
    bits, expected, slack = problem(name, element, entry["count"])
    y = rt.empty(expected.shape, element)
    tensors = [rt.to_device(b, element) for b in bits]
    load(f"{FOLDER}/accuracy")[f"of_{name}__{element}"](y, *tensors)
    results = y.bits()
    ulp = entry.get(element, entry["f32"] and NARROW_STEPS)
    allowed = ulp + (slack if ulp else 0)
    steps = distance(results, expected, element)
    worst = int(np.argmax(steps))
    off = np.count_nonzero(steps)
    share = f"{off / steps.size:.2%} off"
    print(f"{name} of {element}: at most {steps[worst]:g} of {allowed} steps, {share}")
    given = ", ".join(f"{from_bits(b[worst : worst + 1], element)[0]!r}" for b in bits)
    assert steps[worst] <= allowed, (
        f"{name}({given}) of {element}: expected {_number(expected, worst, element)}, got "
        f"{_number(results, worst, element)}: {steps[worst]:g} steps away, stated {allowed}; "
        f"{np.count_nonzero(steps > allowed)} of {steps.size} inputs are worse than stated"
    )


def _number(bits, index, element):
    return f"{from_bits(bits[index : index + 1], element)[0]!r} ({int(bits[index]):#x})"
