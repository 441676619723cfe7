"""What each role does, as the names of operations in program order."""

from __future__ import annotations

import re

import pytest
from passes import after

# Tiles that two warpgroups compute together, in clusters of two blocks.
HEAD = """#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    c: Part<&mut Tensor<bf16, M, N>, 128, 256>,
    a: &Tensor<bf16, M, K>,
    b: &Tensor<bf16, N, K>,
    s: &Tensor<f32, M>,
) {
    let (i, j) = (c.id(0), c.id(1));
    let mut sum = Tile::<f32, 128, 256>::zeros();
"""
PRODUCT = "dot(a.load::<128, 64>([i, k]), b.load::<256, 64>([j, k]).t(), sum)"
OR_ONE = "dot(a.load_or::<128, 64>([i, k], 1.0), b.load::<256, 64>([j, k]).t(), sum)"
STEPS = "for k in 0..K.div_ceil(64)"
# Two blocks share the tiles of `b`: what is left of that at the loader's end, and around the store.
CLOSED, GUARDED = ["close"], ["if"]
END = "c.store(sum.to::<bf16>()); }"


def roles(body: str) -> tuple[list[str], list[str]]:
    """The operations of `warp`, and control flow, of the loader and of the math warps."""
    text = after("find_access_facts,specialise", f"{HEAD}{body} {END}")
    if "warp.roles" not in text:
        return [], []
    _, loader, math = re.split(r'"warp\.roles"\(\) \(\{|gpu\.yield\n *\}, \{', text)
    found = []
    for part in (loader, math):
        ops = re.findall(r'"warp\.(\w+)"|scf\.(\w+)', part)
        names = [name or other for name, other in ops]
        assert names[:2] == ["for", "program"], "both walk over the block's programs"
        found.append(names[2:])
    return found[0], found[1]


def test_a_loop_that_only_adds_releases_the_slot_of_the_turn_before() -> None:
    loader, math = roles(f"{STEPS} {{ sum = {PRODUCT}; }}")
    assert loader == ["for", "acquire", "fill", "fill", "publish", *CLOSED]
    assert math == [
        "is_program", "no_slot", "if", "for",
        "get", "tile", "tile", "dot", "drain", "release", "yield",
        "wait", "release", "yield", "yield", *GUARDED,
    ]  # fmt: skip


def test_sums_that_something_else_uses_are_waited_for_in_the_turn() -> None:
    loader, math = roles(f"{STEPS} {{ sum = {PRODUCT} * 0.5; }}")
    assert loader == ["for", "acquire", "fill", "fill", "publish", *CLOSED]
    assert math == [
        "is_program", "for", "get", "tile", "tile", "dot", "wait", "release", "yield", *GUARDED,
    ]  # fmt: skip


def test_what_is_loaded_outside_of_the_loop_is_got_there() -> None:
    text = f"""let q = a.load::<128, 64>([i, 0]);
    {STEPS} {{ sum = dot(q, b.load::<256, 64>([j, k]).t(), sum); }}"""
    loader, math = roles(text)
    assert loader == [
        "acquire", "fill", "publish", "for", "acquire", "fill", "publish",
    ]  # fmt: skip
    assert math[:4] == ["get", "tile", "no_slot", "if"]
    # That of b in the loop and after it, of a on both ways of the branch, after the products.
    wait = math.index("wait")
    assert [name for name in math[wait:] if name == "release"] == ["release"] * 3


@pytest.mark.parametrize(
    "body",
    [
        # How far it goes is data.
        "let n = s.load::<1>([0]).item().to::<i32>() as usize;"
        f"for k in 0..n {{ sum = {PRODUCT}; }}",
        # A product of what is computed.
        f"{STEPS} {{ sum = {PRODUCT.replace('.t()', '.t() * 2.0')}; }}",
        # Nothing to overlap with.
        "let k = 0; sum = " + PRODUCT + ";",
        # What is outside is no zero.
        f"{STEPS} {{ sum = {OR_ONE}; }}",
    ],
    ids=["data", "computed", "no loop", "fill"],
)  # fmt: skip
def test_what_has_no_roles(body: str) -> None:
    assert roles(body) == ([], [])
