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
