"""Functions of C++: the overload for the types of the arguments launches the instances of these."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from tests.emit.launching import CUBIN, Fake, describe, reset
from tests.emit.noting import ALLOCATED, LAUNCHED, TAKEN, CNoted
from tests.emit.pipeline_samples import launch, pipeline, value
from tests.emit.toolchain import (
    CXX_STANDARD,
    LINKED,
    STRICT,
    c_compiler,
    compiled,
    compilers,
    cxx_compiler,
    fake_driver,
)
from tests.unit.manifest_samples import add_kernel, manifest, with_variants
from tests.unit.pipeline_samples import sums
from tilec.artifact.signature import Parameter
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header

# Element types of the tensor and of the number. The first two are one signature in C++.
FILLS = (("f32", "f16"), ("f32", "f32"), ("f32", "i32"), ("f32", "u8"), ("f32", "bool"),
         ("i8", "f64"), ("i8", "usize"), ("bf16", "u64"))  # fmt: skip
# What is called, and the instance that it is.
CALLS = {
    "fill(one, f, 1.0f)": "fill__f32_f16",
    "fill(one, f, 1e6f)": "fill__f32_f32",
    "fill(one, f, 7)": "fill__f32_i32",
    "fill(one, f, std::uint8_t(7))": "fill__f32_u8",
    "fill(one, f, true)": "fill__f32_bool",
    "fill(one, i, 1.0)": "fill__i8_f64",
    "fill(one, i, std::int64_t(7))": "fill__i8_usize",
    "fill(one, b, 7)": "fill__bf16_u64",  # no other is of its tensor
    "filled(one, f, g, 1.0f)": "fill__f32_f32",
    "filled(one, f, g, 7)": "fill__f32_i32",
}
WARNINGS = ("-Wshadow", "-Wconversion")
PROGRAM = """
#include <array>
#include <vector>
#include "sample.h"
extern "C" int call(int which, std::int64_t bytes);
extern "C" const char *message();
extern "C" int use(void *driver);
extern "C" const char *message() { return tilec_last_message(); }
extern "C" int use(void *driver) { return tilec_set_driver(driver); }
extern "C" int call(int which, std::int64_t bytes)
{
    const auto one = reinterpret_cast<tilec_stream>(0x100);
    const auto two = reinterpret_cast<tilec_stream>(0x200);
    const auto f = tilec::tensor_of(reinterpret_cast<float *>(0x10000), {100});
    const auto g = tilec::tensor_of(reinterpret_cast<const float *>(0x20000), {100});
    const auto i = tilec::tensor_of(reinterpret_cast<std::int8_t *>(0x30000), {100});
    const auto b = tilec::tensor_of(reinterpret_cast<tilec::bf16 *>(0x40000), {100});
    const std::vector<tilec_stream> listed{one, two};
    void *const memory = reinterpret_cast<void *>(0x80000);
    switch (which) {
%s
    }
    (void)i, (void)b, (void)two, (void)memory, (void)bytes;
    return 99;
}
"""
WAYS = {
    "with": "sums_with(one, memory, bytes, f, g, 1.0f)",
    "listed": "sums_on({one, two}, f, g, 1.0f)",
    "held": "sums_on(listed, f, g, 1.0f)",
    "alone": "sums_on({one}, f, g, 1.0f)",
    "none": "sums_on({}, f, g, 1.0f)",
    "array": "sums_on(std::array<tilec_stream, 2>{one, two}, f, g, 1.0f)",
}


def _fill(element, number):
    parameters = (
        Parameter("z", "tensor", element, ("N",), "mut"),
        Parameter("value", "scalar", number),
    )
    symbol = f"fill__{element}_{number}"
    return with_variants(
        replace(add_kernel(), name="fill", symbol=symbol, parameters=parameters, coverage=())
    )


def _filled(number):
    parameters = (
        Parameter("z", "tensor", "f32", ("N",), "mut"),
        Parameter("x", "tensor", "f32", ("N",), "shared"),
        Parameter("value", "scalar", number),
    )
    launches = (launch("fill", (f"fill__f32_{number}",), 9, (), z="z", value=value("value")),)
    made = pipeline("filled", parameters, ("N",), (), launches)
    return replace(made, symbol=f"filled__{number}")


def _manifest():
    kernels = (*(_fill(*types) for types in FILLS), add_kernel(), add_kernel(block=256))
    return replace(manifest(*kernels), pipelines=(sums(), _filled("f32"), _filled("i32")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cxx")
    [text] = emit_header([Artifact(_manifest(), CUBIN)], "sample", EmitOptions()).values()
    (made / "sample.h").write_bytes(text)
    calls = [*CALLS, *WAYS.values()]
    cases = [f"    case {i}: return tilec::{one}.code();" for i, one in enumerate(calls)]
    cases.append(f"    case {len(cases)}: {{")
    cases.append("        std::int64_t found = 0;")
    cases.append("        (void)tilec::sums_workspace(f, g, 1.0f, &found);")
    cases.append("        return static_cast<int>(found);")
    cases.append("    }")
    (made / "calls.cpp").write_text(PROGRAM.replace("%s", "\n".join(cases)))
    return made


@pytest.fixture(scope="module")
def called(folder, tools):
    """Calls one of CALLS or WAYS, on a fake driver that has seen nothing; gives the status."""
    made = folder / "libcalls.so"
    compiled(cxx_compiler(), f"-std={CXX_STANDARD}", *STRICT, *WARNINGS, "-shared", "-fPIC",
             "-o", made, folder / "calls.cpp", *LINKED)  # fmt: skip
    library, driver = ctypes.CDLL(str(made)), ctypes.CDLL(str(fake_driver(tools)))
    library.message.restype = ctypes.c_char_p
    library.call.argtypes = [ctypes.c_int, ctypes.c_int64]
    library.use.argtypes = [ctypes.c_void_p]
    reset(Fake.in_dll(driver, "fake"))
    describe(driver, _manifest())
    assert library.use(driver._handle) == 0

    def call(which, memory_bytes=0):
        driver.fake_forget()
        status = library.call(which, memory_bytes)
        noted = CNoted.in_dll(driver, "noted")
        return status, library.message().decode(), noted.notes[: noted.count]

    call.fake = Fake.in_dll(driver, "fake")
    return call


@pytest.mark.parametrize("which", range(len(CALLS)), ids=CALLS)
def test_numbers_choose_the_instance(which, called):
    status, message, _ = called(which)
    assert (status, called.fake.kernel.decode().removesuffix("__v16")) == (
        0,
        list(CALLS.values())[which],
    ), message


def _way(called, name, memory_bytes=0):
    return called(len(CALLS) + list(WAYS).index(name), memory_bytes)


def test_a_pipeline_runs_in_memory_of_the_callers(called):
    needed, _, _ = called(len(CALLS) + len(WAYS))
    assert needed == 3 * 512  # slots of 100 f32, each at a multiple of 256 bytes
    status, message, notes = _way(called, "with", needed)
    assert status == 0, message
    assert not [note for note in notes if note.kind in (TAKEN, ALLOCATED)]
    assert len([note for note in notes if note.kind == LAUNCHED]) == 5
    status, message, notes = _way(called, "with", needed - 1)
    assert status == 23 and "workspace" in message and not notes


@pytest.mark.parametrize("name", ["listed", "held", "array"])
def test_a_pipeline_runs_on_several_streams(name, called):
    status, message, notes = _way(called, name)
    assert status == 0, message
    launches = [note for note in notes if note.kind == LAUNCHED]
    assert len(launches) == 5 and {note.stream for note in launches} == {0x100, 0x200}


def test_one_stream_has_all_and_none_is_refused(called):
    status, _, notes = _way(called, "alone")
    assert status == 0 and {n.stream for n in notes if n.kind == LAUNCHED} == {0x100}
    status, message, notes = _way(called, "none")
    assert (status, notes) == (1, [])
    assert message.startswith("`sums`: expected one stream at least, got ")


def test_no_compiler_warns(folder):
    for compiler in compilers("clang++")[:1]:
        compiled(compiler, f"-std={CXX_STANDARD}", *STRICT, *WARNINGS, "-fsyntax-only",
                 folder / "calls.cpp")  # fmt: skip
    (folder / "alone.c").write_text('#include "sample.h"\n')
    compiled(c_compiler(), "-std=c99", *STRICT, "-fsyntax-only", folder / "alone.c")
