"""Variants in child processes: the same bytes as in one, and what fails there fails here."""

from __future__ import annotations

import os

import pytest

from tilec.compilation import Options
from tilec.driver import compile_sources
from tilec.sources import read_sources
from tilec.target.description import Target
from tilec.units import Unit

PROGRAM = """
#[kernel]
#[instance(T = f32, B = 256)]
#[instance(T = f16, B = 512)]
pub fn twice<T: Float, N: Dim, const B: usize>(z: Part<&mut Tensor<T, N>, B>, x: &Tensor<T, N>) {
    let t = x.load_like(&z);
    z.store(t + t);
}
"""


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "twice.tile").write_text(PROGRAM)
    return read_sources(str(tmp_path / "twice.tile"))


def test_so_many_workers_change_no_byte(sources):
    options = Options(emit=("ptx", "llvm"))
    alone = compile_sources(sources, options)
    assert not alone.is_refused
    for workers in (2, 7):
        assert compile_sources(sources, options, workers).outputs == alone.outputs


@pytest.fixture
def failing(monkeypatch):
    """Sets what lowering does in child processes only."""

    def set_to(act) -> None:
        parent, lower = os.getpid(), Unit.made

        def made(self: Unit, target: Target, attribute: str):
            if os.getpid() != parent:
                act()
            return lower(self, target, attribute)

        monkeypatch.setattr(Unit, "made", made)

    return set_to


def _raise() -> None:
    raise ValueError("in a child")


@pytest.mark.parametrize("act", [os.abort, _raise])
def test_what_fails_in_a_child_is_done_again_here(act, sources, failing):
    alone = compile_sources(sources, Options())
    failing(act)
    assert compile_sources(sources, Options(), 2).outputs == alone.outputs
