"""`tilec run --cpu` of pipelines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

PROGRAM = """\
#[kernel]
#[instance(B = 16)]
pub fn scaled<N: Dim, const B: usize>(
    y: Part<&mut Tensor<f32, N>, B>, x: &Tensor<f32, N>, a: f32,
) {
    requires!(N <= 64);
    y.store(x.load_like(&y) * a);
}

#[kernel]
pub fn added<N: Dim>(
    z: Part<&mut Tensor<f32, N>, 16>, x: &Tensor<f32, N>, y: &Tensor<f32, N>,
) {
    z.store(x.load_like(&z) + y.load_like(&z));
}

/// z = a x + (a + 1) x, each product by a launch of its own
#[pipeline]
pub fn twice<N: Dim>(z: &mut Tensor<f32, N>, x: &Tensor<f32, N>, a: f32, b: f32) {
    let mut one = Tensor::<f32, N>::uninit();
    let mut two = Tensor::<f32, N>::uninit();
    scaled(&mut one, x, a);
    scaled(&mut two, x, b);
    added(z, &one, &two);
}
"""
X = np.arange(40, dtype=np.float32)


@pytest.fixture(autouse=True)
def files(workplace):
    Path("twice.tile").write_text(PROGRAM)
    np.save("x.npy", X)


def twice(tilec, *arguments, name="twice"):
    return tilec("run", "twice.tile", "--kernel", name, "--cpu", "--arg", "x=x.npy", *arguments)


@pytest.mark.parametrize("more", [(), ("--sanitize",)])
def test_a_pipeline_writes_what_its_launches_mean(tilec, more):
    ended = twice(tilec, "--arg", "a=2", "--arg", "b=3", "--out", "z=z.npy", *more)
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    np.testing.assert_array_equal(np.load("z.npy"), X * 5)


def test_temporaries_are_not_shown(tilec):
    np.save("x.npy", X[:2])
    ended = twice(tilec, "--arg", "a=1", "--arg", "b=1")
    assert ended.out == "z (float32, 2):\n[0. 2.]\n"


def test_its_kernels_run_by_themselves(tilec):
    ended = twice(tilec, "--arg", "a=2", "--out", "y=y.npy", name="scaled")
    assert ended.status == 0, ended.err
    np.testing.assert_array_equal(np.load("y.npy"), X * 2)


def test_a_contract_that_a_launch_breaks_names_it_and_writes_nothing(tilec):
    np.save("x.npy", np.zeros(65, np.float32))
    ended = twice(tilec, "--arg", "a=2", "--arg", "b=3", "--out", "z=z.npy")
    assert ended.status == 1
    assert (
        "`twice`: the launch of `scaled` in twice.tile:22 (y = one, x = x): `scaled__16`: "
        "`requires!(N <= 64)` does not hold"
    ) in ended.err
    assert not Path("z.npy").exists()


def test_an_unknown_name_is_an_error_that_names_pipelines_too(tilec):
    ended = twice(tilec, name="thrice")
    assert ended.status == 1
    assert "there is no kernel `thrice`; there is `scaled__16`, `added`, `twice`" in ended.err
