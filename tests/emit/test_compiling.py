"""Headers compile without a warning, as C and as C++, without CUDA and with `cuda.h`."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.emit.launching import CUBIN
from tests.emit.pipeline_samples import pipeline, pipelined
from tests.emit.toolchain import (
    CXX_STANDARD,
    HERE,
    STRICT,
    c_compiler,
    compiled,
    compilers,
    cuda_include,
)
from tests.unit.manifest_samples import add_kernel, manifest
from tilec.artifact.signature import Parameter
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header

CALLS = """
int main(void)
{
    tilec_plan plan;
    tilec_graph *graph;
    tilec_tensor t = tilec_vector(NULL, TILEC_F32, 0);
    return add__f32_1024_launch(NULL, &t, &t, &t, 1) + matmul_check(&t, &t, &t)
        + copy_plan(&t, &t, 1, &plan) + sample_load(0) + scalars_check(
            &t, true, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
        + sums_launch(NULL, &t, &t, 1) + sums_graph(&graph, &t, &t, 1);
}
"""
CXX_CALLS = """
struct Holds { tilec::stream stream; tilec::tensor<float> tensor; tilec::status status; };
int main()
{
    float memory[4] = {};
    const float *read = memory;
    tilec::stream stream(0);
    auto z = tilec::tensor_of(memory, {4});
    const auto x = tilec::tensor_of(read, {2}, {1}).on_device(0);
    Holds holds{std::move(stream), z, tilec::add(nullptr, z, x, z, 1)};
    if (tilec::status failed = tilec::add(holds.stream, z, x, x, 2.0f))
        return failed.code() + static_cast<int>(failed.message().size()) + *failed.meaning();
    tilec::graph graph = tilec::sums_graph(z, x, 1.0f);
    if (graph.replay(holds.stream) || graph.update(z, z, 2.0f) || graph.result())
        return static_cast<bool>(tilec::sums(holds.stream, z, x, 1.0f));
    auto other = std::move(graph);
    other = tilec::doubled_graph(z, x).result() ? std::move(graph) : tilec::sums_graph(z, x, 1.0f);
    tilec::machine_code code(sample_load, sample_unload, 0);
    tilec::tensor<tilec::bf16> half(nullptr, {0});
    return static_cast<bool>(tilec::add(holds.stream, half, half, half, 1)) + !!holds.stream.wait()
        + !!code.result();
}
"""
# What the documentation shows of pipelines.
_PAGE = (HERE.parents[1] / "docs" / "launchers.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```c\n(.*?)```", _PAGE, re.DOTALL)[1].replace('#include "mlp.h"', "")
[CXX_SHOWN] = [one for one in re.findall(r"```cpp\n(.*?)```", _PAGE, re.DOTALL) if "mlp" in one]
CXX_SHOWN = f"""
tilec::status shown(tilec::tensor<tilec::bf16> &, tilec_stream);
tilec::status shown(tilec::tensor<tilec::bf16> &y, tilec_stream stream)
{{
    const auto &x = y, &w = y, &other = y;
{CXX_SHOWN}
}}
"""
# What projects ask for beside -Wall and -Wextra.
MORE = (
    "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wdouble-promotion", "-Wfloat-equal",
    "-Wundef", "-Wcast-qual", "-Wswitch-enum",
)  # fmt: skip
MORE_OF_C = ("-Wstrict-prototypes", "-Wmissing-prototypes")
MORE_OF_CXX = ("-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wnon-virtual-dtor")
# Some warnings come with code only: one compiler of each language generates it, which takes time.
CHECKED = "-fsyntax-only"
C_COMPILERS = compilers("gcc", "clang", "cc") or [None]  # None: the test is skipped
CXX_COMPILERS = compilers("g++", "clang++", "c++") or [None]


@pytest.fixture(scope="module")
def header(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiling")
    for prefix in ("", "other_"):
        [text] = emit_header([Artifact(pipelined(), CUBIN)], "sample", EmitOptions(prefix)).values()
        (folder / f"{prefix}sample.h").write_bytes(text)
    return folder


def _compile(header, compiler, standard, text, *flags):
    if compiler is None:
        pytest.skip("there is no compiler")
    is_cxx = standard.startswith("c++")
    source = header / ("calls.cpp" if is_cxx else "calls.c")
    source.write_text(text)
    made = () if CHECKED in flags else ("-c", "-o", header / "calls.o")
    compiled(compiler, f"-std={standard}", *STRICT, *flags, "-I", header, *made, source)


@pytest.mark.parametrize("compiler", C_COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_as_c(header, compiler, standard):
    is_first = (compiler, standard) == (C_COMPILERS[0], "c99")
    how = "-O2" if is_first else CHECKED
    shown = SHOWN if standard == "c99" else ""
    _compile(header, compiler, standard, f'#include "sample.h"\n{shown}{CALLS}', how)


@pytest.mark.parametrize("compiler", CXX_COMPILERS)
@pytest.mark.parametrize("calls", [CALLS, CXX_SHOWN + CXX_CALLS], ids=["C", "C++"])
def test_as_cxx(header, compiler, calls):
    text = f'#include "sample.h"\n{calls}'
    how = "-O2" if compiler == CXX_COMPILERS[0] and calls != CALLS else CHECKED
    _compile(header, compiler, CXX_STANDARD, text, how, "-Wshadow", "-Wconversion")


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_in_c_nothing_that_projects_ask_for_is_warned_of(header, compiler):
    _compile(header, compiler, "c11", '#include "sample.h"\n', CHECKED, *MORE, *MORE_OF_C)


@pytest.mark.parametrize(
    ("compiler", "standard"), list(zip(CXX_COMPILERS, ["c++20", CXX_STANDARD], strict=False))
)
def test_in_cxx_nothing_that_projects_ask_for_is_warned_of(header, compiler, standard):
    _compile(header, compiler, standard, '#include "sample.h"\n', CHECKED, *MORE, *MORE_OF_CXX)


@pytest.mark.parametrize("includes", [("cuda.h", "sample.h"), ("sample.h", "cuda.h")], ids=" ".join)
@pytest.mark.parametrize("standard", ["c99", "c++17"])
def test_beside_cuda_h(header, includes, standard):
    folder = cuda_include()
    if folder is None:
        pytest.skip("there is no cuda.h")
    compiler = CXX_COMPILERS[0] if standard == "c++17" else C_COMPILERS[0]
    text = "".join(f'#include "{name}"\n' for name in includes)
    text += "static CUstream stream;\n"
    calls = CALLS.replace("launch(NULL,", "launch(stream,")
    _compile(header, compiler, standard, text + calls, CHECKED, "-isystem", folder)


@pytest.mark.parametrize("standard", ["c99", "c++17"])
def test_a_prefix_keeps_two_headers_apart(header, standard):
    calls = CALLS.replace("main", "second").replace("add__", "other_add__")
    calls = calls.replace("matmul_", "other_matmul_").replace("copy_", "other_copy_")
    calls = calls.replace("sample_load", "other_sample_load").replace("scalars", "other_scalars")
    calls = calls.replace("sums_", "other_sums_")
    twice = '#include "sample.h"\n#include "other_sample.h"\n#include "sample.h"\n'
    compiler = CXX_COMPILERS[0] if standard == "c++17" else C_COMPILERS[0]
    _compile(header, compiler, standard, f"{twice}int second(void);\n{CALLS}{calls}", CHECKED)


def test_the_fake_driver_has_the_prototypes_of_the_driver(tmp_path):
    folder = cuda_include()
    if folder is None:
        pytest.skip("there is no cuda.h")
    compiled(c_compiler(), "-std=gnu11", "-Wall", "-Wextra", "-DFAKE_WITH_CUDA_H", "-isystem",
             folder, "-c", HERE / "fake_cuda.c", "-o", tmp_path / "fake.o")  # fmt: skip


def test_headers_of_two_versions_in_one_unit_are_an_error(header):
    text = '#define TILEC_SUPPORT 2\n#include "sample.h"\n'
    with pytest.raises(AssertionError, match="different versions of tilec"):
        _compile(header, C_COMPILERS[0], "c99", text, CHECKED, "-Wfatal-errors")


def test_the_benchmark_of_pipelines_compiles(tmp_path):
    vectors = [
        Parameter(n, "tensor", "f32", ("N",), own) for n, own in (("y", "mut"), ("x", "shared"))
    ]
    first, *others = (Parameter(n, "tensor", "bf16", ("M", "N"), "shared") for n in "yxuvw")
    for name, parameters, dims in (
        ("chain", vectors, ("N",)),
        ("mlp", (replace(first, own="mut"), *others), ("M", "N")),
    ):
        made = manifest(replace(add_kernel(), name=f"{name}_add", symbol=f"{name}_add"))
        made = replace(made, pipelines=(pipeline(name, parameters, dims, (), ()),))
        [text] = emit_header([Artifact(made, CUBIN)], name, EmitOptions()).values()
        (tmp_path / f"{name}.h").write_bytes(text)
    source = HERE.parents[1] / "benchmarks" / "pipeline_cost.c"
    compiled(c_compiler(), "-std=c99", *STRICT, CHECKED, "-I", tmp_path, source)
