"""What every kernel of `kernels/` must compute: inputs, float64 references, tolerances, shapes.

NumPy alone, so that it also runs where the compiler is not. A *problem* is one kernel at one
element type and one set of extents; `problems(symbol)` gives those of an instance.

`problem.py` says what tolerances are; products of matrices have a file of their own, `products.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tests.gpu.element_bits import rounded
from tests.kernels.problem import (
    SUM_DEPTH,
    Argument,
    Built,
    Extents,
    Kernel,
    Output,
    Problem,
    Result,
    U,
    each_type,
    normal,
    toleranced,
    wide,
)
from tests.kernels.products import KERNELS as PRODUCTS

# ---- the kernels ---------------------------------------------------------------------------------


def _add(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: one IEEE addition. Float64 has more than twice the digits of each type and two more,
    so that rounding twice is rounding once (Figueroa, "When is double rounding innocuous?")."""
    shape = (n["N"],)
    make = wide if n["N"] % 2 else normal
    x, y = make(rng, shape, element), make(rng, shape, element)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = rounded(x.values + y.values, element)
    return {"z": Output(shape, element), "x": x, "y": y}, exact, None


def _axpy(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: one rounding of a fused a·x + y in f32. Float64 takes a·x exactly."""
    shape = (n["N"],)
    a = float(np.float32(rng.normal()))
    x, y = normal(rng, shape, element, 30.0), normal(rng, shape, element)
    exact = a * x.values + y.values
    return {"y": Output(shape, element, y.values), "x": x, "a": a}, exact, U * np.abs(exact)


def _gelu(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: x / √2 is off by 2u of itself, which moves the error function by at most
    2u · max z·erf'(z) = 2u · 0.49; it has 2 ulp of its own (4u below 1), adding one another u of
    at most 2: half of all that, times x, and the product's own rounding."""
    shape = (n["N"],)
    x = normal(rng, shape, element, 3.0)
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x.values.ravel()]).reshape(shape)
    exact = x.values * cdf
    error = 3.5 * U * np.abs(x.values) + U * np.abs(exact)
    return {"y": Output(shape, element), "x": x}, exact, error


