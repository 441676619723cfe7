"""`tilec build --emit header`: which files, for which targets, under which names."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_files import files_in

DOUBLE = """
#[kernel]
#[instance(T = f32, B = 256)]
pub fn double<T: Num, N: Dim, const B: usize>(z: Part<&mut Tensor<T, N>, B>, x: &Tensor<T, N>) {
    let t = x.load_like(&z);
    z.store(t + t);
}
"""


@pytest.fixture(autouse=True)
def program(workplace):
    Path("double.tile").write_text(DOUBLE)


def test_a_header_stands_beside_the_cubin(tilec):
    done = tilec("build", "double.tile", "--emit", "header,dep")
    assert done.status == 0
    assert files_in(Path("build")) == [
        "double.d", "double.h", "double.json", "double.sm_90a.cubin",
    ]  # fmt: skip
    header = Path("build/double.h").read_text()
    assert "TILEC_PUBLIC tilec_status double__f32_256_launch(tilec_stream stream," in header
    assert "double   (double.tile:4)" in header
    assert "build/double.h" in Path("build/double.d").read_text()


def test_the_same_inputs_give_the_same_header(tilec_process, monkeypatch):
    for seed in ("0", "1"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        done = tilec_process("build", "double.tile", "-o", seed, "--no-cache", "--emit", "header")
        assert done.status == 0
    assert Path("0/double.h").read_bytes() == Path("1/double.h").read_bytes()


def test_several_targets_are_one_header(tilec):
    assert tilec("build", "double.tile", "--target", "sm_80,sm_90a", "--emit", "header").status == 0
    assert [name for name in files_in(Path("build")) if name.endswith(".h")] == ["double.h"]
    header = Path("build/double.h").read_text()
    assert "with their machine code for sm_90a, sm_80." in header
    assert header.count("/* The cubin for sm_80:") == header.count("/* The cubin for sm_90a:") == 1


def test_a_prefix_stands_before_every_public_name(tilec):
    done = tilec("build", "double.tile", "--emit", "header", "--prefix", "mine_")
    assert done.status == 0
    header = Path("build/double.h").read_text()
    own = [line for line in header.splitlines() if line.startswith("TILEC_PUBLIC")]
    assert sum(" mine_double" in line for line in own) >= 7
    assert not any(" double" in line for line in own)


@pytest.mark.parametrize("prefix", ["1_", "a-", "ä"])
def test_a_prefix_is_the_begin_of_a_name(tilec, prefix):
    done = tilec("build", "double.tile", "--emit", "header", "--prefix", prefix)
    assert done.status == 2
    assert "expected letters, digits and `_`" in done.err
