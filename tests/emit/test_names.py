"""Parameters have names that mean nothing else, in any C or C++ and after any header."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.emit.launching import CUBIN
from tests.emit.pipeline_samples import pipeline
from tests.emit.toolchain import (
    CXX_STANDARD,
    STRICT,
    c_compiler,
    compiled,
    compilers,
    cxx_compiler,
    run,
)
from tests.unit.manifest_samples import add_kernel, manifest, with_variants
from tests.unit.pipeline_samples import sums
from tilec.artifact.signature import Parameter
from tilec.diagnostics.setup_error import SetupError
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header
from tilec.emit.header.text import function_names, header_file, parameter_names, string
from tilec.emit.python.text import attribute_names, module_name
from tilec.emit.python.text import parameter_names as python_parameters
from tilec.emit.rust.text import function_names as rust_names
from tilec.emit.rust.text import parameter_names as rust_parameters

# Those of C23 and of C++20, and of the modes with extensions that compilers begin with.
WORDS = (
    "_Atomic", "_Bool", "_Complex", "_Generic", "_Static_assert", "__asm__", "alignas",
    "alignof", "and", "asm", "auto", "bool", "break", "char", "char16_t", "char32_t", "char8_t",
    "class", "co_await", "co_return", "co_yield", "concept", "const", "consteval", "constexpr",
    "constinit", "continue", "decltype", "default", "delete", "do", "double", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "linux", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr",
    "operator", "or", "private", "protected", "public", "register", "requires", "restrict",
    "return", "short", "signed", "sizeof", "static", "static_assert", "struct", "switch",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
    "typeof", "typeof_unqual", "union", "unix", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor",
)  # fmt: skip
INCLUDED = (
    "complex", "dlfcn", "errno", "math", "pthread", "stdarg", "stdbool", "stddef", "stdint",
    "stdio", "stdlib", "string",
)  # fmt: skip
INCLUDES = "".join(f"#include <{name}.h>\n" for name in INCLUDED)


def macros(folder):
    """The macros without arguments that a program has after the headers, but for reserved names."""
    source = folder / "macros.c"
    source.write_text(INCLUDES)
    defined = run(c_compiler(), "-std=gnu11", "-dM", "-E", source).stdout
    return re.findall(r"^#define ([A-Za-z]\w*) .", defined, re.MULTILINE)


def declaration(names):
    listed = ", ".join(f"int32_t {name}" for name in parameter_names(list(dict.fromkeys(names))))
    return f"#include <stdint.h>\nvoid declared({listed});\n"


@pytest.mark.parametrize("standard", ["gnu17", "c99", "gnu++17", "c++20"])
def test_no_word_of_the_language_names_a_parameter(tmp_path, standard):
    is_cxx = "++" in standard
    source = tmp_path / ("words.cpp" if is_cxx else "words.c")
    source.write_text(declaration([*WORDS, "int32_t", "tilec_stream", "N", "x"]))
    compiler = cxx_compiler() if is_cxx else c_compiler()
    compiled(compiler, f"-std={standard}", "-fsyntax-only", "-Wshadow", source)


def test_no_macro_of_the_system_names_a_parameter(tmp_path):
    found = macros(tmp_path)
    assert {"NULL", "EOF", "INT64_MAX", "stdin", "complex"} <= set(found)
    source = tmp_path / "after.c"
    source.write_text(INCLUDES + declaration(found))
    compiled(c_compiler(), "-std=gnu11", "-fsyntax-only", source)


def of_cxx(names):
    return function_names(names, [("",)] * len(names))


def test_functions_of_cxx_are_no_macros_and_no_types():
    names = ["EOF", "NULL", "errno", "stdin", "assert", "size_t", "int32_t", "class", "stream"]
    names += ["INFINITY", "TILEC_PUBLIC", "tilec_status"]
    assert of_cxx(names) == [f"{name}_" for name in names]
    kept = ["gemv_t", "GEMM", "add", "type"]
    assert of_cxx(kept) == kept


# Kernels whose names are words of some language, or become equal when those get an underscore.
KERNELS = (
    "new", "new_", "None", "None_", "load", "load_", "union_", "union", "add", "add_launch",
    "sums_with", "sums_graph", "NULL", "INFINITY", "GEMM", "minor", "TILEC_PUBLIC", "TILEC_SUPPORT",
    "tilec_status", "std", "data", "in_pipelines_0", "by_types_new",
    "kernel_sums", "_Kernel_add", "_CUBINS", "_operations", "__init__", "__getattr__", "__file__",
    "__FILE__", "Literal", "overload", "instance", "rt", "Operations", "tuple",
)  # fmt: skip


def everything_called(names):
    """Two instances of `add`, which a pipeline launches, and a kernel of each other name."""
    others = [name for name in names if name != "add"]
    kernels = [with_variants(replace(add_kernel(), name=name, symbol=name)) for name in others]
    every = manifest(add_kernel(), add_kernel(block=256), *kernels)
    return replace(every, pipelines=(sums(),))


def emitted(emit, names=KERNELS):
    return emit([Artifact(everything_called(names), CUBIN)], "sample", EmitOptions())


MACROS = "#define GEMM 7\n#define minor(device) 7\n#include <math.h>\n#include <stdio.h>\n"


@pytest.mark.parametrize("before", ["", MACROS], ids=["alone", "after macros"])
@pytest.mark.parametrize("compiler", compilers("g++", "clang++") or [None])
def test_kernels_of_any_names_are_functions_of_cxx(tmp_path, compiler, before):
    if compiler is None:
        pytest.skip("there is no compiler")
    [text] = emitted(emit_header).values()
    (tmp_path / "sample.h").write_bytes(text)
    source = tmp_path / "calls.cpp"
    after = 'static_assert(GEMM == 7 && minor(1) == 7, "");\n' if before else ""
    source.write_text(f'{before}#include "sample.h"\n{after}')
    compiled(compiler, f"-std={CXX_STANDARD}", *STRICT, "-fsyntax-only", source)


# What files of a language are written with, beside its words.
WRITTEN_WITH = (
    "T", "T0", "given", "target", "usize", "f32", "String", "Tensor", "Stream", "Scope", "Result",
    "Some", "fn", "self_", "graph", "plan", "streams", "workspace_bytes", "arguments", "signal",
    "time", "y0", "stdin", "near", "min", "minor", "ä", "ö", "tilec_of_real", "lambda", "async",
)  # fmt: skip


def with_parameters_of_any_names():
    """Kernels and pipelines that take tensors and numbers called so."""
    names = list(dict.fromkeys((*KERNELS, *WORDS, *WRITTEN_WITH)))
    kernels, pipelines = [], []
    for number, start in enumerate(range(0, len(names), 60)):
        parameters = (
            Parameter("written", "tensor", "f32", ("N",), "mut"),
            *(
                Parameter(name, "tensor", "f32", ("N",), "shared")
                if i % 3 == 0
                else Parameter(name, "scalar", ("bool", "usize", "f32", "i8")[i % 4])
                for i, name in enumerate(names[start : start + 60])
            ),
        )
        base = replace(add_kernel(), name=f"k{number}", symbol=f"k{number}", coverage=())
        kernels.append(with_variants(replace(base, parameters=parameters)))
        pipelines.append(pipeline(f"p{number}", parameters, ("N",), (), ()))
    return replace(manifest(*kernels), pipelines=tuple(pipelines))


@pytest.mark.parametrize("compiler", compilers("gcc", "clang", "g++", "clang++") or [None])
def test_parameters_of_any_names_compile(tmp_path, compiler):
    if compiler is None:
        pytest.skip("there is no compiler")
    made = Artifact(with_parameters_of_any_names(), CUBIN)
    [text] = emit_header([made], "sample", EmitOptions()).values()
    (tmp_path / "sample.h").write_bytes(text)
    is_cxx = compiler.endswith("++")
    source = tmp_path / ("after.cpp" if is_cxx else "after.c")
    standard = CXX_STANDARD if is_cxx else "gnu11"
    includes = INCLUDES.replace("#include <complex.h>\n", "") if is_cxx else INCLUDES
    source.write_text(f'{includes}#include "sample.h"\n')
    compiled(compiler, f"-std={standard}", "-Wall", "-Wextra", "-fsyntax-only", source)


def test_one_rule_names_what_is_called_in_all_languages():
    """What can stay stays, though another word would become it."""
    names = ["new", "new_", "load", "load_", "None", "None_", "add_launch", "add"]
    assert of_cxx(names) == ["new__", "new_", *names[2:]]
    words = ("", "_launch", "_check", "_plan")
    assert rust_names(names, [words] * len(names)) == [
        "new", "new_", "load__", "load_", "None__", "None_", "add_launch_", "add",
    ]  # fmt: skip
    assert attribute_names(names, ().__contains__) == [*names[:4], "None__", *names[5:]]
    given = ["int", "int_", "fn", "fn_", "self", "self_"]
    assert parameter_names(given) == ["int__", *given[1:]]
    assert rust_parameters(given) == [*given[:2], "fn__", "fn_", "self__", "self_"]
    assert python_parameters(given) == [*given[:4], "self__", "self_"]


@pytest.mark.parametrize(
    "names_of",
    [
        of_cxx,
        parameter_names,
        rust_parameters,
        lambda names: attribute_names(names, KERNELS.__contains__),
    ],
)
def test_whatever_the_names_what_they_become_differs_and_is_no_name_that_is_taken(names_of):
    names = [*dict.fromkeys((*KERNELS, *WORDS, "ä", "ö", "x_t", "_X", "_", "__", "A_b", "tilec_"))]
    found = names_of(names)
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) for name in found)
    assert names_of(found) == found


def test_no_literal_is_longer_than_compilers_must_take():
    longest = "ab" * 2047 + "c"
    assert string(longest) == f'"{longest}"'
    assert string(longest + "d") == f'"{longest[:4092]}..."'
    assert string("ä" * 3000).count("\\303") == 2046  # 4092 bytes, none of them half a letter


def test_other_names_stay_what_they_are():
    kept = ["x", "N", "K", "value", "tiles", "count_of", "Weights", "type", "_x"]
    assert parameter_names(kept) == kept
    assert parameter_names(["status"]) == [
        "status_"
    ]  # a variable of functions of C++ that make graphs


@pytest.mark.parametrize(
    ("stem", "prefix", "clash"),
    [("tilec", "", "tilec_load"), ("graph_launch", "tilec_", None), ("tilec", "my_", None)],
)
def test_a_function_is_none_of_the_headers_own(stem, prefix, clash):
    made = Artifact(manifest(add_kernel()), CUBIN)
    if clash is None:
        [text] = emit_header([made], stem, EmitOptions(prefix)).values()
        assert f" {prefix}{stem}_load(".encode() in text
        return
    with pytest.raises(SetupError, match=f"`{clash}` is a function of every header"):
        emit_header([made], stem, EmitOptions(prefix))


def test_a_header_is_none_that_others_include(tmp_path):
    """Those that ours includes, by whatever way, and those of C."""
    [text] = emitted(emit_header).values()
    (tmp_path / "sample.h").write_bytes(text)
    (tmp_path / "all.cpp").write_text(f'{INCLUDES}#include "sample.h"\n')
    compiler = cxx_compiler()
    done = run(compiler, f"-std={CXX_STANDARD}", "-H", "-fsyntax-only", tmp_path / "all.cpp")
    places = re.findall(r"^\.+ (/\S+)/(\w+)\.h$", done.stderr, re.MULTILINE)
    found = {name for folder, name in places if re.search(r"/include(/c\+\+/\d+)?$", folder)}
    assert {"stdint", "string", "dlfcn", "time"} <= found
    for name in found | set(INCLUDED):
        assert header_file(name) == f"{name}_.h", name
    assert [header_file(name) for name in ("copy", "add", "math_")] == [
        "copy.h",
        "add.h",
        "math_.h",
    ]


@pytest.mark.parametrize("stem", ["chunk", "pipes", "tomllib", "annotationlib", "compression"])
def test_a_module_has_one_name_by_each_python(stem):
    """Some of them have a module that is called so, and some have not."""
    assert module_name(stem) == f"{stem}_"


def test_a_module_is_none_of_pythons_nor_one_that_it_imports():
    names = ["math", "typing", "tilec", "torch", "__init__", "class", "copy"]
    assert [module_name(name) for name in names] == [f"{name}_" for name in names]
    assert [module_name(name) for name in ("add", "math_", "a-b")] == ["add", "math_", "a_b"]
