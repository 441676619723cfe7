"""What the loops around products compute (`dot_*.tile`): by NumPy, in numbers that hold it exactly.

Factors are whole numbers from -2 to 2, or become such, and scales are powers of two. So products
and their sums are exact in any order, in f16 too, and results are right to the bit. Extents lie
around those of tiles; rows of some are whole groups of 16 bytes, as copies by TMA want them, and k
takes no turn, one, and more than two times as many as there may be slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.programs.entry import Array, Arrays, Entry, Reference

_TAME = dict.fromkeys(
    ("x", "y", "v", "w", "q", "k", "z", "from", "bias", "residual", "mean", "row", "column"), "tame"
)


def _sizes(k: int) -> tuple[Mapping[str, int], ...]:
    """Extents for blocks of `k`. The first are small, for those who simulate each thread."""
    few = [(40, 24, 72), (0, 8, 8), (8, 0, 8), (24, 8, 0), (1, 1, 1), (65, 63, 2 * k + 1)]
    many = [(63, 72, k), (65, 72, 17 * k), (200, 136, k + 8)]
    return tuple({"M": m, "N": n, "K": k} for m, n, k in (*few, *many))


_SIZES = _sizes(32)
_BATCHES = tuple(
    {name: count, "M": m, "N": n, "K": k}
    for name in "B"
    for count, m, n, k in (
        (2, 20, 16, 72), (0, 8, 8, 8), (1, 1, 1, 1), (3, 65, 40, 33), (5, 72, 40, 136),
    )
)  # fmt: skip
_SQUARES = tuple({"M": m, "N": n} for m, n in ((40, 24), (0, 8), (1, 1), (65, 63), (136, 72)))


def _with(sizes: Any, **more: int) -> tuple[Mapping[str, int], ...]:
    return tuple({**size, **more} for size in sizes)


def _wide(x: Array) -> Array:
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


def _entry(
    reference: Reference, dims: Any = _SIZES, scalars: Mapping[str, Any] | None = None, **data: str
) -> Entry:
    return Entry(_in_float64(reference), dims=dims, data={**_TAME, **data}, scalars=scalars or {})


def _in_float64(reference: Reference) -> Reference:
    """The reference of arguments in float64 or int64, its results rounded to their types."""

    def found(a: Arrays) -> Mapping[str, Array]:
        given = vars(a)
        wide = {n: _wide(x) if isinstance(x, np.ndarray) else x for n, x in given.items()}
        exact = reference(SimpleNamespace(**wide))
        return {name: value.astype(given[name].dtype) for name, value in exact.items()}

    return found


def _product(reference: Any, dims: Any = _SIZES, **options: Any) -> Entry:
    """One whose only result is `z`."""
    return _entry(lambda a: {"z": reference(a)}, dims, **options)


def _t(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def _between(first: int, last: int, block: int) -> slice:
    return slice(max(0, first * block), max(0, last * block))


def _chosen(a: Arrays, block: int, keep: Any) -> Array:
    """The product of those blocks of k for which `keep` says so."""
    blocks = np.arange(a.x.shape[1]) // block
    chosen = np.array([bool(keep(b)) for b in blocks], bool)
    return a.x[:, chosen] @ a.y[chosen]


# ---- dot_loops.tile ------------------------------------------------------------------------------


def _permuted(a: Arrays) -> Array:
    return np.einsum("mhk,nhk->hmn", a.x, a.y)


def _from_elements(a: Arrays) -> Array:
    """The loop ends where the first blocks would: what is behind them is zero, or left out."""
    first = vars(a)["from"]
    last = first + -(-a.x.shape[1] // 32) * 32
    return a.x[:, first:last] @ a.y[first:last]


def _triangular(a: Arrays) -> Array:
    rows = np.arange(a.x.shape[0])
    kept = rows[None, :] < (rows[:, None] // 64 + 1) * 64
    return (a.x * kept) @ a.y


def _by_a_table(a: Arrays) -> Array:
    rows, columns = a.x.shape[0], a.y.shape[1]
    found = np.zeros((rows, columns))
    for k, at in enumerate(a.table):
        left = a.x[:, k * 32 : k * 32 + 32]
        right = a.y[int(at) * 32 : int(at) * 32 + 32] if at >= 0 else a.y[:0]
        both = min(left.shape[1], right.shape[0])
        found += left[:, :both] @ right[:both]
    return found


def _of_an_expert(a: Arrays) -> Array:
    found = np.zeros((a.x.shape[0], a.y.shape[2]))
    for row in range(a.x.shape[0]):
        expert = int(a.table[row // 64]) if row // 64 < a.table.size else 0
        if 0 <= expert < a.y.shape[0]:
            found[row] = a.x[row] @ a.y[expert]
    return found


DOT_LOOPS = {
    "sized": _product(lambda a: a.x @ a.y, _sizes(64)),
    "typed": _product(lambda a: a.x @ a.y.T, _sizes(64)),
    "view_on_the_left": _product(lambda a: a.x.T @ a.y),
    "view_on_the_right": _product(lambda a: a.x @ a.y.T),
    "turned_tiles": _product(lambda a: a.x.T @ a.y.T, _sizes(64)),
    "permuted": _product(
        _permuted, tuple({("H" if n == "B" else n): e for n, e in d.items()} for d in _BATCHES)
    ),
    "one_of_a_batch": _product(lambda a: a.x @ a.y, _BATCHES),
    "several_of_a_batch": _product(lambda a: a.x @ a.y, _BATCHES),
    "shared_by_a_batch": _product(lambda a: a.x @ a.y, _BATCHES),
    "from_elements": _product(_from_elements, scalars={"from": 8}),
    "stepped": _product(lambda a: _chosen(a, 16, lambda b: b % a.step == 0), scalars={"step": 3}),
    "between": _product(
        lambda a: _chosen(a, 16, lambda b: a.first <= b <= a.last),
        scalars={"first": 1, "last": 20},
    ),
    "backwards": _product(lambda a: a.x @ a.y),
    "triangular": _product(_triangular, _SQUARES),
    "as_long_as": _product(lambda a: a.x @ a.y),
    "outside_of_loops": _product(lambda a: a.x @ a.y, _SQUARES),
    "now_and_then": _product(lambda a: _chosen(a, 16, lambda b: b % 3 == 0)),
    "where_wanted": _product(
        lambda a: _chosen(a, 32, lambda b: b < a.wanted.size and a.wanted[b] > 0),
        _with(_SIZES, B=11),
        wanted="tame",
    ),
    "by_a_table": _product(_by_a_table, _with(_SIZES, B=5), table="tame"),
    "of_an_expert": _product(
        _of_an_expert,
        tuple({"E": d.pop("B"), **d, "B": 2} for d in map(dict, _BATCHES)),
        table="tame",
    ),
}

# ---- dot_factors.tile ----------------------------------------------------------------------------


def _groups(a: Arrays, block: int) -> Array:
    """For each element of k, which group it is of."""
    return np.arange(a.x.shape[1]) // block


def _dequantised_left(a: Arrays) -> Array:
    scale = np.zeros(a.x.shape)
    groups = _groups(a, 64)
    inside = groups < a.scale.shape[1]
    scale[:, inside] = a.scale[:, groups[inside]]
    return (a.x * scale) @ a.y


def _halves_of_bytes(a: Arrays) -> Array:
    """Bytes outside of the tensor are 0 and their halves -8: times rows of y that may be there."""
    rows, width = a.x.shape
    blocks = -(-width // 64)
    padded = np.zeros((rows, blocks, 1, 64), np.int64)
    padded.reshape(rows, blocks * 64)[:, :width] = a.x
    halves = np.concatenate([padded & 15, padded >> 4], axis=2) - 8
    left = halves.reshape(rows, blocks * 128)
    return left[:, : a.y.shape[0]] @ a.y[: left.shape[1]]


def _normalised(a: Arrays) -> Array:
    return ((a.x - a.mean[:, None]) * a.scale[:, None]) @ a.y


def _masked_before(a: Arrays) -> Array:
    return np.tril(a.x) @ a.y


def _used_twice(a: Arrays) -> Array:
    return a.x @ a.y - a.x.sum(axis=1, keepdims=True)


def _kept(a: Arrays) -> Array:
    blocks = -(-a.y.shape[0] // 64)
    padded = np.zeros((blocks * 64, a.y.shape[1]))
    padded[: a.y.shape[0]] = a.y
    return a.x @ padded.reshape(blocks, 64, a.y.shape[1]).sum(axis=0)


def _gathered(a: Arrays) -> Array:
    inside = (a.rows >= 0) & (a.rows < a.x.shape[0])
    left = np.zeros((a.rows.size, a.x.shape[1]))
    left[inside] = a.x[a.rows[inside]]
    return left @ a.y


_OF_64 = _sizes(64)
DOT_FACTORS = {
    "shared_left": _product(lambda a: np.maximum(a.x @ a.y, 0) * (a.x @ a.w)),
    "shared_right": _product(lambda a: a.x @ a.y - 2 * (a.w @ a.y)),
    "one_sum": _product(lambda a: a.x @ a.y + a.v @ a.w),
    "square": _product(lambda a: a.x @ a.x.T, tuple({"M": d["M"], "K": d["K"]} for d in _SIZES)),
    "dequantised_left": _product(
        _dequantised_left, _with(_OF_64, G=19), x="whole_bytes", scale="powers_of_2"
    ),
    "dequantised_right": _product(lambda a: a.x @ a.y.T, _OF_64, y="whole_bytes"),
    "halves_of_bytes": _product(
        _halves_of_bytes,
        tuple({**d, "K": d["K"] // 2 * 2, "H": d["K"] // 2} for d in _sizes(128)),
        x="wide",
    ),
    "normalised": _product(_normalised, scale="powers_of_2"),
    "activated": _product(lambda a: np.maximum(a.x, 0) @ a.y),
    "added_before": _product(lambda a: (a.x + a.w) @ a.y),
    "rounded_before": _product(lambda a: a.x @ a.y),
    "rounded_to_tf32": _product(lambda a: a.x @ a.y.T),
    "masked_before": _product(_masked_before, _SQUARES),
    "used_twice": _product(_used_twice),
    "kept": _product(_kept, _OF_64),
    "filled": _product(lambda a: a.x @ a.y),
    "gathered": _product(_gathered, _with(_SIZES, V=37), rows="indices"),
}

# ---- dot_computed.tile ---------------------------------------------------------------------------


def _second_kept(a: Arrays) -> Array:
    """Each turn multiplies the same rows of y."""
    columns = a.x.shape[1]
    padded = np.zeros((a.x.shape[0], -(-columns // 32) * 32))
    padded[:, :columns] = np.maximum(a.x, 0)
    turns = padded.reshape(a.x.shape[0], padded.shape[1] // 32, 32).sum(axis=1)
    return turns @ np.maximum(a.y, 0)


def _second_of_a_product(a: Arrays) -> Array:
    return np.maximum(a.x, 0) @ np.clip(a.w @ a.y, -8, 8)


DOT_COMPUTED = {
    "both_activated": _product(lambda a: np.maximum(a.x, 0) @ np.maximum(a.y, 0)),
    "both_activated_nt": _product(lambda a: np.maximum(a.x, 0) @ np.maximum(a.y, 0).T),
    "scaled_and_dequantised": _product(
        lambda a: (a.x * a.scale[:, None]) @ a.y.T, _OF_64, y="whole_bytes", scale="powers_of_2"
    ),
    "shared_second": _product(
        lambda a: (np.maximum(a.x, 0) - 2 * np.minimum(a.w, 0)) @ np.maximum(a.y, 0)
    ),
    "second_kept": _product(_second_kept),
    "second_of_a_product": _product(_second_of_a_product, _OF_64),
    "few_columns": _product(lambda a: a.x @ a.y.T, y="whole_bytes"),
    "tf32_nt": _product(lambda a: a.x @ a.y.T),
    "tf32_nn": _product(lambda a: a.x @ a.y),
    "tf32_tn": _product(lambda a: a.x.T @ a.y),
    "tf32_used_twice": _product(lambda a: a.x @ a.y.T - a.x.sum(axis=1, keepdims=True)),
    "f8_nn": _product(lambda a: a.x @ a.y, _OF_64),
    "f8_tn": _product(lambda a: a.x.T @ a.y, _OF_64),
    "i8_nn": _product(lambda a: a.x @ a.y, _OF_64),
}

# ---- dot_nests.tile ------------------------------------------------------------------------------


def _under_a_loop(a: Arrays) -> Array:
    return (a.x @ a.y).max(axis=1, initial=-1000000.0)


def _one_feeds_the_other(a: Arrays) -> Array:
    return np.clip(a.x @ a.y * 0.125, -4, 4) @ a.w


def _chained(a: Arrays) -> Array:
    return np.clip(a.q @ a.k.T, 0, 8) @ a.v


def _three_in_a_chain(a: Arrays) -> Array:
    scores = a.q @ a.k.T
    found = np.zeros((a.q.shape[0], 32))
    for first in range(0, a.k.shape[0], 32):
        weights = np.clip(scores[:, first : first + 32], 0, 4)
        found += np.clip(weights @ a.v[first : first + 32], -8, 8) @ a.w
    return found + scores.max(axis=1, initial=0.0, keepdims=True)


def _carried_beside(a: Arrays) -> Array:
    turns = -(-a.x.shape[1] // 32)
    return a.x @ a.y + a.bias * (-1) ** turns * 2 * turns


def _exchanged(a: Arrays) -> Array:
    """A turn adds to the sum that the turn before it did not."""
    turns = -(-a.x.shape[1] // 32)
    parts = [_chosen(a, 32, lambda b, rest=rest: b % 2 == rest) for rest in (0, 1)]
    # After the last turn `odd` is what that added to.
    return parts[turns % 2] - parts[(turns + 1) % 2]


def _changed_in_the_loop(a: Arrays) -> Array:
    turns = -(-a.x.shape[1] // 32)
    signs = np.array([(-1.0) ** (turns - 1 - b) for b in np.arange(a.x.shape[1]) // 32])
    return (a.x * signs.reshape(1, -1)) @ a.y + turns % 2


def _guarded(a: Arrays) -> Array:
    kept = np.arange(a.x.shape[0]) // 64 * 64 < a.rows
    return np.where(kept[:, None], a.x @ a.y, 0.0)


def _shared_sum(a: Arrays) -> Array:
    shares, blocks = a.z.shape[0], -(-a.x.shape[1] // 32)
    share = -(-blocks // max(1, shares))
    return np.array(
        [_chosen(a, 32, lambda b, s=s: s * share <= b < (s + 1) * share) for s in range(shares)]
    ).reshape(a.z.shape)


_CHAINS = tuple(
    {"M": m, "K": k} for m, k in ((24, 40), (0, 8), (8, 0), (1, 1), (65, 33), (72, 296))
)
DOT_NESTS = {
    "under_a_loop": _product(_under_a_loop),
    "stored_in_a_loop": _product(lambda a: a.x @ a.y),
    "after_each_other": _product(lambda a: a.x @ a.y + a.v @ a.w, _with(_SIZES, L=72)),
    "one_feeds_the_other": _product(_one_feeds_the_other),
    "chained": _product(_chained, _CHAINS),
    "three_in_a_chain": _product(_three_in_a_chain, _CHAINS),
    "started": _product(lambda a: a.x @ a.y + vars(a)["from"]),
    "in_place": _product(lambda a: a.x @ a.y + a.z),
    "carried_beside": _product(_carried_beside),
    "exchanged": _product(_exchanged),
    "changed_in_the_loop": _product(_changed_in_the_loop),
    "added_after": _product(lambda a: a.x @ a.y, _OF_64),
    "guarded": _product(_guarded, scalars={"rows": 70}),
    "shared_sum": _product(_shared_sum, _with(_SIZES, S=3)),
}

# ---- dot_pipelined.tile --------------------------------------------------------------------------

_BLOCK = 32  # of keys


def _blocks(rows: int, first: int = 0, step: int = 1) -> list[slice]:
    starts = range(first * _BLOCK, rows, step * _BLOCK)
    return [slice(start, min(start + _BLOCK, rows)) for start in starts]


def _halved(before: Array, after: Array) -> Array:
    return np.where(after > before, 0.5, 1.0)


def _online(a: Arrays) -> Array:
    rows = a.q.shape[0]
    most, total, found = np.full((rows, 1), -1000.0), np.zeros((rows, 1)), np.zeros((rows, 64))
    for block in _blocks(a.k.shape[0]):
        scores = a.q @ a.k[block].T
        larger = np.maximum(most, scores.max(axis=1, keepdims=True))
        weights = np.maximum(scores - larger, -4) + 5
        factor = _halved(most, larger)
        total = total * factor + weights.sum(axis=1, keepdims=True)
        found = found * factor + weights @ a.v[block]
        most = larger
    return found + total


def _of_two_scores(a: Arrays) -> Array:
    found = np.zeros((a.q.shape[0], 64))
    for block in _blocks(a.k.shape[0], 1, 2):
        weights = np.clip(a.q @ a.k[block].T, -4, 4) + np.clip(a.q @ a.w[block].T, -4, 4)
        found = found * 0.5 + weights @ a.v[block]
    return found


def _scaled_a_turn_later(a: Arrays) -> Array:
    rows = a.q.shape[0]
    most, found = np.zeros((rows, 1)), np.zeros((rows, 64))
    for block in _blocks(a.k.shape[0]):
        # Keys beyond the end are zeros, and so are their scores.
        beyond = np.zeros((rows, _BLOCK - (block.stop - block.start)))
        scores = np.hstack([a.q @ a.k[block].T, beyond])
        weights = np.clip(scores[:, : block.stop - block.start], -2, 6)
        found = found * np.where(most > 8, 0.5, 1.0) + weights @ a.v[block]
        most = scores.max(axis=1, keepdims=True)
    return found + most


def _for_each_head(a: Arrays) -> Array:
    heads, rows, _ = a.q.shape
    every = np.zeros((rows, 64))
    for head in range(heads):
        most, found = np.zeros((rows, 1)), np.zeros((rows, 64))
        for block in _blocks(a.k.shape[1]):
            scores = a.q[head] @ a.k[head, block].T
            larger = np.maximum(most, scores.max(axis=1, initial=-1000.0, keepdims=True))
            if block.stop - block.start < _BLOCK:
                larger = np.maximum(larger, 0)
            weights = np.maximum(scores - larger, -4)
            found = found * _halved(most, larger) + weights @ a.v[head, block]
            most = larger
        every += found
    return every


def _seen(window: int) -> Reference:
    """Each row sees so many keys, up to its own."""

    def found(a: Arrays) -> Array:
        rows, keys = a.q.shape[0], a.k.shape[0]
        sums = np.zeros((rows, 64))
        for row in range(rows):
            most = -1000.0
            # Blocks of which a row sees no key change nothing.
            for block in _blocks(min(row + 1, keys)):
                key = np.arange(block.start, min(block.start + _BLOCK, keys))
                is_seen = (key <= row) & (key > row - window)
                scores = np.where(is_seen, a.k[key] @ a.q[row], -1000.0)
                larger = max(most, scores.max())
                weights = np.where(is_seen, np.maximum(scores - larger, -4) + 5, 0)
                sums[row] = sums[row] * _halved(most, larger) + weights @ a.v[key]
                most = larger
        return sums

    return found


DOT_PIPELINED = {
    "online": _product(_online, _CHAINS),
    "by_hand": _product(_online, _CHAINS),
    "of_two_scores": _product(_of_two_scores, _CHAINS),
    "scaled_a_turn_later": _product(_scaled_a_turn_later, _CHAINS),
    "for_each_head": _product(_for_each_head, _with(_CHAINS, H=3)),
    "causal": _product(_seen(1 << 40), _CHAINS),
    "windowed": _product(_seen(100), _CHAINS),
}

# ---- dot_results.tile ----------------------------------------------------------------------------


def _biased(a: Arrays) -> Array:
    return (a.x @ a.y) * (a.row[:, None] * a.column) + (a.residual + a.bias)


def _largest_of_rows(a: Arrays) -> Mapping[str, Array]:
    sums = a.x @ a.y
    return {"most": sums.max(axis=1), "at": sums.argmax(axis=1)}


def _sums_of_both(a: Arrays) -> Mapping[str, Array]:
    sums = a.x @ a.y
    rows = [sums[:, j : j + 64].sum(axis=1) for j in range(0, sums.shape[1], 64)]
    columns = [sums[i : i + 64].sum(axis=0) for i in range(0, sums.shape[0], 64)]
    return {
        "of_rows": np.array(rows).reshape(a.of_rows.shape[::-1]).T,
        "of_columns": np.array(columns).reshape(a.of_columns.shape),
    }


def _normalised_after(a: Arrays) -> Array:
    sums = a.x @ a.y
    return np.floor((sums.max(axis=1, keepdims=True) - sums) * 0.25)


def _masked_after(a: Arrays) -> Array:
    return np.tril(a.x @ a.y)


def _added_atomically(a: Arrays) -> Array:
    return a.z + a.x @ a.y


_TALL = tuple({"M": d["M"], "K": d["K"]} for d in _SIZES)
DOT_RESULTS = {
    "biased": _product(_biased),
    "activated_after": _product(lambda a: np.maximum(a.x @ a.y, 0), _OF_64),
    "largest_of_rows": _entry(_largest_of_rows, _TALL),
    "sums_of_both": _entry(
        _sums_of_both,
        tuple({**d, "I": -(-d["M"] // 64), "J": -(-d["N"] // 64)} for d in _SIZES),
    ),
    "normalised_after": _product(_normalised_after, _TALL),
    "stored_transposed": _product(lambda a: (a.x @ a.y).T),
    "stored_twice": _entry(lambda a: {"wide": a.x @ a.y, "narrow": (a.x @ a.y) * 0.5}),
    "masked_after": _product(_masked_after),
    "added_atomically": _product(_added_atomically, _with(_TALL, S=3)),
}
