"""`dot` of every element type, in both forms, of factors that come in several ways."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tests.programs.generate.use import F8, Array
from tests.programs.table import NUMPY, Arrays, Entry

# By the type of the factors: in memory, and of the sum.
_TYPES = {
    "f16": ("f16", "f32"), "bf16": ("bf16", "f32"), "f32": ("f32", "f32"), "f64": ("f64", "f64"),
    "tf32": ("f32", "f32"), "i8": ("i8", "i32"), "u8": ("u8", "i32"),
    **{element: (element, "f32") for element in F8},
}  # fmt: skip

_TEXT = """//! Generated: products.

#[kernel(grid = [1])]
#[hint(warps = {warps})]
pub fn products(
    y0: &mut Tensor<{S}, 32, 64>,
    y1: &mut Tensor<{S}, 32, 64>,
    y2: &mut Tensor<{S}, 64, 32>,
    y3: &mut Tensor<{S}, 2, 16, 48>,
    y4: &mut Tensor<{S}, 1, 16>,
    a: &Tensor<{M}, 32, 48>,
    b: &Tensor<{M}, 48, 64>,
    c: &Tensor<{S}, 32, 64>,
    p: &Tensor<{M}, 2, 16, 32>,
    q: &Tensor<{M}, 2, 32, 48>,
) {{
    let (t, u) = (a.load::<32, 48>([0, 0]){to}, b.load::<48, 64>([0, 0]){to});
    unsafe {{
        y0.store([0, 0], t.dot(u));
        y1.store([0, 0], dot(t, u, c.load::<32, 64>([0, 0])));
        y2.store([0, 0], u.t().dot(a.t().load::<48, 32>([0, 0]){to}));
        let (r, s) = (p.load::<2, 16, 32>([0, 0, 0]){to}, q.load::<2, 32, 48>([0, 0, 0]){to});
        y3.store([0, 0, 0], r.dot(s));
        let (_, v) = t.split::<0>();
        y4.store([0, 0], v.flip::<0>().reshape::<48, 16>().t().reshape::<1, 768>()
            .dot(u.reshape::<3072>().split::<0>().0.split::<0>().0.reshape::<768, 1>())
            .broadcast::<1, 16>());
    }}
}}
"""


def product_programs() -> dict[str, tuple[str, Mapping[str, Entry]]]:
    """Texts and entries, by name."""
    found = {}
    for number, (element, (memory, total)) in enumerate(_TYPES.items()):
        to = ".to::<tf32>()" if element == "tf32" else ""
        text = _TEXT.format(S=total, M=memory, to=to, warps=(4, 1, 8, 2)[number % 4])
        entry = Entry(
            partial(_products, NUMPY[total]), dims=({},), data=dict.fromkeys("abcpq", "tame")
        )
        found[f"products_{element}"] = text, {"products": entry}
    return found


def _products(total: type, arrays: Arrays) -> Mapping[str, Array]:
    """Small whole numbers: exact in any order."""
    a, b, c, p, q = (getattr(arrays, name).astype(np.float64) for name in "abcpq")
    row = np.flip(a[16:], 0).reshape(48, 16).T.reshape(768) @ b.ravel()[:768]
    found = {"y0": a @ b, "y1": a @ b + c, "y2": (a @ b).T, "y3": p @ q}
    found["y4"] = np.full((1, 16), row)
    return {name: values.astype(total) for name, values in found.items()}
