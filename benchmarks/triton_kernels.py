# ruff: noqa: N803 (constants of a kernel are capital letters in Triton)
"""The suite's kernels in Triton, written for it: the rivals that a Triton user would have.

Each function takes the outputs, the inputs, the scalars, and what is to be tuned. `tuned` has the
harness find the fastest configuration of a case before anything is timed. Rows are one program
each: whole in registers up to 32768 elements, in a loop beyond, where the second pass goes from the
end, so that it finds in the cache what the first read last.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tilec.bench import tuned

_LONGEST_ROW = 32768  # held in registers by one program


def _row_choices(columns: int) -> list[dict[str, int]]:
    """Warps, and for long rows the block of the loop."""
    if columns <= 512:
        return [{"warps": w, "block": 0} for w in (1, 2, 4)]
    if columns <= 2048:
        return [{"warps": w, "block": 0} for w in (2, 4, 8)]
    if columns <= 8192:
        return [{"warps": w, "block": 0} for w in (4, 8, 16)]
    if columns <= _LONGEST_ROW:
        return [{"warps": w, "block": 0} for w in (8, 16, 32)]
    return [{"warps": w, "block": b} for w, b in ((8, 4096), (16, 8192), (32, 16384))]


def _rows_of_second(y, x, *_):
    return _row_choices(x.shape[1])


def _rows_of_third(y, z, x, *_):
    return _row_choices(x.shape[1])


_STREAM = tuple({"block": b, "warps": w} for b, w in ((1024, 4), (2048, 4), (2048, 8), (4096, 8)))


def _block(columns: int, block: int) -> int:
    return block or triton.next_power_of_2(columns)


# ---- element by element --------------------------------------------------------------------------


@triton.jit
def _add(z, x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    m = i < n
    tl.store(z + i, tl.load(x + i, m) + tl.load(y + i, m), m)


@tuned(_STREAM)
def add(z, x, y, *, block, warps):
    n = x.numel()
    _add[(triton.cdiv(n, block),)](z, x, y, n, B=block, num_warps=warps)


@triton.jit
def _gelu_of(x):
    return x * 0.5 * (1.0 + tl.erf(x * 0.70710678118654752))


@triton.jit
def _gelu(y, x, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    m = i < n
    t = tl.load(x + i, m).to(tl.float32)
    tl.store(y + i, _gelu_of(t).to(y.dtype.element_ty), m)


@tuned(_STREAM)
def gelu(y, x, *, block, warps):
    n = x.numel()
    _gelu[(triton.cdiv(n, block),)](y, x, n, B=block, num_warps=warps)


@triton.jit
def _silu_mul(y, gate, up, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    m = i < n
    g = tl.load(gate + i, m).to(tl.float32)
    u = tl.load(up + i, m).to(tl.float32)
    tl.store(y + i, (g * tl.sigmoid(g) * u).to(y.dtype.element_ty), m)


@tuned(_STREAM)
def silu_mul(y, gate, up, *, block, warps):
    n = gate.numel()
    _silu_mul[(triton.cdiv(n, block),)](y, gate, up, n, B=block, num_warps=warps)


@triton.jit
def _bias_gelu(y, x, bias, columns, B: tl.constexpr):
    j = tl.program_id(0) * B + tl.arange(0, B)
    i = tl.program_id(1).to(tl.int64) * columns + j
    m = j < columns
    t = tl.load(x + i, m).to(tl.float32) + tl.load(bias + j, m).to(tl.float32)
    tl.store(y + i, _gelu_of(t).to(y.dtype.element_ty), m)


@tuned(_STREAM)
def bias_gelu(y, x, bias, *, block, warps):
    rows, columns = x.shape
    grid = (triton.cdiv(columns, block), rows)
    _bias_gelu[grid](y, x, bias, columns, B=block, num_warps=warps)


@triton.jit
def _transpose(y, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0) * R + tl.arange(0, R)
    j = tl.program_id(1) * C + tl.arange(0, C)
    m = (i < rows)[:, None] & (j < columns)[None, :]
    t = tl.load(x + i.to(tl.int64)[:, None] * columns + j[None, :], m)
    m = (j < columns)[:, None] & (i < rows)[None, :]
    tl.store(y + j.to(tl.int64)[:, None] * rows + i[None, :], tl.trans(t), m)


@tuned([{"r": r, "c": c, "warps": w} for r, c, w in ((64, 64, 4), (64, 64, 8), (128, 64, 8))])
def transpose(y, x, *, r, c, warps):
    rows, columns = x.shape
    grid = (triton.cdiv(rows, r), triton.cdiv(columns, c))
    _transpose[grid](y, x, rows, columns, R=r, C=c, num_warps=warps)


@triton.jit
def _rope(y, x, cos, sin, positions, H: tl.constexpr, R: tl.constexpr):
    s = tl.program_id(0) * R + tl.arange(0, R)
    head = tl.program_id(1).to(tl.int64)
    j = tl.arange(0, H)
    m = (s < positions)[:, None]
    angle = s[:, None] * H + j[None, :]
    c = tl.load(cos + angle, m)
    d = tl.load(sin + angle, m)
    first = (head * positions + s[:, None]) * (2 * H) + j[None, :]
    a = tl.load(x + first, m).to(tl.float32)
    b = tl.load(x + first + H, m).to(tl.float32)
    tl.store(y + first, (a * c - b * d).to(y.dtype.element_ty), m)
    tl.store(y + first + H, (a * d + b * c).to(y.dtype.element_ty), m)


@tuned([{"r": r, "warps": w} for r, w in ((16, 4), (32, 4), (32, 8), (64, 8))])
def rope(y, x, cos, sin, *, r, warps):
    batch, heads, positions, _, half = x.shape
    grid = (triton.cdiv(positions, r), batch * heads)
    _rope[grid](y, x, cos, sin, positions, H=half, R=r, num_warps=warps)


# ---- softmax and what is like it -----------------------------------------------------------------


@triton.jit
def _softmax_row(y, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, B)
    t = tl.load(x + row + j, j < columns, float("-inf")).to(tl.float32)
    e = tl.exp(t - tl.max(t, 0))
    tl.store(y + row + j, (e / tl.sum(e, 0)).to(y.dtype.element_ty), j < columns)


@triton.jit
def _online(x, row, columns, B: tl.constexpr):
    """The largest of a row and the sum of exp(x - largest), in one pass."""
    j = tl.arange(0, B)
    largest = tl.full([B], -3.0e38, tl.float32)
    total = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        i = start + j
        t = tl.load(x + row + i, i < columns, float("-inf")).to(tl.float32)
        above = tl.maximum(largest, t)
        total = total * tl.exp(largest - above) + tl.exp(t - above)
        largest = above
    top = tl.max(largest, 0)
    return top, tl.sum(total * tl.exp(largest - top), 0)


@triton.jit
def _softmax_loop(y, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    top, total = _online(x, row, columns, B)
    j = tl.arange(0, B)
    last = tl.cdiv(columns, B) - 1
    for k in range(last + 1):
        i = (last - k) * B + j
        t = tl.load(x + row + i, i < columns, float("-inf")).to(tl.float32)
        tl.store(y + row + i, (tl.exp(t - top) / total).to(y.dtype.element_ty), i < columns)


@tuned(_rows_of_second)
def softmax(y, x, *, block, warps):
    rows, columns = x.shape
    kernel = _softmax_loop if block else _softmax_row
    kernel[(rows,)](y, x, columns, B=_block(columns, block), num_warps=warps)


@triton.jit
def _logsumexp(y, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top, total = _online(x, row * columns, columns, B)
    tl.store(y + row, top + tl.log(total))


_LOOPS = tuple({"block": b, "warps": w} for b, w in ((4096, 8), (8192, 8), (8192, 16), (16384, 16)))


@tuned(_LOOPS)
def logsumexp(y, x, *, block, warps):
    rows, columns = x.shape
    _logsumexp[(rows,)](y, x, columns, B=block, num_warps=warps)


@triton.jit
def _cross_entropy(loss, logits, targets, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top, total = _online(logits, row * columns, columns, B)
    target = tl.load(targets + row)
    at_target = tl.load(logits + row * columns + target).to(tl.float32)
    tl.store(loss + row, top + tl.log(total) - at_target)


@tuned(_LOOPS)
def cross_entropy(loss, logits, targets, *, block, warps):
    rows, columns = logits.shape
    _cross_entropy[(rows,)](loss, logits, targets, columns, B=block, num_warps=warps)


# ---- norms ---------------------------------------------------------------------------------------


@triton.jit
def _rmsnorm_row(y, x, weight, eps, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, B)
    m = j < columns
    t = tl.load(x + row + j, m, 0.0).to(tl.float32)
    w = tl.load(weight + j, m, 0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(t * t, 0) / columns + eps)
    tl.store(y + row + j, (t * scale * w).to(y.dtype.element_ty), m)


@triton.jit
def _rmsnorm_loop(y, x, weight, eps, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, B)
    squares = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        t = tl.load(x + row + start + j, start + j < columns, 0.0).to(tl.float32)
        squares += t * t
    scale = tl.rsqrt(tl.sum(squares, 0) / columns + eps)
    last = tl.cdiv(columns, B) - 1
    for k in range(last + 1):
        i = (last - k) * B + j
        t = tl.load(x + row + i, i < columns, 0.0).to(tl.float32)
        w = tl.load(weight + i, i < columns, 0.0).to(tl.float32)
        tl.store(y + row + i, (t * scale * w).to(y.dtype.element_ty), i < columns)


@tuned(_rows_of_second)
def rmsnorm(y, x, weight, eps, *, block, warps):
    rows, columns = x.shape
    kernel = _rmsnorm_loop if block else _rmsnorm_row
    kernel[(rows,)](y, x, weight, eps, columns, B=_block(columns, block), num_warps=warps)


@triton.jit
def _add_rmsnorm(z, added, x, y, weight, eps, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, B)
    m = j < columns
    t = tl.load(x + row + j, m, 0.0) + tl.load(y + row + j, m, 0.0)
    tl.store(added + row + j, t, m)
    t = t.to(tl.float32)
    w = tl.load(weight + j, m, 0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(t * t, 0) / columns + eps)
    tl.store(z + row + j, (t * scale * w).to(z.dtype.element_ty), m)


@tuned(_rows_of_third)
def add_rmsnorm(z, added, x, y, weight, eps, *, block, warps):
    rows, columns = x.shape
    b = _block(columns, block)
    _add_rmsnorm[(rows,)](z, added, x, y, weight, eps, columns, B=b, num_warps=warps)


@triton.jit
def _layernorm_row(y, x, weight, bias, eps, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, B)
    m = j < columns
    t = tl.load(x + row + j, m, 0.0).to(tl.float32)
    centred = tl.where(m, t - tl.sum(t, 0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + eps)
    w = tl.load(weight + j, m, 0.0).to(tl.float32)
    b = tl.load(bias + j, m, 0.0).to(tl.float32)
    tl.store(y + row + j, (centred * scale * w + b).to(y.dtype.element_ty), m)


@triton.jit
def _layernorm_loop(y, x, weight, bias, eps, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, B)
    mean = tl.zeros([B], tl.float32)
    spread = tl.zeros([B], tl.float32)
    count = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        m = start + j < columns
        t = tl.load(x + row + start + j, m, 0.0).to(tl.float32)
        away = tl.where(m, t - mean, 0.0)
        count += tl.where(m, 1.0, 0.0)
        mean += away / (start // B + 1)
        spread += away * (t - mean)
    center = tl.sum(mean * count, 0) / columns
    off = mean - center
    scale = tl.rsqrt(tl.sum(spread + off * off * count, 0) / columns + eps)
    last = tl.cdiv(columns, B) - 1
    for k in range(last + 1):
        i = (last - k) * B + j
        t = tl.load(x + row + i, i < columns, 0.0).to(tl.float32)
        w = tl.load(weight + i, i < columns, 0.0).to(tl.float32)
        b = tl.load(bias + i, i < columns, 0.0).to(tl.float32)
        out = ((t - center) * scale * w + b).to(y.dtype.element_ty)
        tl.store(y + row + i, out, i < columns)


@tuned(_rows_of_second)
def layernorm(y, x, weight, bias, eps, *, block, warps):
    rows, columns = x.shape
    kernel = _layernorm_loop if block else _layernorm_row
    b = _block(columns, block)
    kernel[(rows,)](y, x, weight, bias, eps, columns, B=b, num_warps=warps)


@triton.jit
def _layernorm_backward(
    dx, dweight, dbias, dy, x, weight, mean, rstd, rows, columns, R: tl.constexpr, B: tl.constexpr
):
    p = tl.program_id(0)
    j = tl.arange(0, B)
    m = j < columns
    w = tl.load(weight + j, m, 0.0).to(tl.float32)
    of_weight = tl.zeros([B], tl.float32)
    of_bias = tl.zeros([B], tl.float32)
    for row in range(p * R, tl.minimum(p * R + R, rows)):
        at = row.to(tl.int64) * columns + j
        r = tl.load(rstd + row)
        d = tl.load(dy + at, m, 0.0).to(tl.float32)
        t = tl.load(x + at, m, 0.0).to(tl.float32)
        normal = tl.where(m, (t - tl.load(mean + row)) * r, 0.0)
        of_weight += d * normal
        of_bias += d
        g = d * w
        level = tl.sum(g, 0) / columns
        along = tl.sum(g * normal, 0) / columns
        tl.store(dx + at, ((g - level - normal * along) * r).to(dx.dtype.element_ty), m)
    tl.store(dweight + p * columns + j, of_weight, m)
    tl.store(dbias + p * columns + j, of_bias, m)


@tuned([{"r": r, "warps": w} for r, w in ((16, 8), (32, 8), (32, 16), (64, 16))])
def layernorm_backward(dx, dweight, dbias, dy, x, weight, mean, rstd, *, r, warps):
    rows, columns = x.shape
    programs = triton.cdiv(rows, r)
    partial = torch.empty((2, programs, columns), dtype=torch.float32, device=x.device)
    _layernorm_backward[(programs,)](
        dx, partial[0], partial[1], dy, x, weight, mean, rstd, rows, columns,
        R=r, B=triton.next_power_of_2(columns), num_warps=warps,
    )  # fmt: skip
    for output, parts in ((dweight, partial[0]), (dbias, partial[1])):
        grid = (triton.cdiv(columns, 64), 1)
        _sum_columns[grid](output, parts, programs, columns, R=32, C=64, num_warps=4)


# ---- sums ----------------------------------------------------------------------------------------


@triton.jit
def _sum(y, x, n, B: tl.constexpr):
    p = tl.program_id(0)
    total = tl.zeros([B], tl.float32)
    for start in range(p.to(tl.int64) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        total += tl.load(x + i, i < n, 0.0).to(tl.float32)
    tl.store(y + p, tl.sum(total, 0))


@tuned([{"block": b, "warps": w} for b, w in ((2048, 4), (4096, 8), (8192, 8), (8192, 16))])
def sum_all(y, x, *, block, warps):
    programs = min(triton.cdiv(x.numel(), block), 132 * 8)
    partial = torch.empty(programs, dtype=torch.float32, device=x.device)
    _sum[(programs,)](partial, x, x.numel(), B=block, num_warps=warps)
    _sum[(1,)](y, partial, programs, B=1024, num_warps=8)


@triton.jit
def _sum_rows(y, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        j = start + tl.arange(0, B)
        total += tl.load(x + row * columns + j, j < columns, 0.0).to(tl.float32)
    tl.store(y + row, tl.sum(total, 0).to(y.dtype.element_ty))


@tuned([{"block": b, "warps": w} for b, w in ((2048, 4), (4096, 4), (4096, 8), (16384, 16))])
def sum_rows(y, x, *, block, warps):
    rows, columns = x.shape
    _sum_rows[(rows,)](y, x, columns, B=block, num_warps=warps)


@triton.jit
def _sum_columns(y, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    j = tl.program_id(0) * C + tl.arange(0, C)
    p = tl.program_id(1)
    m = (j < columns)[None, :]
    total = tl.zeros([R, C], tl.float32)
    for start in range(p * R, rows, tl.num_programs(1) * R):
        i = (start + tl.arange(0, R)).to(tl.int64)[:, None]
        total += tl.load(x + i * columns + j[None, :], (i < rows) & m, 0.0).to(tl.float32)
    tl.store(y + p * columns + j, tl.sum(total, 0).to(y.dtype.element_ty), j < columns)


@tuned([{"r": r, "c": c, "warps": w} for r, c, w in ((16, 128, 4), (16, 256, 8), (32, 128, 8))])
def sum_columns(y, x, *, r, c, warps):
    rows, columns = x.shape
    shares = 16
    partial = torch.empty((shares, columns), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(columns, c), shares)
    _sum_columns[grid](partial, x, rows, columns, R=r, C=c, num_warps=warps)
    _sum_columns[(grid[0], 1)](y, partial, shares, columns, R=16, C=c, num_warps=warps)


# ---- along rows ----------------------------------------------------------------------------------


@triton.jit
def _argmax(y, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, B)
    t = tl.load(x + row * columns + j, j < columns, float("-inf"))
    tl.store(y + row, tl.argmax(t, 0).to(tl.int32))


@tuned(_rows_of_second)
def argmax(index, x, *, block, warps):
    rows, columns = x.shape
    _argmax[(rows,)](index, x, columns, B=_block(columns, block), num_warps=warps)


@triton.jit
def _cumsum(y, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    before = 0.0
    for start in range(0, columns, B):
        j = start + tl.arange(0, B)
        t = tl.load(x + row + j, j < columns, 0.0).to(tl.float32)
        tl.store(y + row + j, (before + tl.cumsum(t, 0)).to(y.dtype.element_ty), j < columns)
        before += tl.sum(t, 0)


@tuned([{"block": b, "warps": w} for b, w in ((2048, 4), (4096, 8), (8192, 16), (32768, 32))])
def cumsum_rows(y, x, *, block, warps):
    rows, columns = x.shape
    _cumsum[(rows,)](y, x, columns, B=block, num_warps=warps)


@triton.jit
def _topk(values, indices, x, columns, K: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, B)
    t = tl.load(x + row * columns + j, j < columns, float("-inf"))
    for k in tl.static_range(K):
        largest = tl.max(t, 0)
        at = tl.min(tl.where(t == largest, j, B), 0)
        tl.store(values + row * K + k, largest)
        tl.store(indices + row * K + k, at)
        t = tl.where(j == at, float("-inf"), t)


@tuned([{"warps": w} for w in (8, 16, 32)])
def topk8(values, indices, x, *, warps):
    rows, columns = x.shape
    b = triton.next_power_of_2(columns)
    _topk[(rows,)](values, indices, x, columns, K=8, B=b, num_warps=warps)


@triton.jit
def _embedding(y, table, ids, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(ids + row).to(tl.int64)
    j = tl.arange(0, B)
    t = tl.load(table + source * columns + j, j < columns)
    tl.store(y + row * columns + j, t, j < columns)


@tuned([{"warps": w} for w in (2, 4, 8)])
def embedding(y, table, ids, *, warps):
    rows, columns = y.shape
    b = triton.next_power_of_2(columns)
    _embedding[(rows,)](y, table, ids, columns, B=b, num_warps=warps)


@triton.jit
def _quantise(q, scale, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, B)
    m = j < columns
    t = tl.load(x + row * columns + j, m, 0.0).to(tl.float32)
    largest = tl.max(tl.abs(t), 0)
    steps = libdevice.rint(t * (127.0 / largest))
    tl.store(q + row * columns + j, steps.to(tl.int8), m)
    tl.store(scale + row, largest / 127.0)


@tuned(_rows_of_third)
def quantise(q, scale, x, *, block, warps):
    rows, columns = x.shape
    _quantise[(rows,)](q, scale, x, columns, B=_block(columns, block), num_warps=warps)


@triton.jit
def _quantise_f8(q, scale, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, B)
    m = j < columns
    t = tl.load(x + row * columns + j, m, 0.0).to(tl.float32)
    largest = tl.max(tl.abs(t), 0)
    tl.store(q + row * columns + j, (t * (448.0 / largest)).to(tl.float8e4nv), m)
    tl.store(scale + row, largest / 448.0)


@tuned(_rows_of_third)
def quantise_f8(q, scale, x, *, block, warps):
    rows, columns = x.shape
    _quantise_f8[(rows,)](q, scale, x, columns, B=_block(columns, block), num_warps=warps)
