"""Pipelines that launch and call what other files define."""

from __future__ import annotations

from pathlib import Path

from tests.frontend.front_end import loaded
from tilec.artifact.expression import Expression, evaluate
from tilec.diagnostics import Diagnostic
from tilec.frontend.check import check_all
from tilec.frontend.options import Options
from tilec.frontend.pipeline.values import traced
from tilec.ir.dialect import context

COPY = """#[kernel]
pub fn copy<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>, x: &Tensor<f32, N>) {
    z.store(x.load_like(&z));
}
"""
FAMILY = """#[kernel]
#[instance(T = f32, B = 128)]
#[instance(T = f32, B = 256)]
#[instance(T = bf16, B = 256)]
pub fn copy<T: Num, N: Dim, const B: usize>(z: Part<&mut Tensor<T, N>, B>, x: &Tensor<T, N>) {
    z.store(x.load_like(&z));
}
"""
USES = """use other::copy;
#[pipeline]
pub fn p<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, N>) {
    copy(y, x);
}
"""


def built(text: str, options: Options | None = None, **others: str) -> list[str]:
    """The symbols of the kernels that are built."""
    program, found = loaded(text, **others)
    checked = check_all(program, options)
    assert not found and not checked.diagnostics, checked.diagnostics
    return [kernel.symbol for kernel in checked.kernels]


def refused(text: str, **others: str) -> list[Diagnostic]:
    program, found = loaded(text, **others)
    return [*found, *check_all(program).diagnostics]


def test_the_instances_that_are_launched_are_built():
    assert built(USES, other=FAMILY) == ["copy__f32_128", "copy__f32_256"]


def test_options_hold_for_kernels_of_other_files():
    assert built(USES, Options(defines=("B=512",)), other=FAMILY) == ["copy__f32_512"]
    named = USES.replace("copy(y", "copy::<f32, 64>(y")
    asked = Options(instances=("copy<T=f32,B=64>",))
    assert built(named, asked, other=FAMILY) == ["copy__f32_64"]


def test_kernels_of_other_files_that_nobody_launches_are_not_built():
    assert built("use other::copy;\n", other=COPY) == []


def test_a_kernel_of_another_file_without_instances_has_those_that_launches_ask_for():
    generic = FAMILY.replace("#[instance", "// #[instance")
    [found] = refused(USES, other=generic)
    assert (found.code, found.span.file) == ("E0701", "case.tile")
    assert [label.span.file for label in found.labels] == ["case.tile", "other.tile"]
    assert built(USES.replace("copy(y", "copy::<f32, 64>(y"), other=generic) == ["copy__f32_64"]
    assert built(USES, Options(defines=("B=512",)), other=generic) == ["copy__f32_512"]
    assert refused("use other::copy;\n", other=generic) == []


def test_launches_ask_for_what_the_file_names_no_instance_of():
    text = (Path(__file__).parent / "programs" / "asked.tile").read_text(encoding="utf-8")
    assert built(text) == [
        "converted__f32_f64", "doubled__i16", "converted__i16_i32", "doubled__i32",
        "converted__i32_f32", "moved__f32_32",
    ]  # fmt: skip


def test_two_kernels_of_one_name_are_refused():
    calls = (
        "use other::q;\n"
        + COPY
        + USES.partition("\n")[2]
        + """
#[pipeline]
pub fn r<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, N>) {
    q(y, x);
}
"""
    )
    inner = (
        COPY
        + """#[pipeline]
pub fn q<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, N>) {
    copy(y, x);
}
"""
    )
    [found] = refused(calls, other=inner)
    assert (found.code, found.span.file) == ("E0205", "other.tile")


def test_what_is_wrong_with_a_pipeline_of_another_file_names_the_call():
    inner = (
        COPY
        + """#[pipeline]
pub fn q<N: Dim>(y: Part<&mut Tensor<f32, N>, 256>, x: &Tensor<f32, N>) {
    copy(y, x);
}
"""
    )
    [found] = refused(USES.replace("copy", "q"), other=inner)
    assert (found.code, found.span.file) == ("E0203", "other.tile")
    assert found.labels[-1].span.file == "case.tile"


def test_a_scalar_of_another_file_computes_in_its_own_names():
    inner = """const TWO: usize = 2;
#[kernel]
pub fn copy<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>, x: &Tensor<f32, N>, n: usize) {
    z.store(x.load_like(&z) * (n as f32));
}
#[pipeline]
pub fn q<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, N>, n: usize) {
    copy(y, x, n * TWO);
}
"""
    outer = """use other::q;
const TWO: usize = 7;
#[pipeline]
pub fn p<N: Dim>(y: &mut Tensor<f32, N>, x: &Tensor<f32, N>, k: usize) {
    q(y, x, k + TWO);
}
"""
    assert values(outer, other=inner) == [("mul", ("add", "k", 7), 2)]


def values(text: str, **others: str) -> list[Expression]:
    """The scalars that the launches of the only pipeline are given."""
    program, found = loaded(text, **others)
    checked = check_all(program)
    assert not found and not checked.diagnostics, checked.diagnostics
    [instance] = checked.pipelines
    with context():
        pipeline, found = traced(instance, program.sources)
    assert pipeline is not None and not found
    return [
        given.argument.value
        for launch in pipeline.launches
        for given in launch.given
        if given.tensor is None
    ]


SCALED = """#[kernel]
pub fn scaled<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>, a: u32, b: i32, c: f32, d: bool) {
    z.store(select(d, Tile::<f32, 256>::full(c + (a as f32)), Tile::<f32, 256>::full(b as f32)));
}
#[pipeline]
pub fn p<N: Dim>(y: &mut Tensor<f32, N>, a: u32, b: i32, c: f32, d: bool) {
"""


def test_scalars_are_numbers_of_the_parameters_types():
    body = """scaled(y, 3000000000, -3, 0.5, true);
    scaled(y, a, b, -c, d);
    scaled(y, a - 1, b << 31, c, !d && N > 7);
    let mut k = 1;
    for i in 0..3 {
        k = k * 3 + i;
    }
    scaled(y, k, N as i32, 2.0 * 3.0, false);
"""
    given = {"a": 0, "b": 3, "c": 0.5, "d": True, "N": 9}
    assert [evaluate(value, given) for value in values(SCALED + body + "}\n")] == [
        *(3000000000, -3, 0.5, True),
        *(0, 3, -0.5, True),
        *(4294967295, -2147483648, 0.5, False),
        *(32, 9, 6.0, False),
    ]
