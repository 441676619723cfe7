"""Tiles that no block of threads can hold are refused where they are made, before any lowering."""

import pytest

from tilec.compilation import Options
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

PROGRAM = """\
#[kernel]
pub fn k<M: Dim, N: Dim>(y: Part<&mut Tensor<{element}, M, N>, {rows}, {columns}>) {{
    y.store(
        y.load());
}}
"""


def codes(element, rows, columns, targets=("sm_90a",)):
    text = PROGRAM.format(element=element, rows=rows, columns=columns)
    source = SourceFile("k.tile", text)
    sources = Sources(source, {"k.tile": source}, {"k.tile": ""}, {})
    compiled = check_sources(sources, Options(targets=targets))
    return [(d.code, source.position(d.span.start)[0] + 1) for d in compiled.diagnostics]


# 1,024 threads of 255 registers: 2^18 words are one too many for each thread, half of them fit.
@pytest.mark.parametrize("element, elements", [("f32", 2**18), ("f16", 2**19), ("f64", 2**17)])
def test_a_tile_of_256_registers_a_thread_is_refused_at_its_load(element, elements):
    assert codes(element, 4, elements // 4) == [("E0702", 4)]


@pytest.mark.parametrize("element, elements", [("f32", 2**17), ("f16", 2**18), ("i8", 2**19)])
def test_half_of_that_is_taken(element, elements):
    assert codes(element, 4, elements // 4) == []


def test_several_targets_with_the_same_limits_report_once():
    assert codes("f32", 4, 2**16, ("sm_80", "sm_90a")) == [("E0702", 4)]


# ---- shared memory -------------------------------------------------------------------------------

TURN = """\
#[kernel]
pub fn turn<M: Dim, N: Dim>(
    y: Part<&mut Tensor<bf16, N, M>, {columns}, 256>, x: &Tensor<bf16, M, N>,
) {{
    y.store(
        x.load::<256, {columns}>([y.id(1), y.id(0)]).t());
}}
"""


def found(text, **options):
    source = SourceFile("k.tile", text)
    sources = Sources(source, {"k.tile": source}, {"k.tile": ""}, {})
    return check_sources(sources, Options(**options)).diagnostics


# 163 KiB and 227 KiB of shared memory a block: columns of 512 bytes, by sixteens.
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_tile_that_is_turned_goes_through_shared_memory_in_pieces(target):
    assert not found(TURN.format(columns=464), targets=(target,))


PRODUCT = """\
#[kernel]
pub fn product<M: Dim, N: Dim>(
    y: Part<&mut Tensor<f32, M, N>, 128, 128>, a: &Tensor<f32, M, 256>, b: &Tensor<f32, 256, N>,
) {{
    let t = a.load::<128, {K}>([y.id(0), 0]);
    y.store(
        t.dot(b.load::<{K}, 128>([0, y.id(1)])));
}}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_the_factors_of_a_product_lie_in_shared_memory(target):
    assert not found(PRODUCT.format(K=128), targets=(target,))
    [finding] = found(PRODUCT.format(K=256), targets=(target,))
    assert finding.code == "E0702"
    assert SourceFile("k.tile", PRODUCT).position(finding.span.start)[0] + 1 == 7


def test_a_tile_that_stays_where_it_is_needs_none():
    text = TURN.replace("N, M>, {columns}, 256", "M, N>, 256, {columns}").replace(".t()", "")
    text = text.replace("y.id(1), y.id(0)", "y.id(0), y.id(1)")
    assert not found(text.format(columns=464))


# ---- threads, and what loops carry ---------------------------------------------------------------

SUM = """\
#[kernel]
#[hint(warps = {warps})]
pub fn sum<N: Dim>(
    z: Part<&mut Tensor<{element}, N>, {size}>, x: &Tensor<{element}, N>, n: usize,
) {{
    let mut t = Tile::<{element}, {size}>::zeros();
    for i in 0..n {{
        t = t +
            x.load::<{size}>([i]);
    }}
    z.store(t);
}}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "warps, element, most, step",  # what a thread has, less one register for the loop
    [
        (1, "f32", 32 * 254, 32),
        (16, "f32", 512 * 127, 512),
        (32, "f32", 1024 * 63, 1024),
        (32, "f16", 1024 * 126, 2048),
    ],
)
def test_what_a_loop_carries_leaves_a_register(target, warps, element, most, step):
    fitting, beyond = (
        SUM.format(warps=warps, element=element, size=size) for size in (most, most + step)
    )
    assert not found(fitting, targets=(target,))
    [finding] = found(beyond, targets=(target,))
    assert finding.code == "E0702"
    assert SourceFile("k.tile", beyond).position(finding.span.start)[0] + 1 == 8


def test_a_block_has_32_warps():
    text = SUM.format(warps=33, element="f32", size=64)
    for target in ("sm_80", "sm_90a"):
        [finding] = found(text, targets=(target,))
        assert (finding.code, text[finding.span.start : finding.span.end]) == (
            "E0702",
            "warps = 33",
        )
    assert not found(text.replace("33", "32"))


def test_the_instance_is_named():
    text = SUM.format(warps=32, element="f32", size="B").replace(
        "sum<N: Dim>", "sum<N: Dim, const B: usize>"
    )
    options = {"instances": ("sum<B=1024>", "sum<B=65536>")}
    [finding] = found(text, **options)
    assert finding.notes == ("in the instance `sum__65536`",)


# ---- parameters ----------------------------------------------------------------------------------

MANY = """\
#[kernel]
pub fn many<N: Dim, A: Dim>(z: Part<&mut Tensor<f32, N>, 256>, {more}n: i32) {{
    z.store(Tile::<f32, 256>::zeros());
}}
"""


# PTX ISA, "Kernel Function Parameters": 32764 bytes. Here 8 of z, 40 of each x, 8 of each y, 8 of n
# with what aligns N, and 8 of N and of A each: 40 * 817 + 32 + 8 * 6 are 32760.
@pytest.mark.parametrize(("scalars", "passed"), [(6, None), (7, 32768)])
def test_a_kernel_has_32764_bytes_of_parameters(scalars, passed):
    more = "".join(f"x{number}: &Tensor<f32, A, A, A, A, A>, " for number in range(817))
    more += "".join(f"y{number}: f64, " for number in range(scalars))
    text = MANY.format(more=more)
    findings = found(text, targets=("sm_80", "sm_90a"))
    assert bool(findings) == (passed is not None)
    for finding, target in zip(findings, ("sm_80", "sm_90a"), strict=bool(findings)):
        assert finding.code == "E0702"
        assert text[finding.span.start : finding.span.end] == "many"
        assert finding.message == (
            f"the parameters of this kernel take {passed} bytes, {target} has 32764 for them"
        )
