"""The suite's operations as PyTorch has them: run as they are, compiled, and in float64 as what is
exact. Each takes the inputs and scalars of its cases."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)


def add(x, y):
    return x + y


def transpose(x):
    return x.t().contiguous()


def softmax(x):
    return torch.softmax(x, 1)


def layernorm(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[1:], weight, bias, eps)


def rmsnorm(x, weight, eps):
    return F.rms_norm(x, x.shape[1:], weight, eps)


def add_rmsnorm(x, y, weight, eps):
    added = x + y
    return F.rms_norm(added, x.shape[1:], weight, eps), added


def sum_all(x):
    return x.sum().reshape(1)


def sum_rows(x):
    return x.sum(1)


def sum_columns(x):
    return x.sum(0, keepdim=True)


def gelu(x):
    return F.gelu(x)


def silu_mul(gate, up):
    return F.silu(gate) * up


def bias_gelu(x, bias):
    return F.gelu(x + bias)


def rope(x, cos, sin):
    """Halves paired: x is (batch, heads, positions, 2, half of a head)."""
    wide = _wide(x)
    a, b = wide[..., 0, :], wide[..., 1, :]
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-2)
    return turned.to(x.dtype)


def cross_entropy(logits, targets):
    return F.cross_entropy(_wide(logits), targets.long(), reduction="none")


def logsumexp(x):
    return torch.logsumexp(_wide(x), 1)


def argmax(x):
    return x.argmax(1).to(torch.int32)


def at_index(x, index):
    """What is at the index that was found, in place of the index: equal elements are as good."""
    return _picked(x, index[:, None])[:, 0]


def cumsum_rows(x):
    return x.cumsum(1)


def topk8(x):
    values, indices = x.topk(8, dim=1)
    return values, indices.to(torch.int32)


def values_at_indices(x, values, indices):
    return values, _picked(x, indices)


def embedding(table, ids):
    return F.embedding(ids, table)


def layernorm_backward(dy, x, weight, mean, rstd):
    """The gradients of x, weight and bias. In float64 by the definition, else by PyTorch's own
    kernel for it."""
    if x.dtype != torch.float64:
        rows = mean[:, None], rstd[:, None]
        dx, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
            dy, x, list(x.shape[1:]), *rows, weight, weight, [True, True, True]
        )
        return dx, dweight[None], dbias[None]
    normal = (x - mean[:, None]) * rstd[:, None]
    g = dy * weight
    along = (g * normal).mean(1, keepdim=True)
    dx = (g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None]
    return dx, (dy * normal).sum(0, keepdim=True), dy.sum(0, keepdim=True)


def quantise(x):
    """In float64 what is to be rounded."""
    largest = _wide(x).abs().amax(1, keepdim=True)
    steps = _wide(x) / largest * 127
    quantised = steps if x.dtype == torch.float64 else torch.round(steps).to(torch.int8)
    return quantised, largest[:, 0] / 127


def quantise_f8(x):
    """In float64 what is to be rounded."""
    largest = _wide(x).abs().amax(1, keepdim=True)
    scaled = _wide(x) / largest * 448
    quantised = scaled if x.dtype == torch.float64 else scaled.to(torch.float8_e4m3fn)
    return quantised, largest[:, 0] / 448


def matmul(a, b):
    return a @ b


def matmul_nt(a, b):
    return a @ b.t()


def matmul_tf32(a, b):
    torch.backends.cuda.matmul.allow_tf32 = True
    return a @ b


def matmul_tf32_nt(a, b):
    torch.backends.cuda.matmul.allow_tf32 = True
    return a @ b.t()


def linear_of_one_row(w, x):
    return F.linear(x[None], w)[0]


def matmul_bias_gelu(x, w, bias):
    return F.gelu(F.linear(x, w, bias), approximate="tanh")


def product_of_three(x, w, _bias):
    return x @ w.t()


def matmul_residual(x, w, residual, row, column):
    found = residual + (x @ w.t()) * row[:, None] * column
    return found.to(x.dtype)


def product_of_five(x, w, _residual, _row, _column):
    return x @ w.t()


def gated_mlp(x, gate, up):
    return F.silu(x @ gate.t()) * (x @ up.t())


def matmul_grouped(x, w, ends):
    """In float64, which PyTorch's own takes not, expert by expert."""
    if x.dtype != torch.float64:
        return torch._grouped_mm(x, w.transpose(1, 2), offs=ends)
    starts = [0, *ends.tolist()]
    rows = zip(starts, starts[1:], w, strict=False)
    return torch.cat([x[first:last] @ expert.t() for first, last, expert in rows])


def matmul_f8(a, b, scale):
    if a.dtype == torch.float64:
        return a @ b.t() * scale
    return _scaled(a, b, fast=True)


def matmul_f8_exact(a, b, scale):
    return _scaled(a, b, fast=False)


def matmul_w8a16(x, q, scale):
    return x @ (q.double() * scale[:, None]).t()


def matmul_w4a16(x, q, scale):
    return x @ _of_halves(q, scale).t()


def w8_in_16_bits(x, q, scale):
    """The product alone, with weights that were made before."""
    return x @ _kept(q, lambda: (q.float() * scale[:, None]).to(x.dtype)).t()


def w4_in_16_bits(x, q, scale):
    """The product alone, with weights that were made before."""
    return x @ _kept(q, lambda: _of_halves(q, scale.double()).to(x.dtype)).t()


def _scaled(a, b, *, fast):
    """The scale is 1."""
    one = _kept(a, lambda: torch.ones((), device=a.device))
    return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)


def _of_halves(q, scale):
    """Weights of 4 bits: the low halves of 64 bytes, then the high ones."""
    pairs = q.reshape(q.shape[0], -1, 1, 64)
    halves = torch.cat([pairs & 15, pairs >> 4], 2).to(scale.dtype) - 8
    return (halves * scale[:, :, None, None]).reshape(q.shape[0], -1)


_KEPT: dict = {}


def _kept(tensor, make):
    """What was made of a tensor at its first use, while tensors of its shape are used."""
    if any(shape != tensor.shape for shape, _ in _KEPT):
        _KEPT.clear()
    key = tensor.shape, tensor.data_ptr()
    if key not in _KEPT:
        _KEPT[key] = make()
    return _KEPT[key]


def _picked(x, index):
    """x at an index that a faulty kernel may have made: CUDA takes no more work after one that is
    outside."""
    return x.gather(1, index.long().clamp(0, x.shape[1] - 1))


def _wide(x):
    return x if x.dtype == torch.float64 else x.float()
