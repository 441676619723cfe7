"""`tilec build --fatbin`: one file for several targets, and what `inspect` shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_files import files_in

from tilec.artifact.fatbin import cubins_of
from tilec.diagnostics.setup_error import SetupError
from tilec.target import toolchain

SOURCE = """
#[kernel]
#[instance(B = 64)]
pub fn double<N: Dim, const B: usize>(z: Part<&mut Tensor<f32, N>, B>, x: &Tensor<f32, N>) {
    let t = x.load_like(&z);
    z.store(t + t);
}
"""
BUILD = ("build", "double.tile", "--target", "sm_80,sm_90a", "--fatbin")


@pytest.fixture(autouse=True)
def program(workplace):
    Path("double.tile").write_text(SOURCE)


def test_the_cubins_of_all_targets_stand_in_one_file(tilec):
    assert tilec(*BUILD, "--emit", "dep").status == 0
    assert files_in(Path("build")) == [
        "double.d", "double.fatbin", "double.sm_80.cubin", "double.sm_80.json",
        "double.sm_90a.cubin", "double.sm_90a.json",
    ]  # fmt: skip
    joined = Path("build/double.fatbin").read_bytes()
    assert cubins_of(joined) == [
        Path(f"build/double.{target}.cubin").read_bytes() for target in ("sm_80", "sm_90a")
    ]
    assert "build/double.fatbin" in Path("build/double.d").read_text()

    shown = tilec("inspect", "build/double.fatbin").out
    one_by_one = [
        tilec("inspect", f"build/double.{target}.json").out for target in ("sm_80", "sm_90a")
    ]
    assert shown == "\n".join(one_by_one)
    ended = tilec("inspect", "build/double.fatbin", "--kernel", "triple")
    assert (ended.status, "has no kernel `triple`" in ended.err) == (2, True)

    Path("build/double.fatbin").write_bytes(joined[:-8])
    ended = tilec("inspect", "build/double.fatbin")
    assert (ended.status, "the fat binary is cut off" in ended.err) == (1, True)


def test_without_the_tool_nothing_is_written(tilec, monkeypatch):
    def missing():
        raise SetupError("`fatbinary` is not installed")

    monkeypatch.setattr(toolchain, "fatbinary", missing)
    monkeypatch.setattr("tilec.outputs.fatbinary", missing)
    ended = tilec(*BUILD)
    assert (ended.status, "`fatbinary` is not installed" in ended.err) == (2, True)
    assert files_in(Path()) == ["double.tile"]
