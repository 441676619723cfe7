"""What the kernels of `kernels/` around products of matrices must compute.

Products of 16-bit numbers are exact in f32, and so are those of fewer bits. K additions of them
cost K u of the sum of magnitudes, and twice that, since tensor cores may cut where f32 rounds.
"""

from __future__ import annotations

import numpy as np

from tests.gpu.element_bits import rounded
from tests.kernels.problem import (
    SUM_DEPTH,
    Argument,
    Built,
    Extents,
    Kernel,
    Output,
    U,
    each_type,
    normal,
)

_SMALLEST_NORMAL = 2.0**-126


def _product(a: np.ndarray, b: np.ndarray, more: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """What is exact, and e, with as many additions more than there are terms."""
    steps = a.shape[-1] + 1 + more
    return a @ b, 2 * U * steps * (np.abs(a) @ np.abs(b))


def _matmul(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: the additions. Products of f32 are fused with theirs."""
    a, b = normal(rng, (n["M"], n["K"]), element), normal(rng, (n["K"], n["N"]), element)
    exact, error = _product(a.values, b.values)
    return {"c": Output(exact.shape, element), "a": a, "b": b}, exact, error


def _matmul_nt(element: str, n: Extents, rng: np.random.Generator) -> Built:
    a, b = normal(rng, (n["M"], n["K"]), element), normal(rng, (n["N"], n["K"]), element)
    exact, error = _product(a.values, b.values.T)
    return {"c": Output(exact.shape, element), "a": a, "b": b}, exact, error


def _tf32(values: np.ndarray) -> np.ndarray:
    """f32 to nearest even with 11 bits, of which the first one is not stored."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


def _matmul_tf32(_: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: the additions. Products of 11 bits are exact."""
    a, b = normal(rng, (n["M"], n["K"]), "f32"), normal(rng, (n["K"], n["N"]), "f32")
    exact, error = _product(_tf32(a.values), _tf32(b.values))
    return {"c": Output(exact.shape, "f32"), "a": a, "b": b}, exact, error


def _matmul_tf32_nt(_: str, n: Extents, rng: np.random.Generator) -> Built:
    a, b = normal(rng, (n["M"], n["K"]), "f32"), normal(rng, (n["N"], n["K"]), "f32")
    exact, error = _product(_tf32(a.values), _tf32(b.values).T)
    return {"c": Output(exact.shape, "f32"), "a": a, "b": b}, exact, error


def _matmul_tn(element: str, n: Extents, rng: np.random.Generator) -> Built:
    a, b = normal(rng, (n["K"], n["M"]), element), normal(rng, (n["K"], n["N"]), element)
    exact, error = _product(a.values.T, b.values)
    return {"c": Output(exact.shape, element), "a": a, "b": b}, exact, error


def _matmul_batched(element: str, n: Extents, rng: np.random.Generator) -> Built:
    a = normal(rng, (n["B"], n["M"], n["K"]), element)
    b = normal(rng, (n["B"], n["K"], n["N"]), element)
    exact, error = _product(a.values, b.values)
    return {"c": Output(exact.shape, element), "a": a, "b": b}, exact, error


def _matmul_bias_gelu(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: of t, that of the product and u for the bias; the function has a slope of 1.13 at most.
    Its own: the exponent w = 1.6 t (1 + 0.045 t²), by which e^-w is a power of two, is off by 6u of
    itself, which makes that 6u |w| of the result; the power 2 ulp (4u), the sum u and the quotient
    2 ulp. What is no normal number may be 0."""
    x, w = normal(rng, (n["M"], n["K"]), element), normal(rng, (n["N"], n["K"]), element)
    bias = normal(rng, (n["N"],), element)
    product, error = _product(x.values, w.values.T)
    t = product + bias.values
    of_t = error + U * np.abs(t)
    exponent = 2 * np.sqrt(2 / np.pi) * (t + 0.044715 * t**3)
    exact = t / (1 + np.exp(-exponent))
    own = (9 + 6 * np.abs(exponent)) * U * np.abs(exact) + _SMALLEST_NORMAL * (1 + np.abs(t))
    arguments = {"y": Output(exact.shape, element), "x": x, "w": w, "bias": bias}
    return arguments, exact, 1.13 * of_t + own


def _matmul_residual(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: that of the product times both scales, two products more and a sum."""
    x, w = normal(rng, (n["M"], n["K"]), element), normal(rng, (n["N"], n["K"]), element)
    residual = normal(rng, (n["M"], n["N"]), element, 3.0)
    row, column = normal(rng, (n["M"],), "f32"), normal(rng, (n["N"],), "f32")
    product, error = _product(x.values, w.values.T)
    scale = row.values[:, None] * column.values
    exact = residual.values + product * scale
    error = np.abs(scale) * (error + 2 * U * np.abs(product)) + U * np.abs(exact)
    arguments = {
        "y": Output(exact.shape, element),
        "x": x, "w": w, "residual": residual, "row": row, "column": column,
    }  # fmt: skip
    return arguments, exact, error


def _gated_mlp(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: those of both products, through the other factor; silu has a slope of 1.1 at most. Its own
    as in `silu_mul`: 11u and 2u |g| of the result, and what is no normal number."""
    shape = (n["N"], n["K"])
    x = normal(rng, (n["M"], n["K"]), element)
    gate, up = normal(rng, shape, element), normal(rng, shape, element)
    g, of_g = _product(x.values, gate.values.T)
    u, of_u = _product(x.values, up.values.T)
    small = np.exp(-np.abs(g))
    silu = g * np.where(g < 0, small, 1.0) / (1 + small)
    exact = silu * u
    error = 1.1 * of_g * (np.abs(u) + of_u) + np.abs(silu) * of_u
    error += (11 + 2 * np.abs(g)) * U * np.abs(exact)
    error += _SMALLEST_NORMAL * (1 + np.abs(u) * (1 + np.abs(g)))
    arguments = {"y": Output(exact.shape, element), "x": x, "gate": gate, "up": up}
    return arguments, exact, error


def _ends(n: Extents, rng: np.random.Generator) -> np.ndarray:
    """Where the rows of each group end; some have none, and the last few rows may be nobody's."""
    experts, rows = n["E"], n["M"]
    ends = np.sort(rng.integers(0, rows + 1, experts))
    ends[1::3] = ends[: len(ends[1::3]) * 3 : 3]
    if experts % 2:
        ends[-1] = rows
    return ends


def _blocks_of(ends: np.ndarray, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The group of each block of `size` rows, and its first row."""
    starts = np.concatenate([[0], ends[:-1]]) if ends.size else ends
    found = [
        (group, row)
        for group, (start, end) in enumerate(zip(starts, ends, strict=True))
        for row in range(start, end, size)
    ]
    last = int(starts[-1]) if ends.size else 0
    while len(found) < count:
        behind = len([row for group, row in found if group == ends.size - 1])
        found.append((ends.size - 1, last + behind * size if ends.size else 0))
    group, first = np.array(found[:count], np.int64).reshape(-1, 2).T
    return group, first


def _matmul_grouped(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul`. Rows that are nobody's keep what they had."""
    rows, columns = n["M"], n["N"]
    x = normal(rng, (rows, n["K"]), element)
    w = normal(rng, (n["E"], columns, n["K"]), element)
    before = normal(rng, (rows, columns), element).values
    ends = _ends(n, rng)
    group, first = _blocks_of(ends, n["BM"], n["T"])
    exact, error = before.copy(), np.zeros((rows, columns))
    for expert, end in enumerate(ends):
        mine = slice(ends[expert - 1] if expert else 0, end)
        exact[mine], error[mine] = _product(x.values[mine], w.values[expert].T)
    arguments = {"y": Output(exact.shape, element, before), "x": x, "w": w}
    tables = {"ends": ends, "expert": group, "first": first}
    return {**arguments, **{k: Argument(v, "i32") for k, v in tables.items()}}, exact, error


def _group_blocks(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """Exact."""
    ends = _ends(n, rng)
    group, first = _blocks_of(ends, n["BM"], n["T"])
    outputs = {name: Output(group.shape, "i32") for name in ("group", "first")}
    exact = {"group": group, "first": first}
    return {**outputs, "ends": Argument(ends, "i32")}, exact, dict.fromkeys(outputs)


def _factors_f8(n: Extents, rng: np.random.Generator) -> tuple[Argument, Argument]:
    return (
        normal(rng, (n["M"], n["K"]), "f8e4m3", 16.0),
        normal(rng, (n["N"], n["K"]), "f8e4m3", 16.0),
    )


def _cut_off(a: np.ndarray, b: np.ndarray, step: int = 128) -> np.ndarray:
    """What tensor cores cut off sums of products of f8, which are `step` products each.

    An instruction adds 32 products to a sum, and keeps of each of the 33 what is at least 2^-13 of
    the largest. Each product of a step, and each sum of some of them, is at most the product of
    the lengths of its rows of a and of its columns of b (Cauchy and Schwarz).

    Shapes:   (m, k) and (n, k) to (m, n)
    """
    steps = -(-a.shape[-1] // step)
    rest = steps * step - a.shape[-1]
    of_a, of_b = (
        np.linalg.norm(np.pad(x, ((0, 0), (0, rest))).reshape(len(x), steps, step), axis=2)
        for x in (a, b)
    )
    return step / 32 * 33 * 2.0**-13 * (of_a @ of_b.T)


def _matmul_f8(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul`, what is cut off, and one product more."""
    a, b = _factors_f8(n, rng)
    scale = float(np.float32(rng.uniform(0.001, 0.01)))
    exact, error = _product(a.values, b.values.T, -(-n["K"] // 128))
    error += _cut_off(a.values, b.values)
    exact, error = exact * scale, error * scale + U * np.abs(exact * scale)
    return {"c": Output(exact.shape, element), "a": a, "b": b, "scale": scale}, exact, error


def _matmul_f8_rows(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul_f8`, with an addition more for each tile, and two products more."""
    a, b = _factors_f8(n, rng)
    scales = (rounded(rng.uniform(0.01, 0.1, n[axis]), "f32") for axis in "MN")
    of_a, of_b = (Argument(values, "f32") for values in scales)
    exact, error = _product(a.values, b.values.T, 2 * -(-n["K"] // 128))
    error += _cut_off(a.values, b.values)
    scale = of_a.values[:, None] * of_b.values
    exact, error = exact * scale, error * scale + 2 * U * np.abs(exact * scale)
    arguments = {"c": Output(exact.shape, element), "a": a, "b": b, "of_a": of_a, "of_b": of_b}
    return arguments, exact, error


def _matmul_w8a16(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul` of the integers, and one product more."""
    x = normal(rng, (n["M"], n["K"]), element)
    q = Argument(rng.integers(-128, 128, (n["N"], n["K"])), "i8")
    scale = Argument(rounded(rng.uniform(0.001, 0.01, n["N"]), "f32"), "f32")
    exact, error = _product(x.values, q.values.T.astype(np.float64))
    exact, error = exact * scale.values, error * scale.values
    error += U * np.abs(exact)
    return {"y": Output(exact.shape, element), "x": x, "q": q, "scale": scale}, exact, error


def _of_4_bits(
    element: str, n: Extents, rng: np.random.Generator
) -> tuple[dict[str, Output | Argument], np.ndarray, np.ndarray]:
    """Arguments, and both factors."""
    half = 64
    x = normal(rng, (n["M"], n["K"]), element)
    q = Argument(rng.integers(0, 256, (n["N"], n["H"])), "u8")
    scale = Argument(rounded(rng.uniform(0.01, 0.1, (n["N"], n["S"])), element), element)
    bytes_of_group = q.values.reshape(n["N"], n["S"], 1, half)
    halves = np.concatenate([bytes_of_group & 15, bytes_of_group >> 4], axis=2) - 8.0
    weights = (halves * scale.values[:, :, None, None]).reshape(n["N"], n["K"])
    given = {"y": Output((n["M"], n["N"]), element), "x": x, "q": q, "scale": scale}
    return given, x.values, weights


def _matmul_w4a16(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul`, and the rounding of each weight to bf16."""
    given, x, weights = _of_4_bits(element, n, rng)
    exact, error = _product(x, weights.T)
    return given, exact, error + 2.0**-9 * (np.abs(x) @ np.abs(weights.T))


def _skinny_w4a16(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul`, and a product and an addition more for each group."""
    given, x, weights = _of_4_bits(element, n, rng)
    return given, *_product(x, weights.T, 2 * n["S"])


def _matmul_skinny(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul`, with eight sums that are added up."""
    x, w = normal(rng, (n["M"], n["K"]), element), normal(rng, (n["N"], n["K"]), element)
    exact, error = _product(x.values, w.values.T, 8)
    return {"y": Output(exact.shape, element), "x": x, "w": w}, exact, error


def _gemv(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: a fused product and sum for each tile of 512 columns or more, then the sum of a row."""
    w, x = normal(rng, (n["N"], n["K"]), element), normal(rng, (n["K"],), element)
    exact = w.values @ x.values
    steps = -(-n["K"] // 512) + SUM_DEPTH
    error = steps * U * (np.abs(w.values) @ np.abs(x.values))
    return {"y": Output(exact.shape, element), "w": w, "x": x}, exact, error


def _gemv_t(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: a fused product and sum for each block of 16 rows, then the sum of a block."""
    w, x = normal(rng, (n["K"], n["N"]), element), normal(rng, (n["K"],), element)
    terms = w.values * x.values[:, None]
    chosen = [np.arange(n["K"]) // 16 % n["P"] == p for p in range(n["P"])]
    shape = (n["P"], n["N"])
    exact = np.array([terms[rows].sum(axis=0) for rows in chosen]).reshape(shape)
    sizes = np.array([np.abs(terms[rows]).sum(axis=0) for rows in chosen]).reshape(shape)
    steps = -(-n["K"] // 16) + 16
    return {"y": Output(shape, "f32"), "w": w, "x": x}, exact, steps * U * sizes


def _matmul_split(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: as `_matmul`, of the terms of each part."""
    a, b = normal(rng, (n["M"], n["K"]), element), normal(rng, (n["N"], n["K"]), element)
    exact = np.zeros((n["S"], n["M"], n["N"]))
    error = np.zeros(exact.shape)
    blocks = -(-n["K"] // 64)
    share = -(-blocks // max(1, n["S"])) * 64
    for part in range(n["S"]):
        terms = slice(part * share, (part + 1) * share)
        exact[part], error[part] = _product(a.values[:, terms], b.values[:, terms].T)
    return {"parts": Output(exact.shape, "f32"), "a": a, "b": b}, exact, error


def _sum_parts(element: str, n: Extents, rng: np.random.Generator) -> Built:
    """e: S additions."""
    parts = normal(rng, (n["S"], n["M"], n["N"]), "f32")
    exact = parts.values.sum(axis=0)
    error = n["S"] * U * np.abs(parts.values).sum(axis=0)
    return {"c": Output(exact.shape, element), "parts": parts}, exact, error


# ---- shapes --------------------------------------------------------------------------------------


def _products(block: int) -> list[Extents]:
    """Each extent empty, one, odd, and around tiles; k with and without a cut tile."""
    sizes = [(0, 5, 3), (5, 0, 3), (3, 5, 0), (1, 1, 1), (block, block, 64), (37, block + 1, 33)]
    sizes += [(block + 1, 8, 70), (40, 48, 24), (33, 21, 53)]
    return [{"M": m, "N": n, "K": k} for m, n, k in sizes]


def _batches(block: int) -> list[Extents]:
    few = [_products(block)[i] for i in (0, 2, 3, 5, 7, 8)]
    return [{"B": 0, **few[-1]}, *({"B": 1 + i % 3, **n} for i, n in enumerate(few))]


def _groups(block: int) -> list[Extents]:
    """No expert, one, more than rows; as many blocks as are enough, and more."""
    sizes = [(0, 5, 8, 8), (3, 0, 8, 8), (2, 5, 0, 8), (3, 5, 8, 0), (1, 37, 24, 40)]
    sizes += [(9, 200, block + 1, 33), (5, 4, 16, 24), (40, 700, 264, 136), (7, 150, 40, 72)]
    return [_grouped(block, *size) for size in sizes]


def _grouped(block: int, experts: int, m: int, n: int, k: int) -> Extents:
    blocks = -(-m // block) + experts
    return {"E": experts, "M": m, "N": n, "K": k, "T": blocks + m % 2, "BM": block}


def _tables_of_groups(block: int) -> list[Extents]:
    sizes = [(0, 5), (3, 0), (1, 37), (9, 900), (5, 4), (256, 700), (31, 5000)]
    return [_grouped(block, e, m, 0, 0) for e, m in sizes]


def _packed_products(block: int) -> list[Extents]:
    """Of w4a16: k in whole groups of 128."""
    sizes = [(0, 5, 1), (5, 0, 1), (3, 5, 0), (1, 1, 1), (block + 1, 9, 2), (16, block, 3)]
    sizes += [(7, 40, 2), (1, 16, 1)]
    return [{"M": m, "N": n, "K": 128 * s, "H": 64 * s, "S": s} for m, n, s in sizes]


def _few_rows(block: int) -> list[Extents]:
    sizes = [(0, 5, 3), (5, 0, 3), (3, 5, 0), (1, 1, 1), (16, block, 512), (7, block + 1, 513)]
    sizes += [(16, 24, 72), (2, 3, 700)]
    return [{"M": m, "N": n, "K": k} for m, n, k in sizes]


def _vectors(block: int) -> list[Extents]:
    sizes = [(0, 5), (5, 0), (1, 1), (3, 37), (4, block), (5, block - 1), (9, 2 * block + 1)]
    return [{"N": n, "K": k} for n, k in (*sizes, (37, 72))]


def _shared_vectors(block: int) -> list[Extents]:
    """More programs than blocks of rows, as many, fewer, one, none."""
    sizes = [(0, 5, 5), (1, 0, 5), (2, 5, 0), (1, 1, 1), (3, 37, 40), (2, 33, block + 1)]
    return [{"P": p, "K": k, "N": n} for p, k, n in (*sizes, (1, 100, block), (5, 70, 24))]


def _splits(block: int) -> list[Extents]:
    sizes = [(0, 3, 3, 3), (1, 0, 5, 3), (2, 3, 5, 0), (3, 1, 1, 1), (2, 65, block + 1, 129)]
    sizes += [(3, 33, 21, 450), (5, 24, 16, 200), (2, 7, 9, 64)]
    return [{"S": s, "M": m, "N": n, "K": k} for s, m, n, k in sizes]


def _part_sums(block: int) -> list[Extents]:
    sizes = [(0, 3, 5), (2, 0, 5), (2, 3, 0), (1, 1, 1), (3, 2, block), (4, 2, block + 1)]
    return [{"S": s, "M": m, "N": n} for s, m, n in (*sizes, (7, 5, 37))]


# ---- the table -----------------------------------------------------------------------------------


def _tiles(*tiles: tuple[str, str, int]) -> tuple[tuple[str, str, int], ...]:
    return tuple((f"{element}_{tile}", element, block) for element, tile, block in tiles)


_LARGE = ({"M": 300, "N": 250, "K": 500}, {"M": 512, "N": 384, "K": 1024})
_OF_256 = _tiles(("f16", "128_256_64", 256), ("bf16", "128_256_64", 256))
# The families of plain products; the second number is the larger side of a tile.
_OF_BOTH = (
    ("16_64_128", 64), ("16_128_128", 128),
    ("64_32_128", 64), ("64_64_128", 64), ("64_128_64", 128), ("64_128_64__split4", 128),
    ("128_128_64", 128), ("128_128_64__cluster2x2", 128), ("128_192_64", 192),
    ("128_192_64__cluster1", 192), ("128_256_64", 256),
)  # fmt: skip
_NN = (("144_128_64__cluster1", 144), ("160_128_64", 160), ("208_128_64", 208))
_NT = (("128_144_64__cluster1", 144), ("128_160_64", 160), ("128_208_64", 208), ("128_224_64", 224))


def _family(*tiles: tuple[str, int]) -> tuple[tuple[str, str, int], ...]:
    return _tiles(*((element, tile, most) for element in ("f16", "bf16") for tile, most in tiles))


_OF_128 = _tiles(("bf16", "128_128_64", 128))
_AFTER_PRODUCTS = _tiles(
    ("bf16", "128_128_64__ping_pong", 128),
    *(("bf16", f"128_{n}_64", n) for n in (160, 192, 256)),
)
_OF_TF32 = tuple(
    (f"{m}_{n}_32", "f32", max(m, n)) for m, n in ((64, 64), (64, 128), (128, 128), (256, 128))
)
_OF_TF32_NT = tuple(
    (f"{m}_{n}_32", "f32", n) for m, n in ((64, 64), (64, 128), (128, 128), (128, 192), (128, 256))
)
_LARGE_PACKED = tuple(
    {"M": m, "N": n, "K": 128 * s, "H": 64 * s, "S": s} for m, n, s in ((16, 500, 9), (300, 264, 5))
)

KERNELS: dict[str, Kernel] = {
    "matmul": Kernel(
        _matmul,
        _products,
        _LARGE,
        (*_tiles(("f32", "64_64_16", 64)), *_family(*_OF_BOTH, *_NN)),
    ),
    "matmul_nt": Kernel(_matmul_nt, _products, _LARGE, _family(*_OF_BOTH, *_NT)),
    "matmul_tn": Kernel(_matmul_tn, _products, _LARGE, _OF_256),
    "matmul_tf32": Kernel(_matmul_tf32, _products, _LARGE, _OF_TF32),
    "matmul_tf32_nt": Kernel(_matmul_tf32_nt, _products, _LARGE, _OF_TF32_NT),
    "matmul_batched": Kernel(
        _matmul_batched,
        _batches,
        ({"B": 3, "M": 300, "N": 250, "K": 500}, {"B": 40, "M": 256, "N": 264, "K": 136}),
        _family(
            ("128_128_64", 128),
            ("128_128_64__ping_pong", 128),
            ("128_192_64", 192),
            ("128_256_64", 256),
        ),
    ),
    "matmul_bias_gelu": Kernel(
        _matmul_bias_gelu,
        _products,
        _LARGE,
        _AFTER_PRODUCTS,
    ),
    "matmul_residual": Kernel(_matmul_residual, _products, _LARGE, _AFTER_PRODUCTS),
    "gated_mlp": Kernel(_gated_mlp, _products, _LARGE, _OF_128),
    "matmul_grouped": Kernel(
        _matmul_grouped,
        _groups,
        (),
        (*_OF_128, *_tiles(("bf16", "128_256_64", 128))),
    ),
    "group_blocks": Kernel(_group_blocks, _tables_of_groups, (), (("128_256", "i32", 128),)),
    "matmul_f8": Kernel(_matmul_f8, _products, _LARGE, _tiles(("bf16", "128_192_128", 192))),
    "matmul_f8_rows": Kernel(
        _matmul_f8_rows, _products, _LARGE, _tiles(("bf16", "128_128_128", 128))
    ),
    "matmul_w8a16": Kernel(
        _matmul_w8a16,
        _products,
        _LARGE,
        _tiles(
            ("bf16", "16_64_128", 128),
            ("bf16", "16_64_128__split2", 128),
            ("bf16", "128_128_64", 128),
            ("bf16", "256_128_64", 256),
        ),
    ),
    "matmul_w4a16": Kernel(
        _matmul_w4a16,
        _packed_products,
        _LARGE_PACKED,
        (
            *((tile, "bf16", 128) for tile in ("16_64_64", "16_64_64__split2", "128_128_64")),
            ("256_128_64", "bf16", 256),
        ),
    ),
    "skinny_w4a16": Kernel(
        _skinny_w4a16,
        _packed_products,
        _LARGE_PACKED,
        tuple(
            (f"{rows}_16_64_{warps}__warps{warps}", "bf16", 16)
            for rows in (8, 16)
            for warps in (4, 8)
        ),
    ),
    "matmul_skinny": Kernel(
        _matmul_skinny,
        _few_rows,
        ({"M": 16, "N": 500, "K": 2000}, {"M": 5, "N": 1032, "K": 1024}),
        _tiles(
            *(
                (element, tile, 16)
                for element in ("f16", "bf16")
                for tile in ("8_16_1024", "16_16_512")
            )
        ),
    ),
    "gemv": Kernel(
        _gemv,
        _vectors,
        ({"N": 1031, "K": 2560}, {"N": 500, "K": 5001}),
        _tiles(
            ("f32", "1_512", 512),
            *(
                (element, tile, 1024)
                for element in ("f16", "bf16")
                for tile in ("1_1024", "2_1024", "4_512__warps2")
            ),
        ),
    ),
    "gemv_t": Kernel(
        _gemv_t,
        _shared_vectors,
        ({"P": 9, "K": 2000, "N": 1031}, {"P": 4, "K": 2560, "N": 512}),
        _tiles(("f32", "16_128", 128), ("f16", "16_256", 256), ("bf16", "16_256", 256)),
    ),
    "matmul_split": Kernel(
        _matmul_split,
        _splits,
        ({"S": 4, "M": 65, "N": 264, "K": 2000}, {"S": 7, "M": 64, "N": 256, "K": 4096}),
        _tiles(("bf16", "64_128_64", 128)),
    ),
    "sum_parts": Kernel(
        _sum_parts,
        _part_sums,
        ({"S": 5, "M": 130, "N": 2001}, {"S": 4, "M": 64, "N": 4096}),
        each_type("1024", 1024),
    ),
}
