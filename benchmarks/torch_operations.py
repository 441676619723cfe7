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


def _picked(x, index):
    """x at an index that a faulty kernel may have made: CUDA takes no more work after one that is
    outside."""
    return x.gather(1, index.long().clamp(0, x.shape[1] - 1))


def _wide(x):
    return x if x.dtype == torch.float64 else x.float()
