"""Why a product is not overlapped with copies, in programs that nearly are."""

from __future__ import annotations

import pytest

from tilec.compilation import Options
from tilec.driver import front_end
from tilec.hints import Hints
from tilec.ir.dialect import context
from tilec.outputs import describe_kernels
from tilec.roles.specialise import specialise
from tilec.schedule.plan import NoSchedule, Schedule, plan
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve
from tilec.transforms.drop_markers import drop_markers
from tilec.transforms.insert_traps import insert_traps
from tilec.transforms.simplify import simplify

PRODUCT = """
#[kernel]
#[hint(warps = 8)]
pub fn f<M: Dim, N: Dim, K: Dim>(
    c: Part<&mut Tensor<f32, M, N>, 128, 64>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, 128, 64>::zeros();
    for k in 0..K.div_ceil(64) {
        sum = dot(a.load::<128, 64>([c.id(0), k]), b.load::<64, 64>([k, c.id(1)]), sum);
    }
    c.store(sum);
}
"""


def planned(
    program: str, target: str = "sm_90a", *, checked: bool = False
) -> Schedule | NoSchedule:
    """The schedule that the kernel of a program has in the end."""
    with context():
        front = front_end(Sources(SourceFile("case.tile", program), {}, {}, {}), Options())
        assert front.module is not None and not front.compiled.diagnostics
        [kernel] = describe_kernels(front.proofs)
        if checked:
            insert_traps(front.module)
        drop_markers(front.module)
        simplify(front.module)
        with kernel.function.location:
            found = plan(kernel.function, Hints.of(kernel.description.hints), resolve(target))
            if isinstance(found, Schedule):
                found = specialise(kernel.function, found)
    return found


def test_it_is_overlapped() -> None:
    assert isinstance(planned(PRODUCT), Schedule)


LOADED = "a.load::<128, 64>([c.id(0), k])"
LOADED_B = "b.load::<64, 64>([k, c.id(1)])"
SMALL = PRODUCT.replace("128, 64>", "16, 64>")
REASONS = [
    (PRODUCT.replace("bf16", "f32"), "no other one sums f32 in f32 as exactly"),
    (
        PRODUCT.replace("a: &", "a: &mut "),
        "a factor is of a tensor that the kernel may write",
    ),
    (SMALL, "16x64 is no size for it"),
    (
        PRODUCT.replace("for k in 0..K.div_ceil(64)", "let k = K / 128;\n    if k > 3"),
        "no loop turns around the copies",
    ),
    (
        PRODUCT.replace("warps = 8", "warps = 8, stages = 1"),
        "asked for by `stages = 1`",
    ),
    (
        PRODUCT.replace("for k in 0..K.div_ceil(64)", "let mut k = 0;\n    while k < K").replace(
            ", sum);", ", sum);\n        k = k + 64;"
        ),
        "where copies begin depends on how often a `while` turns",
    ),
]


@pytest.mark.parametrize(("program", "why"), REASONS, ids=[why for _, why in REASONS])
def test_what_is_not_overlapped_has_a_reason(program: str, why: str) -> None:
    found = planned(program)
    assert isinstance(found, NoSchedule)
    assert [reason.why for reason in found.reasons] == [why]


def test_the_target_may_be_the_reason() -> None:
    found = planned(PRODUCT, "sm_80")
    assert isinstance(found, NoSchedule)
    assert [reason.why for reason in found.reasons] == ["sm_80 has no asynchronous products"]


def test_a_checked_build_may_be_the_reason() -> None:
    claimed = PRODUCT.replace("sum = dot", "assert!(k < 1000);\n        sum = dot")
    assert isinstance(planned(claimed), Schedule)
    found = planned(claimed, checked=True)
    assert isinstance(found, NoSchedule)
    [reason] = found.reasons
    assert reason.why.startswith("the build is checked")


def test_one_of_two_products_has_a_reason() -> None:
    second = f"sum = dot({LOADED}.to::<f32>(), {LOADED_B}.to::<f32>(), sum);"
    found = planned(PRODUCT.replace(", sum);\n", f", sum);\n        {second}\n"))
    assert isinstance(found, Schedule) and len(found.products) == 1
    assert found.reasons[-1].what == "no overlap of the product at case.tile:10:15"
    assert found.reasons[-1].why == "no other one sums f32 in f32 as exactly"
