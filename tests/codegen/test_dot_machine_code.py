"""Products as instructions of sm_80: the lines that matter, and what ptxas says of registers."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from test_machine_code import compiled, ptx_of

MATMUL = """
#[kernel]
#[instance(T = {element}, A = {total}, BM = {m}, BN = {n}, BK = {k})]
pub fn matmul<
    T: Any, A: Num, M: Dim, N: Dim, K: Dim, const BM: usize, const BN: usize, const BK: usize,
>(
    c: Part<&mut Tensor<A, M, N>, BM, BN>, a: &Tensor<T, M, K>, b: &Tensor<T, K, N>,
) {{
    let mut sum = Tile::<A, BM, BN>::zeros();
    for k in 0..K.div_ceil(BK) {{
        sum = dot(a.load::<BM, BK>([c.id(0), k]), b.load::<BK, BN>([k, c.id(1)]), sum);
    }}
    c.store(sum);
}}
"""


def instructions(element: str, total: str, m: int, n: int, k: int) -> Counter[str]:
    """How often each instruction stands in the PTX for aligned tensors, for sm_80."""
    text = MATMUL.format(element=element, total=total, m=m, n=n, k=k)
    made = compiled(text, "sm_80")
    [kernel] = made.kernels
    for variant in kernel.variants:
        spilled = variant.spill_store_bytes + variant.spill_load_bytes
        assert (spilled, variant.stack_bytes) == (0, 0), variant.symbol
    lines = ptx_of(made, f"{kernel.symbol}__v16")
    words = (re.match(r"\s+(?:@%p\d+\s+)?([a-z][\w.]*)", line) for line in lines)
    return Counter(word[1] for word in words if word)


def test_a_loop_of_bf16_products_is_mma_and_ldmatrix() -> None:
    found = instructions("bf16", "f32", 128, 128, 32)
    # 8 warps: 32 by 64 elements each, and 32 along k.
    assert found["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] == 2 * 8 * 2
    # Those of the first half also before the loop.
    assert found["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == 4 * 3 // 2
    assert found["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] == 8 * 3 // 2
    # For the first three turns, and in each turn for a later one.
    assert found["cp.async.cg.shared.global"] == 4 * 2 * 128 * 32 * 2 // (16 * 256)
    assert not any(word.startswith(("ld.local", "st.local", "prmt")) for word in found)


@pytest.mark.parametrize(
    ("element", "total", "mma", "count"),
    [
        ("f16", "f16", "m16n8k16.row.col.f16.f16.f16.f16", 2 * 4 * 2),
        ("i8", "i32", "m16n8k32.row.col.s32.s8.s8.s32", 2 * 4),
        ("u8", "i32", "m16n8k32.row.col.s32.u8.u8.s32", 2 * 4),
        ("f64", "f64", "m8n8k4.row.col.f64.f64.f64.f64", 4 * 4 * 8),
        # f8 is widened: sums of tensor cores that take it have fewer bits.
        ("f8e4m3", "f32", "m16n8k16.row.col.f32.f16.f16.f32", 2 * 4 * 2),
    ],
)
def test_each_type_has_its_instruction(element: str, total: str, mma: str, count: int) -> None:
    found = instructions(element, total, 64, 64, 32)
    assert found[f"mma.sync.aligned.{mma}"] == count


def test_products_of_f32_are_exact() -> None:
    found = instructions("f32", "f32", 64, 64, 16)
    assert found["fma.rn.f32"] == 64 * 64 * 16 // 128
    assert not any(word.startswith("mma") for word in found)
