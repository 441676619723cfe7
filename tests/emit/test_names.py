"""Parameters have names that mean nothing else, in any C or C++ and after any header."""

from __future__ import annotations

import re

import pytest

from tests.emit.launching import CUBIN
from tests.emit.toolchain import c_compiler, compiled, cxx_compiler, run
from tests.unit.manifest_samples import add_kernel, manifest
from tilec.diagnostics.setup_error import SetupError
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header
from tilec.emit.header.text import function_name, parameter_name, string

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
    listed = ", ".join(f"int32_t {parameter_name(name)}" for name in names)
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


def test_functions_of_cxx_are_no_macros_and_no_types():
    names = ["EOF", "NULL", "errno", "stdin", "assert", "size_t", "int32_t", "class", "stream"]
    assert [function_name(name) for name in names] == [f"{name}_" for name in names]
    kept = ["gemv_t", "GEMM", "add", "type"]
    assert [function_name(name) for name in kept] == kept


def test_no_literal_is_longer_than_compilers_must_take():
    longest = "ab" * 2047 + "c"
    assert string(longest) == f'"{longest}"'
    assert string(longest + "d") == f'"{longest[:4092]}..."'
    assert string("ä" * 3000).count("\\303") == 2046  # 4092 bytes, none of them half a letter


def test_other_names_stay_what_they_are():
    kept = ["x", "N", "K", "value", "tiles", "count_of", "Weights", "type", "_x"]
    assert [parameter_name(name) for name in kept] == kept
    assert parameter_name("status") == "status_"  # a variable of functions of C++ that make graphs


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
