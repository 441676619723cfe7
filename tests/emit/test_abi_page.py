"""The C of docs/abi.md compiles beside `cuda.h`, and its table of types is that of slots."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.emit.toolchain import STRICT, c_compiler, compiled, cuda_include
from tilec.artifact.abi import ELEMENT_BYTES

PAGE = (Path(__file__).parents[2] / "docs" / "abi.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)

# What the page's lines take for given.
FRAME = """#include <cuda.h>
#include <stdint.h>
void launch(CUmodule module, CUstream stream, unsigned threads, CUdeviceptr z, CUdeviceptr x,
            CUdeviceptr y, CUdeviceptr a, cuuint64_t M, cuuint64_t K, int64_t lda);
void launch(CUmodule module, CUstream stream, unsigned threads, CUdeviceptr z, CUdeviceptr x,
            CUdeviceptr y, CUdeviceptr a, cuuint64_t M, cuuint64_t K, int64_t lda)
{
    (void)module, (void)stream, (void)threads, (void)z, (void)x, (void)y;
    (void)a, (void)M, (void)K, (void)lda;
%s
}
"""


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_its_lines_of_c_compile(number, tmp_path):
    folder = cuda_include()
    if folder is None:
        pytest.skip("there is no cuda.h")
    source = tmp_path / "page.c"
    source.write_text(FRAME % BLOCKS[number])
    compiled(c_compiler(), "-std=c11", *STRICT, "-isystem", folder, "-fsyntax-only", source)


def test_there_are_such_lines():
    assert len(BLOCKS) == 2


def test_its_table_of_slots_has_every_element_type_that_can_be_passed():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`(\w+(?: \w+)*)`", row[0])}
    types = {one for words in named for one in words.split()}
    assert types >= {element for element in ELEMENT_BYTES if not element.startswith("f8")}
