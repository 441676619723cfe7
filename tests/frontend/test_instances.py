"""Which instances are built, and what they are called."""

from __future__ import annotations

from front_end import checked, refusals, symbols

from tilec.frontend.check import unmatched_options
from tilec.frontend.options import Options

ADD = """#[kernel]
#[instance(T = f32, B = 64)]
#[instance(T = bf16, B = 128)]
pub fn add<T: Num, N: Dim, const B: usize>(z: Part<&mut Tensor<T, N>, B>) {}
"""
BARE = ADD.replace("#[instance(T = f32, B = 64)]\n#[instance(T = bf16, B = 128)]\n", "")


def test_symbols_have_types_and_constants_in_the_order_of_the_generics() -> None:
    assert symbols(ADD) == ["add__f32_64", "add__bf16_128"]


def test_signs_points_and_truth_are_words_in_symbols() -> None:
    text = """#[kernel(grid = [1])]
#[instance(S = -0.5, I = -3, F = true)]
#[instance(S = 1.0, I = 3, F = false)]
pub fn k<const S: f32, const I: i32, const F: bool>() {}
"""
    assert symbols(text) == ["k__m0p5_m3_true", "k__1p0_3_false"]


HINTED = """#[kernel]
#[instance(B = 64)]
#[instance(B = 64, hint(warps = 2, cluster = [2, 1]))]
#[instance(B = 64, hint(persistent = false), hint(stages = 3))]
#[hint(warps = 4, persistent)]
pub fn k<N: Dim, const B: usize>(z: Part<&mut Tensor<f32, N>, B>) {}
"""


def test_hints_of_an_instance_are_in_its_symbol() -> None:
    assert symbols(HINTED) == [
        "k__64",
        "k__64__warps2_cluster2x1",
        "k__64__no_persistent_stages3",
    ]


def test_hints_of_an_instance_go_before_those_of_the_kernel() -> None:
    assert [instance.hints for instance in checked(HINTED)[0]] == [
        {"warps": 4, "persistent": True},
        {"warps": 2, "persistent": True, "cluster": (2, 1)},
        {"warps": 4, "persistent": False, "stages": 3},
    ]


def test_an_instance_without_generics_may_have_hints() -> None:
    text = "#[kernel(grid = [1])]\n#[instance()]\n#[instance(hint(warps = 8))]\npub fn k() {}"
    assert symbols(text) == ["k", "k__warps8"]


def test_a_kernel_without_generics_has_its_plain_name() -> None:
    assert symbols("#[kernel(grid = [1])]\npub fn k() {}") == ["k"]


def test_a_define_replaces_its_name_in_every_instance() -> None:
    assert symbols(ADD, Options(defines=("B=256",))) == ["add__f32_256", "add__bf16_256"]


def test_defines_that_make_two_instances_the_same_leave_one() -> None:
    assert symbols(ADD, Options(defines=("B=256", "T=f16"))) == ["add__f16_256"]


def test_defines_give_a_kernel_its_first_instance() -> None:
    assert symbols(BARE, Options(defines=("B=256", "T=f16"))) == ["add__f16_256"]


def test_an_instance_of_the_command_line_is_one_more() -> None:
    options = Options(instances=("add<T=f16, B=32>", "add<T=f32,B=64>"))
    assert symbols(ADD, options) == ["add__f32_64", "add__bf16_128", "add__f16_32"]


def test_malformed_and_wrong_options_are_refused_where_they_are_written() -> None:
    for options, code in (
        (Options(defines=("B",)), "E0204"),
        (Options(defines=("B=q",)), "E0204"),
        (Options(defines=("B=f32",)), "E0203"),
        (Options(instances=("add<T=f16",)), "E0204"),
        (Options(instances=("add<T=f16>",)), "E0701"),
        (Options(instances=("add<T=f16,B=64,C=1>",)), "E0204"),
    ):
        found = refusals(ADD, options)
        assert {c for c, _ in found} == {code}, options


def test_options_that_nothing_takes_are_named() -> None:
    _, _, program = checked(ADD)
    options = Options(defines=("B=64", "Q=1"), instances=("add<T=f32,B=64>", "mul<T=f32>"))
    assert unmatched_options(program, options) == ("-D Q=1", "--instance mul<T=f32>")