def _silu_mul(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, of the result: e^-|x| is a power of 2, whose exponent is off by 2u of itself, which is
    2u|x| of the power; that has 2 ulp (4u), the sum 1u, the quotient 2 ulp (4u), and each product
    1u. Powers and quotients that are no normal numbers may be 0: 2^-126, times the factors."""
    shape = (n["N"],)
    gate, up = normal(rng, shape, element, 6.0), normal(rng, shape, element)
    g = gate.values
    small = np.exp(-np.abs(g))
    exact = g * np.where(g < 0, small, 1.0) / (1 + small) * up.values
    error = (11 + 2 * np.abs(g)) * U * np.abs(exact)
    error += 2.0**-126 * (1 + np.abs(up.values) * (1 + np.abs(g)))
    return {"y": Output(shape, element), "gate": gate, "up": up}, exact, error


def _softmax(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, of the result: x - max, its product with log2 e, and that number round, which the power
    turns into 3u |x - max| of itself; it has 2 ulp (4u), the sum u for each addition behind another
    and the mean of its terms' errors, the quotient 2 ulp (4u). What is no normal number may be 0:
    2^-126."""
    shape = (n["M"], n["N"])
    x = normal(rng, shape, element, 4.0)
    values = x.values.copy()
    if shape[1] > 4:
        values[::2, 1] = -np.inf
        values[1::3, 2] = rounded(200.0, element)
    distance = values - values.max(axis=1, keepdims=True, initial=-np.inf)
    e = np.exp(distance)
    total = e.sum(axis=1, keepdims=True)
    exact = e / total
    finite = np.where(np.isfinite(distance), np.abs(distance), 0)
    mean = (e * finite).sum(axis=1, keepdims=True) / total
    error = (3 * (finite + mean) + SUM_DEPTH + 12) * U * exact + 2.0**-126
    return {"y": Output(shape, element), "x": Argument(values, element)}, exact, error


def _layernorm(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: with d = SUM_DEPTH + 4 (a quotient has 2 ulp), the mean is off by m = d·u·mean|x|, each
    centred value by m + u|c|; the variance, a sum of squares, by (d + 3)u of itself and m² (errors
    of the mean cancel in first order: the centred values sum to 0); its root by half of that,
    rsqrt by 2 ulp (4u), three more roundings."""
    shape = (n["M"], n["N"])
    x, weight, bias = (
        Argument(rounded(rng.normal(1.0, 2.0, shape), element), element),
        normal(rng, shape[1:], element),
        normal(rng, shape[1:], element),
    )
    eps = float(np.float32(1e-5))
    depth = SUM_DEPTH + 4
    count = max(shape[1], 1)
    mean = x.values.sum(axis=1, keepdims=True) / count
    off = depth * U * np.abs(x.values).sum(axis=1, keepdims=True) / count
    centred = x.values - mean
    variance = (centred**2).sum(axis=1, keepdims=True) / count + eps
    unit = centred / np.sqrt(variance)
    exact = unit * weight.values + bias.values
    of_variance = (depth + 3) * U + (off**2 + 2 * U * off) / variance
    relative = of_variance / 2 + 9 * U
    error = np.abs(weight.values) * (off / np.sqrt(variance) + relative * np.abs(unit))
    error = error + 2 * U * (np.abs(exact) + np.abs(bias.values))
    arguments = {"y": Output(shape, element), "x": x, "weight": weight, "bias": bias, "eps": eps}
    return arguments, exact, error


def _rmsnorm(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, of the result: the mean square (SUM_DEPTH + 6)u, the quotient being off by 2 ulp (4u), its
    root half of that, rsqrt 2 ulp, two products."""
    shape = (n["M"], n["N"])
    x, weight = normal(rng, shape, element, 2.0), normal(rng, shape[1:], element)
    eps = float(np.float32(1e-6))
    mean = (x.values**2).sum(axis=1, keepdims=True) / max(shape[1], 1)
    exact = x.values / np.sqrt(mean + eps) * weight.values
    error = ((SUM_DEPTH + 6) / 2 + 7) * U * np.abs(exact)
    arguments = {"y": Output(shape, element), "x": x, "weight": weight, "eps": eps}
    return arguments, exact, error


# ---- rows of any length: as above, plus what a column of the tiles adds up by itself -------------


def _tiles(length: int) -> int:
    """Additions behind one another in a column of tiles, which are 2048 wide or wider."""
    return -(-length // 2048)


def _softmax_long(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, of the result, with k tiles: exponents are differences to the largest so far, and those of
    the factors that bring a sum to a larger one add up to |x - max|, so that rounding them costs
    3u |x - max| as it does in one pass. Up to k + 1 such factors and their products cost 5u each,
    and k + SUM_DEPTH additions u. The reciprocal 4u, the element's power 4u and its product u. What
    is no normal number may be 0: 2^-126 for the power and as much for the product."""
    arguments, exact, _ = _softmax(element, n, rng)
    x = arguments["x"]
    assert isinstance(x, Argument)
    distance = x.values.max(axis=1, keepdims=True, initial=-np.inf) - x.values
    finite = np.where(np.isfinite(distance), distance, 0)
    mean = (exact * finite).sum(axis=1, keepdims=True)
    steps = 6 * _tiles(n["N"]) + SUM_DEPTH + 14
    return arguments, exact, (3 * (finite + mean) + steps) * U * exact + 2.0**-125


def _layernorm_long(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, with k tiles and a = max|x| of the row. The mean of a column is off by (k / 2 + 4)ua: in
    its recurrence a turn's roundings, u|mean| and 4u|x - mean| / turn, are averaged with those
    before. Adding up the columns makes that m = (SUM_DEPTH + k / 2 + 8)ua. The variance V is a sum
    of products of two differences, each off by 2m and u: (SUM_DEPTH + k + 6)u of itself, and
    8m·√V + 4m² (the differences to the mean so far are below √2 times those to the last). The rest
    as in `_layernorm`."""
    shape = (n["M"], n["N"])
    level = np.array([1.0, 30.0, 1000.0])[np.arange(shape[0]) % 3, None]
    x = Argument(rounded(rng.normal(level, 2.0, shape), element), element)
    weight, bias = normal(rng, shape[1:], element), normal(rng, shape[1:], element)
    eps = float(np.float32(1e-5))
    count, tiles = max(shape[1], 1), _tiles(shape[1])
    off = (SUM_DEPTH + tiles / 2 + 8) * U * np.abs(x.values).max(axis=1, keepdims=True, initial=0)
    centred = x.values - x.values.sum(axis=1, keepdims=True) / count
    spread = (centred**2).sum(axis=1, keepdims=True) / count
    variance = spread + eps
    unit = centred / np.sqrt(variance)
    exact = unit * weight.values + bias.values
    of_variance = (SUM_DEPTH + tiles + 6) * U + (8 * off * np.sqrt(spread) + 4 * off**2) / variance
    relative = of_variance / 2 + 9 * U
    error = np.abs(weight.values) * (off / np.sqrt(variance) + relative * np.abs(unit))
    error = error + 2 * U * (np.abs(exact) + np.abs(bias.values))
    arguments = {"y": Output(shape, element), "x": x, "weight": weight, "bias": bias, "eps": eps}
    return arguments, exact, error


def _rmsnorm_long(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, of the result: as `_rmsnorm`, with an addition more for each tile."""
    arguments, exact, _ = _rmsnorm(element, n, rng)
    steps = SUM_DEPTH + _tiles(n["N"]) + 3
    return arguments, exact, (steps / 2 + 7) * U * np.abs(exact)


def _row_sum(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: up to 2^17 multiples of 1/16 below 8 add without rounding in f32, in any order; the
    result is rounded once."""
    shape = (n["M"], n["N"])
    assert shape[1] <= 2**17, "more would round in f32"
    x = Argument(rng.integers(-127, 128, shape) / 16.0, element)
    exact = rounded(x.values.sum(axis=1), element)
    return {"y": Output(shape[:1], element), "x": x}, exact, None


def _sum_all(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact, as `_row_sum`."""
    assert n["N"] <= 2**17, "more would round in f32"
    x = Argument(rng.integers(-127, 128, n["N"]) / 16.0, element)
    _, _, block = _BLOCKS_OF_SUM_ALL[element]
    tiles = np.zeros(-(-n["N"] // block) * block)
    tiles[: n["N"]] = x.values
    sums = tiles.reshape(-1, block).sum(axis=1)
    exact = np.array([sums[p :: n["P"]].sum() for p in range(n["P"])])
    return {"y": Output(exact.shape, "f32"), "x": x}, exact, None


def _column_sum(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact, as `_row_sum`."""
    assert n["M"] <= 2**17, "more would round in f32"
    x = Argument(rng.integers(-127, 128, (n["M"], n["N"])) / 16.0, element)
    block_of_row = np.arange(n["M"]) // (128 if element == "f32" else 16)  # of the instances
    chosen = [block_of_row % n["P"] == p for p in range(n["P"])]
    exact = np.array([x.values[rows].sum(axis=0) for rows in chosen]).reshape(n["P"], n["N"])
    return {"y": Output(exact.shape, "f32"), "x": x}, exact, None


def _bias_gelu(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_gelu` of t = x + bias, which rounds: u|t|, that gelu stretches by 1.13 at most."""
    shape = (n["M"], n["N"])
    x, bias = normal(rng, shape, element, 3.0), normal(rng, shape[1:], element)
    t = x.values + bias.values
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in t.ravel()]).reshape(shape)
    exact = t * cdf
    error = 4.7 * U * np.abs(t) + U * np.abs(exact)
    return {"y": Output(shape, element), "x": x, "bias": bias}, exact, error


def _add_rmsnorm(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """The sum is exact, as `_add`; e of the rest as `_rmsnorm`, of the sum as it is rounded."""
    shape = (n["M"], n["N"])
    x, y = normal(rng, shape, element, 2.0), normal(rng, shape, element)
    weight = normal(rng, shape[1:], element)
    eps = float(np.float32(1e-6))
    added = rounded(x.values + y.values, element)
    mean = (added**2).sum(axis=1, keepdims=True) / max(shape[1], 1)
    exact = added / np.sqrt(mean + eps) * weight.values
    steps = SUM_DEPTH + _tiles(shape[1]) + 6
    error = (steps / 2 + 7) * U * np.abs(exact)
    outputs = {"z": Output(shape, element), "sum": Output(shape, element)}
    arguments = {**outputs, "x": x, "y": y, "weight": weight, "eps": eps}
    return arguments, {"z": exact, "sum": added}, {"z": error, "sum": None}


def _quantise(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """The largest is exact, so that the scale rounds once. The quotient and the product round once
    each, by 2u of at most 127: near the middle of two integers either is right."""
    shape = (n["M"], n["N"])
    x = normal(rng, shape, element, 3.0)
    x.values[1::4] = 0
    largest = np.abs(x.values).max(axis=1, keepdims=True)
    steps = np.where(largest > 0, x.values / largest * 127, 0)
    from_middle = np.abs(np.abs(steps - np.floor(steps)) - 0.5)
    outputs = {"q": Output(shape, "i8"), "scale": Output(shape[:1], "f32")}
    scale = largest[:, 0] / 127
    exact = {"q": np.rint(steps) + 0.0, "scale": scale}
    return {**outputs, "x": x}, exact, {"q": from_middle <= 255 * U, "scale": U * scale}


def _quantise_f8(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """The largest is exact, so that the scale rounds once; e: the quotient and the product."""
    shape = (n["M"], n["N"])
    x = normal(rng, shape, element, 3.0)
    x.values[1::4] = 0
    largest = np.abs(x.values).max(axis=1, keepdims=True)
    scaled = np.where(largest > 0, x.values / largest * 448, 0)
    outputs = {"q": Output(shape, "f8e4m3"), "scale": Output(shape[:1], "f32")}
    scale = largest[:, 0] / 448
    errors = {"q": 2 * U * np.abs(scaled), "scale": U * scale}
    return {**outputs, "x": x}, {"q": scaled, "scale": scale}, errors


def _layernorm_backward(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """With k = (x - mean) * rstd: it rounds twice, g = dy * weight once. A mean of a row is off by
    SUM_DEPTH roundings of the mean of magnitudes, by the quotient's 2 ulp (4u), and by those of its
    terms, 1 for g and 4 for g * k. dx adds those of the mean, of the product and of two
    differences, each of the magnitudes that go in. The sums over R = 32 rows: 3 roundings a term
    and 32 additions."""
    m, columns = shape = n["M"], n["N"]
    dy, x = normal(rng, shape, element), normal(rng, shape, element, 2.0)
    weight = normal(rng, shape[1:], element)
    count = max(columns, 1)
    level = x.values.sum(axis=1) / count
    spread = ((x.values - level[:, None]) ** 2).sum(axis=1) / count
    mean = Argument(rounded(level, "f32"), "f32")
    rstd = Argument(rounded(1 / np.sqrt(spread + 1e-5), "f32"), "f32")
    r = rstd.values[:, None]
    k = (x.values - mean.values[:, None]) * r
    g = dy.values * weight.values
    of_g, of_gk = (v.sum(axis=1, keepdims=True) / count for v in (g, g * k))
    exact = (g - of_g - k * of_gk) * r
    sizes = [np.abs(v).sum(axis=1, keepdims=True) / count for v in (g, g * k)]
    error = (SUM_DEPTH + 5) * sizes[0] + (SUM_DEPTH + 8 + 5) * np.abs(k) * sizes[1]
    error = (error + 3 * np.abs(g) + 2 * np.abs(of_g)) * U * r + U * np.abs(exact)
    sums, sum_errors = [], []
    for terms in (dy.values * k, dy.values):
        blocks = np.zeros((n["P"] * 32, columns))
        blocks[:m] = terms
        sums.append(blocks.reshape(n["P"], 32, columns).sum(axis=1))
        sum_errors.append(35 * U * np.abs(blocks).reshape(n["P"], 32, columns).sum(axis=1))
    parts = (n["P"], columns)
    arguments = {
        "dx": Output(shape, element),
        "dweight": Output(parts, "f32"), "dbias": Output(parts, "f32"),
        "dy": dy, "x": x, "weight": weight, "mean": mean, "rstd": rstd,
    }  # fmt: skip
    exacts = {"dx": exact, "dweight": sums[0], "dbias": sums[1]}
    return arguments, exacts, {"dx": error, "dweight": sum_errors[0], "dbias": sum_errors[1]}


def _cumsum(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: of the sum of what is added up, SUM_DEPTH additions behind one another in a tile, and 4
    more for each tile, which starts from the last sum of the one before."""
    shape = (n["M"], n["N"])
    x = normal(rng, shape, element)
    exact = x.values.cumsum(axis=1)
    steps = SUM_DEPTH + 4 * _tiles(shape[1])
    error = steps * U * np.abs(x.values).cumsum(axis=1)
    return {"y": Output(shape, element), "x": x}, exact, error


def _argmax(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact. Few different numbers, so that there are equals; rows without numbers."""
    shape = (n["M"], n["N"])
    spread = wide(rng, shape, element).values
    few = rng.choice([-np.inf, -1.0, -0.0, 0.0, 2.0, 2.0, 7.0], shape)
    values = np.where(np.arange(shape[0])[:, None] % 3 == 0, spread, few)
    values[3::5] = -np.inf
    values[4::7] = np.nan
    exact = np.argmax(values, axis=1) if shape[1] else np.zeros(shape[0])
    return {"y": Output(shape[:1], "i32"), "x": Argument(values, element)}, exact, None


def _logsumexp(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e, with k tiles and d = |x - max|, absolute: of the sum of e^(x - max), each term is off by
    3ud (a difference and a product by log2 e, itself rounded) and 2 ulp (4u), and as much for
    factors that bring a sum to a larger maximum, k at most, whose differences add up to d;
    SUM_DEPTH + k additions. The logarithm makes that absolute, and has 2 ulp (4u) of its own; its
    addition to the largest rounds to u of the result."""
    shape = (n["M"], n["N"])
    x = normal(rng, shape, element, 4.0)
    values = x.values + rng.choice([0.0, -100.0, 60.0], (shape[0], 1))
    if shape[1] > 4:
        values[::2, 1] = -np.inf
        values[1::3, 2] = 200.0
    values = rounded(values, element)
    top = values.max(axis=1, keepdims=True, initial=np.finfo(np.float32).min)
    distance = np.where(np.isfinite(values), top - values, 0)
    e = np.exp(values - top)
    total = e.sum(axis=1, keepdims=True)
    mean = (e * distance).sum(axis=1, keepdims=True) / np.maximum(total, 1)
    above = np.log(total)
    steps = 3 * mean + SUM_DEPTH + 8 * _tiles(shape[1]) + 8
    error = steps * U + np.where(np.isfinite(above), 4 * U * np.abs(above) + U * abs(top), 0)
    exact = (top + above)[:, 0]
    return {"y": Output(shape[:1], "f32"), "x": Argument(values, element)}, exact, error[:, 0]


def _cross_entropy(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_logsumexp`, and the difference of the largest and the target's logit rounds."""
    arguments, normaliser, error = _logsumexp(element, n, rng)
    x = arguments["x"]
    assert isinstance(x, Argument)
    rows, columns = x.values.shape
    target = rng.integers(0, max(1, columns), rows)
    if columns > 4:
        target = np.where((target == 1) & (np.arange(rows) % 2 == 0), 0, target)  # not of -inf
    logit = x.values[np.arange(rows), target] if columns else np.zeros(rows)
    exact = normaliser - logit
    found = {"loss": Output((rows,), "f32"), "x": x, "target": Argument(target, "i32")}
    largest = x.values.max(axis=1, initial=np.finfo(np.float32).min)
    return found, exact, error + U * np.where(np.isfinite(exact), np.abs(largest - logit), 0)


def _transpose(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: nothing is computed."""
    x = wide(rng, (n["M"], n["N"]), element)
    return {"y": Output((n["N"], n["M"]), element), "x": x}, x.values.T, None


def _permute_heads(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: nothing is computed."""
    b, h, m = n["B"], n["H"], n["M"]
    src = wide(rng, (b, h, m, 128), element)
    shape = (b, h, h, m, 128)
    exact = np.broadcast_to(src.values[:, :, None], shape)
    return {"dst": Output(shape, element), "src": src}, exact, None


def _split_heads(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: nothing is computed."""
    x = wide(rng, (n["N"], n["S"], n["H"], 128), element)
    exact = x.values.transpose(0, 2, 1, 3)
    return {"y": Output(exact.shape, element), "x": x}, exact, None


def _rope(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: two products and their sum round once each."""
    half = 64
    shape = (n["N"], n["H"], n["S"], 2, half)
    x = normal(rng, shape, element, 2.0)
    angle = rng.uniform(-10, 10, (n["S"], half))
    cos, sin = (Argument(rounded(f(angle), "f32"), "f32") for f in (np.cos, np.sin))
    a, b, c, d = x.values[..., 0, :], x.values[..., 1, :], cos.values, sin.values
    exact = np.stack([a * c - b * d, a * d + b * c], axis=-2)
    size = np.stack([np.abs(a * c) + np.abs(b * d), np.abs(a * d) + np.abs(b * c)], axis=-2)
    arguments = {"y": Output(shape, element), "x": x, "cos": cos, "sin": sin}
    return arguments, exact, 2 * U * size


# ---- shapes --------------------------------------------------------------------------------------


def _ids(rng: np.random.Generator, count: int, rows: int, element: str) -> Argument:
    """Rows of a table, some that are outside of it."""
    far = [-1, rows, -(2**31), 2**31 - 1] + ([2**40, -(2**63)] if element == "i64" else [])
    near = rng.integers(0, max(1, rows), count)
    return Argument(np.where(rng.random(count) < 0.1, rng.choice(far, count), near), element)


def _of_rows(ids: Argument, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Which ids are rows, and those that are."""
    inside = (ids.values >= 0) & (ids.values < rows)
    return inside, ids.values[inside]


def _embedding(elements: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: nothing is computed."""
    element, kind = elements.split("/")
    table = wide(rng, (n["V"], n["N"]), element)
    ids = _ids(rng, n["M"], n["V"], kind)
    inside, rows = _of_rows(ids, n["V"])
    exact = np.zeros((n["M"], n["N"]))
    exact[inside] = table.values[rows]
    return {"y": Output(exact.shape, element), "table": table, "ids": ids}, exact, None


def _scatter_add(elements: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: sums of small whole numbers, in any order. Their zeros are positive."""
    element, kind = elements.split("/")
    x = Argument(rng.integers(-9, 9, (n["M"], n["N"])).astype(np.float64), element)
    before = rng.integers(-9, 9, (n["V"], n["N"])).astype(np.float64)
    ids = _ids(rng, n["M"], n["V"], kind)
    inside, rows = _of_rows(ids, n["V"])
    exact = before.copy()
    np.add.at(exact, rows, x.values[inside])
    return {"y": Output(exact.shape, element, before), "x": x, "ids": ids}, exact, None


def _histogram(element: str, n: Extents, rng: np.random.Generator) -> Built:
    low, high = (0, 256) if element == "u8" else (-20, n["K"] + 20)
    x = Argument(rng.integers(low, high, n["N"]), element)
    before = rng.integers(0, 1000, n["K"]).astype(np.uint32)
    exact = before.copy()
    _, values = _of_rows(x, n["K"])
    np.add.at(exact, values, np.uint32(1))
    return {"counts": Output(exact.shape, "u32", before), "x": x}, exact, None


def _topk(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact: nothing is computed. Among equal numbers the first; NaN is above all."""
    x = wide(rng, (n["M"], n["N"]), element)
    # NaN first, then falling numbers, 0.0 before -0.0, then from the left.
    keys = (np.signbit(x.values) & ~np.isnan(x.values), -x.values, ~np.isnan(x.values))
    with_nan = np.where(np.isnan(keys[1]), 0.0, keys[1])
    order = np.lexsort((keys[0], with_nan, keys[2]), axis=-1)[:, : n["K"]]
    exact = np.take_along_axis(x.values, order, axis=-1)
    outputs = {"values": Output(exact.shape, element), "indices": Output(order.shape, "i32")}
    return {**outputs, "x": x}, {"values": exact, "indices": order}, None


def _lengths(block: int) -> list[Extents]:
    """Empty, one, odd, around one tile, several tiles."""
    return [{"N": n} for n in (0, 1, 37, block - 1, block, block + 1, 3 * block + 6)]


def _rows(block: int) -> list[Extents]:
    """Each extent empty, one element, odd, around a full tile, as many rows as tiles are not."""
    sizes = [(0, 5), (3, 0), (1, 1), (5, 37), (3, 64), (2, block - 1), (2, block), (1, block // 2)]
    return [{"M": m, "N": n} for m, n in sizes]


def _rows_of_any_length(block: int) -> list[Extents]:
    sizes = [(0, 5), (5, 0), (1, 1), (3, 37), (4, block), (5, block - 1), (9, 2 * block + 1)]
    return [{"M": m, "N": n} for m, n in sizes]


def _full_rows(block: int) -> list[Extents]:
    return [n for n in _rows(block) if n["N"]]


def _shares(block: int) -> list[Extents]:
    """More programs than tiles, as many, fewer, one, none."""
    sizes = [(1, 0), (0, 5), (1, 1), (3, 37), (2, block), (2, 3 * block + 1), (1, 2 * block - 1)]
    return [{"P": p, "N": n} for p, n in sizes]


def _column_shares(block: int) -> list[Extents]:
    sizes = [(1, 0, 5), (0, 5, 5), (1, 5, 0), (1, 1, 1), (1, 37, 40), (3, 70, block - 1)]
    return [{"P": p, "M": m, "N": n} for p, m, n in (*sizes, (2, 16, block), (2, 33, block + 1))]


def _blocks_of_rows(block: int) -> list[Extents]:
    sizes = [(0, 5), (3, 0), (1, 1), (5, 37), (33, 24), (2, block - 1), (2, block), (64, 16)]
    return [{"P": -(-m // 32), "M": m, "N": n} for m, n in sizes]


def _long_rows(block: int) -> list[Extents]:
    """Shorter than a tile, as long, longer; empty, one element, odd."""
    sizes = [(0, 5), (3, 0), (1, 1), (4, 37), (2, block - 1), (2, block), (3, 2 * block + 1)]
    return [{"M": m, "N": n} for m, n in (*sizes, (2, 3 * block - 7))]


def _matrices(block: int) -> list[Extents]:
    sizes = [(0, 5), (5, 0), (1, 1), (1, 200), (block, block), (block - 1, block + 1), (130, 72)]
    return [{"M": m, "N": n} for m, n in sizes]


def _heads(block: int) -> list[Extents]:
    sizes = [
        (0, 1, 4),
        (1, 0, 4),
        (1, 1, 0),
        (1, 1, 1),
        (2, 3, block),
        (1, 2, block + 1),
        (2, 1, 37),
    ]
    return [{"N": n, "H": h, "S": s} for n, h, s in sizes]


def _permuted_heads(block: int) -> list[Extents]:
    sizes = [(0, 2, 5), (2, 0, 5), (1, 1, 0), (1, 1, 1), (2, 3, block), (1, 2, block + 1)]
    return [{"B": b, "H": h, "M": m} for b, h, m in (*sizes, (2, 1, 37))]


def _tables(block: int) -> list[Extents]:
    """No row, no table, no column; one of each, odd, around a full tile."""
    sizes = [(0, 3, 5), (4, 0, 5), (4, 3, 0), (1, 1, 1), (19, 7, 37), (33, 12, block), (9, 40, 64)]
    return [{"M": m, "V": v, "N": n} for m, v, n in (*sizes, (5, 4, block - 1))]


def _values_and_counts(block: int) -> list[Extents]:
    return [{"N": n, "K": k} for n, k in ((0, 5), (9, 0), (300, 40), (block, 7), (block + 1, 1000))]


def _few_of_rows(count: int) -> list[Extents]:
    return [
        {"M": m, "N": n, "K": count} for m, n in ((0, 9), (1, count), (3, 37), (2, 700), (2, 999))
    ]


def _vector_instances() -> tuple[tuple[str, str, int], ...]:
    return each_type("1024", 1024)


def _row_instances(**sizes: tuple[int, ...]) -> tuple[tuple[str, str, int], ...]:
    """By element: the tiles that a row must fit; of 256 there are four rows in a tile."""
    return tuple(
        (f"{e}_{4 if b == 256 else 1}_{b}", e, b) for e, blocks in sizes.items() for b in blocks
    )


def _with_warps(
    instances: tuple[tuple[str, str, int], ...], counts: dict[int, int]
) -> tuple[tuple[str, str, int], ...]:
    """Those of 16 bits with these tiles have a hint of their own."""
    return tuple(
        (f"{name}__warps{counts[b]}" if e != "f32" and b in counts else name, e, b)
        for name, e, b in instances
    )


_SOFTMAX_ROWS = _with_warps(
    _row_instances(
        f32=(256, 1024, 4096, 8192, 16384, 32768),
        f16=(1024, 4096, 16384),
        bf16=(256, 1024, 2048, 4096, 8192, 16384),
    ),
    {1024: 2},
)
_NORM_SIZES = {"f16": (1024, 4096, 16384), "bf16": (256, 1024, 2048, 4096, 8192, 16384)}
_LAYERNORM_ROWS = _with_warps(
    _row_instances(f32=(256, 1024, 4096), **_NORM_SIZES), {1024: 1, 2048: 2, 4096: 4, 16384: 8}
)
_NORM_ROWS = _row_instances(f32=(256, 1024, 4096, 16384), **_NORM_SIZES)


def _long_row_instances() -> tuple[tuple[str, str, int], ...]:
    return ("f32_2048", "f32", 2048), ("f16_4096", "f16", 4096), ("bf16_4096", "bf16", 4096)


def _head_instances() -> tuple[tuple[str, str, int], ...]:
    return ("f32_32_128", "f32", 32), ("f16_64_128", "f16", 64), ("bf16_64_128", "bf16", 64)


def _table_instances() -> tuple[tuple[str, str, int], ...]:
    """Elements of tables and of ids."""
    return tuple(
        (f"{e}_{i}_{r}_{b}", f"{e}/{i}", b)
        for e, sizes in (
            ("f32", ((8, 128), (2, 1024))),
            ("bf16", ((16, 128), (4, 1024))),
        )
        for i in ("i32", "i64")
        for r, b in sizes
    )


def _group_instances() -> tuple[tuple[str, str, int], ...]:
    return ("f32_2048_4", "f32", 2048), ("f16_4096_8", "f16", 4096), ("bf16_4096_8", "bf16", 4096)


_SOFTMAX_GROUPS = (
    ("f32_16384_4__warps32", "f32", 16384),
    *((f"{e}_{b}_8__warps{b // 1024}", e, b) for e in ("f16", "bf16") for b in (16384, 32768)),
)
_BLOCKS_OF_SUM_ALL = {
    "f32": ("f32_4096", "f32", 4096), "f16": ("f16_8192", "f16", 8192),
    "bf16": ("bf16_8192", "bf16", 8192),
}  # fmt: skip
_COLUMNS = ("f32_128_32", "f32", 32), ("f16_16_256", "f16", 256), ("bf16_16_256", "bf16", 256)
_BLOCK_ROWS = tuple(
    (f"{e}_32_{b}", e, b) for e, b in (("f32", 4096), ("f16", 4096), ("bf16", 1024), ("bf16", 4096))
)
_WIDE_ROWS = tuple(
    (f"{e}_{b}", e, b) for e, b in (("f32", 4096), ("f16", 4096), ("bf16", 4096), ("bf16", 16384))
)
_QUANTISE_ROWS = (
    *_with_warps(_WIDE_ROWS, {4096: 4}),
    *(("bf16_8192", "bf16", 8192), ("bf16_14336", "bf16", 14336)),
)
_ARGMAX_ROWS = (
    ("f32_1_2048__warps4", "f32", 2048), ("f16_1_4096", "f16", 4096), ("bf16_1_4096", "bf16", 4096),
)  # fmt: skip
_LONG = ({"N": 1_000_003}, {"N": 1 << 20})
_MANY_ROWS = ({"M": 261, "N": 1000}, {"M": 1031, "N": 512})
_LARGE_ROWS = ({"M": 263, "N": 10_000}, {"M": 140, "N": 16_384}, {"M": 3, "N": 300_001})

KERNELS: dict[str, Kernel] = {
    **PRODUCTS,
    "add": Kernel(_add, _lengths, _LONG, _vector_instances()),
    "axpy": Kernel(_axpy, _lengths, _LONG, _vector_instances()),
    "gelu": Kernel(_gelu, _lengths, ({"N": 100_003},), _vector_instances()),
    "silu_mul": Kernel(_silu_mul, _lengths, _LONG, _vector_instances()),
    "softmax": Kernel(_softmax, _rows, _MANY_ROWS, _SOFTMAX_ROWS),
    "layernorm": Kernel(_layernorm, _rows, _MANY_ROWS, _LAYERNORM_ROWS),
    "rmsnorm": Kernel(_rmsnorm, _rows, _MANY_ROWS, _NORM_ROWS),
    "softmax_long": Kernel(_softmax_long, _long_rows, _LARGE_ROWS, _SOFTMAX_GROUPS),
    "layernorm_long": Kernel(_layernorm_long, _long_rows, _LARGE_ROWS, _long_row_instances()),
    "rmsnorm_long": Kernel(_rmsnorm_long, _long_rows, _LARGE_ROWS, _long_row_instances()),
    "row_sum": Kernel(
        _row_sum,
        _rows_of_any_length,
        ({"M": 263, "N": 4099}, {"M": 5, "N": 100_000}),
        each_type("1_8192", 8192),
    ),
    "sum_all": Kernel(
        _sum_all, _shares, ({"P": 7, "N": 131_071},), tuple(_BLOCKS_OF_SUM_ALL.values())
    ),
    "column_sum": Kernel(
        _column_sum,
        _column_shares,
        ({"P": 1, "M": 4099, "N": 1000}, {"P": 9, "M": 1031, "N": 512}),
        _COLUMNS,
    ),
    "bias_gelu": Kernel(_bias_gelu, _rows, _MANY_ROWS, _vector_instances()),
    "add_rmsnorm": Kernel(_add_rmsnorm, _rows, _MANY_ROWS, _WIDE_ROWS),
    "add_rmsnorm_long": Kernel(_add_rmsnorm, _long_rows, _LARGE_ROWS, _long_row_instances()),
    "quantise": Kernel(_quantise, _full_rows, _MANY_ROWS, _QUANTISE_ROWS),
    "quantise_f8": Kernel(_quantise_f8, _full_rows, _MANY_ROWS, _with_warps(_WIDE_ROWS, {4096: 4})),
    "layernorm_backward": Kernel(
        _layernorm_backward,
        _blocks_of_rows,
        ({"P": 17, "M": 519, "N": 1000}, {"P": 32, "M": 1024, "N": 512}),
        _BLOCK_ROWS,
    ),
    "cumsum": Kernel(_cumsum, _long_rows, _LARGE_ROWS, each_type("8192", 8192)),
    "argmax": Kernel(_argmax, _rows_of_any_length, _LARGE_ROWS, _ARGMAX_ROWS),
    "logsumexp": Kernel(_logsumexp, _long_rows, _LARGE_ROWS, _group_instances()),
    "cross_entropy": Kernel(_cross_entropy, _long_rows, _LARGE_ROWS, _group_instances()),
    "transpose": Kernel(
        _transpose,
        _matrices,
        ({"M": 1000, "N": 513}, {"M": 1024, "N": 2048}),
        (("f32_64", "f32", 64), ("f16_128", "f16", 128), ("bf16_128", "bf16", 128)),
    ),
    "permute_heads": Kernel(
        _permute_heads, _permuted_heads, ({"B": 2, "H": 5, "M": 333},), _head_instances()
    ),
    "split_heads": Kernel(_split_heads, _heads, ({"N": 2, "H": 4, "S": 333},), _head_instances()),
    "rope": Kernel(
        _rope, _heads, ({"N": 2, "H": 4, "S": 333},), _with_warps(each_type("64_16", 16), {16: 4})
    ),
    "embedding": Kernel(
        _embedding,
        _tables,
        ({"M": 1031, "V": 600, "N": 128}, {"M": 700, "V": 1200, "N": 96}),
        _table_instances(),
    ),
    "scatter_add": Kernel(
        _scatter_add,
        _tables,
        ({"M": 1031, "V": 60, "N": 512}, {"M": 700, "V": 1200, "N": 100}),
        tuple((f"f32_{i}_4_256", f"f32/{i}", 256) for i in ("i32", "i64")),
    ),
    "histogram": Kernel(
        _histogram,
        _values_and_counts,
        ({"N": 1_000_003, "K": 200}, {"N": 1 << 20, "K": 256}),
        (("i32_1024", "i32", 1024), ("i64_1024", "i64", 1024), ("u8_4096", "u8", 4096)),
    ),
    "topk": Kernel(
        _topk,
        _few_of_rows,
        ({"M": 261, "N": 1000, "K": 8}, {"M": 1031, "N": 512, "K": 8}),
        (
            ("f32_1024_1_8", "f32", 8),
            *((f"f32_{tiles}_8__warps4", "f32", 8) for tiles in ("1024_8", "2048_16")),
            *((f"{e}_1024_32_8__warps4", e, 8) for e in ("f16", "bf16")),
        ),
    ),
}


def symbols() -> list[tuple[str, str]]:
    """Every instance of the library: the kernel's file and the instance's symbol."""
    return [
        (name, f"{name}__{suffix}")
        for name, kernel in KERNELS.items()
        for suffix, _, _ in kernel.instances
    ]


def problems(symbol: str, *, large: bool = False) -> Iterator[Problem]:
    """The problems of an instance, the same in every run."""
    kernel, _, block = _instance(symbol)
    shapes = kernel.shapes(block)
    if large:
        must_fit = kernel.shapes in (_rows, _full_rows)
        shapes += [extents for extents in kernel.large if not (must_fit and extents["N"] > block)]
    for number, extents in enumerate(shapes):
        yield problem_at(symbol, extents, number)


def problem_at(symbol: str, extents: Extents, seed: int = 0) -> Problem:
    """The problem of an instance at these extents."""
    kernel, element, _ = _instance(symbol)
    return _problem(symbol, kernel, element, extents, np.random.default_rng(seed))


def _instance(symbol: str) -> tuple[Kernel, str, int]:
    """The kernel, the element type, and the size of a tile."""
    name, _, suffix = symbol.partition("__")
    kernel = KERNELS[name]
    [(element, block)] = [(e, b) for s, e, b in kernel.instances if s == suffix]
    return kernel, element, block


def _problem(
    symbol: str, kernel: Kernel, element: str, extents: Extents, rng: np.random.Generator
) -> Problem:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        arguments, exact, error = kernel.build(element, extents, rng)
    outputs = {n: a.element for n, a in arguments.items() if isinstance(a, Output)}
    exacts = exact if isinstance(exact, Mapping) else dict.fromkeys(outputs, exact)
    errors = error if isinstance(error, Mapping) else dict.fromkeys(outputs, error)
    results = {
        name: Result(exacts[name], toleranced(exacts[name], errors[name], of))
        for name, of in outputs.items()
    }
    return Problem(symbol, extents, arguments, results)
