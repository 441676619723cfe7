# ruff: noqa: N803 (constants of a kernel are capital letters in Triton)
"""Products of matrices in Triton: what its users would write, by pointers and by descriptors.

The second is persistent: a block goes on to the next tile, and loads and stores are TMA's.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tilec.bench import tuned

_TILES = (
    {"bm": 128, "bn": 256, "bk": 64, "warps": 8, "stages": 3},
    {"bm": 128, "bn": 128, "bk": 64, "warps": 4, "stages": 4},
)


@triton.jit
def _tile_of(number, rows, columns, G: tl.constexpr):
    """Tiles in groups of G rows, so that those that run at once share what they read."""
    group = number // (G * columns)
    first = group * G
    size = tl.minimum(rows - first, G)
    within = number % (G * columns)
    return first + within % size, within // size


@triton.jit
def _by_pointers(
    c, a, b, m, n, k, row_of_a, k_of_b, column_of_b, row_of_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    i, j = _tile_of(tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN), 8)
    rows = (i * BM + tl.arange(0, BM)).to(tl.int64)
    columns = (j * BN + tl.arange(0, BN)).to(tl.int64)
    inner = tl.arange(0, BK)
    left = a + (rows % m)[:, None] * row_of_a + inner[None, :]
    right = b + inner[:, None] * k_of_b + (columns % n)[None, :] * column_of_b
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(k, BK)):
        inside = inner < k - step * BK
        x = tl.load(left, inside[None, :], 0.0)
        y = tl.load(right, inside[:, None], 0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * k_of_b
    here = c + rows[:, None] * row_of_c + columns[None, :]
    tl.store(here, total.to(c.dtype.element_ty), (rows < m)[:, None] & (columns < n)[None, :])


def _launched(c, a, b, k_of_b, column_of_b, choice):
    m, n, k = *c.shape, a.shape[1]
    bm, bn, bk = choice["bm"], choice["bn"], choice["bk"]
    _by_pointers[(triton.cdiv(m, bm) * triton.cdiv(n, bn),)](
        c, a, b, m, n, k, a.stride(0), k_of_b, column_of_b, c.stride(0),
        BM=bm, BN=bn, BK=bk, num_warps=choice["warps"], num_stages=choice["stages"],
    )  # fmt: skip


@tuned(_TILES)
def matmul(c, a, b, **choice):
    _launched(c, a, b, b.stride(0), 1, choice)


@tuned(_TILES)
def matmul_nt(c, a, b, **choice):
    _launched(c, a, b, 1, b.stride(0), choice)


@triton.jit
def _by_descriptors(
    c, a, b, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NT: tl.constexpr, SMS: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), rows * columns, SMS, flatten=True):
        i, j = _tile_of(tile, rows, columns, 8)
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(k, BK)):
            x = a.load([i * BM, step * BK])
            if NT:  # noqa: SIM108 (decided when it is compiled)
                y = b.load([j * BN, step * BK]).T
            else:
                y = b.load([step * BK, j * BN])
            total = tl.dot(x, y, total)
        c.store([i * BM, j * BN], total.to(c.dtype))


def _persistent(c, a, b, *, transposed, choice):
    m, n, k = *c.shape, a.shape[1]
    bm, bn, bk = choice["bm"], choice["bn"], choice["bk"]
    sms = torch.cuda.get_device_properties(c.device).multi_processor_count
    _by_descriptors[(min(sms, triton.cdiv(m, bm) * triton.cdiv(n, bn)),)](
        TensorDescriptor.from_tensor(c, [bm, bn]),
        TensorDescriptor.from_tensor(a, [bm, bk]),
        TensorDescriptor.from_tensor(b, [bn, bk] if transposed else [bk, bn]),
        m, n, k,
        BM=bm, BN=bn, BK=bk, NT=transposed, SMS=sms,
        num_warps=choice["warps"], num_stages=choice["stages"],
    )  # fmt: skip


@tuned(_TILES)
def matmul_tma(c, a, b, **choice):
    _persistent(c, a, b, transposed=False, choice=choice)


@tuned(_TILES)
def matmul_nt_tma(c, a, b, **choice):
    _persistent(c, a, b, transposed=True, choice=choice)


@triton.jit
def _gemv(y, w, x, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        j = start + tl.arange(0, B)
        t = tl.load(w + row * columns + j, j < columns, 0.0).to(tl.float32)
        total += t * tl.load(x + j, j < columns, 0.0).to(tl.float32)
    tl.store(y + row, tl.sum(total, 0).to(y.dtype.element_ty))


@tuned([{"block": b, "warps": w} for b, w in ((1024, 4), (2048, 4), (4096, 8), (1024, 2))])
def gemv(y, w, x, *, block, warps):
    _gemv[(w.shape[0],)](y, w, x, w.shape[1], B=block, num_warps=warps)
