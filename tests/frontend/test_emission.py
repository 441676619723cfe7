"""The shape of what is emitted: the kernel's slots and attributes, views, places, vocabulary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from front_end import checked, emitted

from tilec.frontend.emit import emit
from tilec.ir.dialect import context
from tilec.ir.places import span_of
from tilec.ir.walk import operations

CASES = Path(__file__).parent.parent / "cases"
KERNEL = """/// Scales rows.
#[kernel]
#[hint(fast_math, stages = 3, cluster = [2, 1])]
#[instance(T = f16, B = 64)]
pub fn scale<T: Float, M: Dim, N: Dim, const B: usize>(
    y: Part<&mut Tensor<T, M, N>, 1, B>,
    w: &Tensor<f32, 100>,
    s: u8,
) {
    y.store(y.load());
}
"""


def test_arguments_are_the_slots_of_the_interface() -> None:
    slots = re.findall(r"tile\.slot = \{([^}]*)\}", emitted(KERNEL))
    assert slots == [
        'element = "f16", kind = "pointer", name = "y"',
        'axis = 0 : i64, kind = "stride", name = "y"',
        'element = "f32", kind = "pointer", name = "w"',
        'element = "u8", kind = "scalar", name = "s"',
        'kind = "extent", name = "M"',
        'kind = "extent", name = "N"',
    ]


def test_a_kernel_says_what_its_manifest_needs() -> None:
    module = emitted(KERNEL)
    for part in (
        "func.func @scale__f16_64(",
        'tile.doc = "Scales rows."',
        'tile.generics = [{name = "T", value = "f16"}, {name = "B", value = 64 : i64}]',
        "tile.hints = {cluster = [2, 1], fast_math = true, stages = 3 : i64}",
        'tile.kernel, tile.name = "scale"',
        '{block = [1, 64], element = "f16", extents = ["M", "N"], kind = "tensor", name = "y"',
        '{element = "f32", extents = [100], kind = "tensor", name = "w", own = "shared"}',
        '{element = "u8", kind = "scalar", name = "s"}',
    ):
        assert part in module


def test_views_keep_integer_extents_static() -> None:
    module = emitted(KERNEL)
    assert 'memref<100xf32, strided<[1]>, {own = "shared"}>' in module
    assert 'memref<?x?xf16, strided<[?, 1]>, {own = "mut"}>' in module


def test_helpers_take_extents_first_and_lend_parts() -> None:
    module = emitted(
        """fn fill<N: Dim>(z: &mut Part<&mut Tensor<f32, N>, 64>, v: f32) {
    z.store(Tile::<f32, 64>::full(v + N as f32));
}
fn end<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) {}

#[kernel]
pub fn k<N: Dim>(mut z: Part<&mut Tensor<f32, N>, 64>) {
    fill(&mut z, 1.0);
    end(z);
}
"""
    )
    assert re.search(
        r"func\.func private @k\.fill\(%arg0: index, %arg1: memref<.*tile\.lent", module
    )
    assert '"tile.borrow"' in module and '"tile.move"' in module
    assert "call @k.fill(%arg1, " in module


LOOP = """#[kernel(grid = [1])]
pub fn k(a: usize, b: u64, s: usize) {{
    let mut r = 0;
    for i in {0} {{
        r += i as i64;
    }}
}}
"""


@pytest.mark.parametrize(
    ("range_", "inclusive"),
    [
        ("(2..a).step_by(s)", False),
        ("(2..=a).step_by(s)", True),
        ("(2..a).rev()", False),
        ("(2..a).step_by(s).rev().step_by(3)", False),
        ("(a..=a)", True),  # `a + 1` might not be a number
    ],
)
def test_a_counter_that_is_computed_is_said_to_be_in_its_range(
    range_: str, inclusive: bool
) -> None:
    [line] = [n for n in emitted(LOOP.format(range_)).splitlines() if '"tile.in_range"' in n]
    assert f"inclusive = {str(inclusive).lower()}" in line


@pytest.mark.parametrize(
    "range_", ["2..a", "(2..a).step_by(4)", "3..=9", "(2..b).step_by(s)", "(2..b).rev()"]
)
def test_a_loop_says_no_more_where_its_bounds_do_or_where_it_counts_beyond_them(
    range_: str,
) -> None:
    # Numbers of `u64` are counted by their bits, of which half have a sign.
    assert '"tile.in_range"' not in emitted(LOOP.format(range_))


def test_an_access_in_unsafe_says_so() -> None:
    text = """#[kernel(grid = [1])]
pub fn k<N: Dim>(y: &mut Tensor<f32, N>) {
    let t = y.load::<4>([0]);
    unsafe {
        y.store::<4>([0], t);
    }
}
"""
    lines = emitted(text).splitlines()
    assert ["unsafe" in line for line in lines if "tile.load" in line] == [False]
    assert ["unsafe" in line for line in lines if "tile.store" in line] == [True]


def test_every_operation_has_its_place_in_the_source() -> None:
    instances, _, program = checked(KERNEL)
    with context():
        module = emit(instances, program.sources)
        [function] = module.body.operations
        for op in operations(function):
            assert span_of(op.location, program.sources), op.operation.name


ALLOWED = {
    "builtin.module", "func.func", "func.call", "func.return", "tensor.splat", "tensor.empty",
    "tensor.expand_shape", "tensor.collapse_shape", "tensor.extract", "tensor.concat",
    "tensor.extract_slice", "linalg.broadcast", "linalg.transpose", "linalg.reduce",
    "linalg.matmul", "linalg.batch_matmul", "linalg.yield", "scf.for", "scf.while", "scf.if",
    "scf.yield", "scf.condition", "memref.reinterpret_cast", "memref.transpose",
}  # fmt: skip

# Without stores that wait for their proofs.
ACCEPTED = [
    "add", "atomic_histogram", "attention", "in_place", "matmul_nt", "pipeline_mlp", "softmax_rows",
    "two_outputs", "unsafe_scatter",
]  # fmt: skip
PROVED = ["even_odd", "permute_heads", "row_loop"]


def accepted(name: str) -> str:
    return (CASES / "accept" / f"{name}.tile").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ACCEPTED + PROVED)
def test_accepted_programs_use_the_decided_vocabulary(name: str) -> None:
    instances, found, program = checked(accepted(name))
    assert found == []
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        used = {op.operation.name for op in operations(module.operation)}
    others = {
        name for name in used - ALLOWED if name.split(".")[0] not in ("arith", "math", "tile")
    }
    assert others == set()


def test_chains_and_branches_as_deep_as_the_parser_takes_are_emitted() -> None:
    for value in ("a" + " + a" * 900, "if a > 1 { a } else " * 400 + "{ a }", "-" * 900 + "a"):
        text = f"#[kernel(grid = [1])]\npub fn k(a: i64) {{\n    let r = {value};\n}}\n"
        assert "func.func @k(" in emitted(text)
