"""`tilec run --cpu`: a launch on .npy files."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

SCALE = """
#[kernel]
#[instance(T = f32, B = 1024)]
#[instance(T = bf16, B = 1024)]
pub fn scale<T: Float, N: Dim, const B: usize>(
    y: Part<&mut Tensor<T, N>, B>, x: &Tensor<T, N>, a: T,
) {
    y.store(x.load_like(&y) * a);
}
"""


@pytest.fixture(autouse=True)
def files(workplace):
    Path("scale.tile").write_text(SCALE)
    np.save("x.npy", np.arange(3000, dtype=np.float32))


def scale(tilec, *arguments):
    return tilec("run", "scale.tile", "--kernel", "scale", "--cpu", *arguments)


def test_writes_what_the_program_means(tilec):
    ended = scale(tilec, "--arg", "x=x.npy", "--arg", "a=2", "--out", "y=out/y.npy")
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    written = np.load("out/y.npy")
    assert written.dtype == np.float32
    np.testing.assert_array_equal(written, 2 * np.arange(3000))


def test_shows_what_changed_when_nothing_is_to_be_written(tilec):
    np.save("x.npy", np.array([1.5, 2.5], np.float32))
    ended = scale(tilec, "--arg", "x=x.npy", "--arg", "a=2")
    assert ended.out == "y (float32, 2):\n[3. 5.]\n"


@pytest.mark.parametrize("stored", ["untyped", "uint16"])
def test_bf16_is_read_as_stored_and_written_as_uint16(tilec, stored):
    values = np.array([1, -2.5, 3e38], ml_dtypes.bfloat16)
    np.save("x.npy", values if stored == "untyped" else values.view(np.uint16))
    ended = scale(tilec, "--arg", "x=x.npy", "--arg", "a=0.5", "--out", "y=y.npy")
    assert ended.status == 0, ended.err
    written = np.load("y.npy")
    assert written.dtype == np.uint16
    expected = (values.astype(np.float64) / 2).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(written, expected.view(np.uint16))


def test_the_symbol_of_an_instance_names_it(tilec):
    ended = tilec("run", "scale.tile", "--kernel", "scale__bf16_1024", "--cpu", "--arg", "x=x.npy",
                  "--arg", "a=1")  # fmt: skip
    assert ended.status == 1
    assert "`x` has elements `bf16`, got float32" in ended.err
    assert "scale__f32_1024" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--arg", "x=x.npy"], 1, "no argument for `a`"),
        (["--arg", "a=1"], 1, "no argument for `"),
        (["--arg", "x=x.npy", "--arg", "a=1", "--arg", "b=1"], 1, "no parameter `b`"),
        (["--arg", "x=x.npy", "--arg", "a=1", "--out", "z=z.npy"], 1, "no tensor `z`"),
        (["--arg", "x=bad.npy", "--arg", "a=1"], 1, "`x` is no array"),
        (["--arg", "x=none.npy"], 2, "cannot read `none.npy`"),
        (["--arg", "x=words"], 2, "neither an .npy file nor a number"),
        (["--arg", "x"], 2, "NAME=VALUE"),
    ],
)
def test_says_what_is_wrong_with_the_arguments(tilec, arguments, status, said):
    Path("bad.npy").write_bytes(b"no array")
    ended = scale(tilec, *arguments)
    assert ended.status == status
    assert said in ended.err


def test_an_unknown_kernel_is_an_error_that_names_those_there_are(tilec):
    ended = tilec("run", "scale.tile", "--kernel", "scal", "--cpu")
    assert ended.status == 1
    assert "`scale__f32_1024`" in ended.err


def test_a_program_with_errors_is_not_run(tilec):
    Path("scale.tile").write_text(SCALE.replace("load_like", "load_lik"))
    ended = scale(tilec, "--arg", "x=x.npy", "--arg", "a=2", "--out", "y=y.npy")
    assert ended.status == 1
    assert "error[E0203]" in ended.err
    assert not Path("y.npy").exists()


SMEAR = """
#[kernel(grid = [N.div_ceil(4)])]
pub fn smear<N: Dim>(z: &mut Tensor<f32, N>) {
    let [p, _, _] = program_id();
    unsafe {
        let t = z.load::<4>([p]);
        z.store_at::<8>([p * 4], 1.0);
    }
}
"""


def smear(tilec, length, *arguments):
    Path("smear.tile").write_text(SMEAR)
    np.save("z.npy", np.zeros(length, np.float32))
    return tilec("run", "smear.tile", "--kernel", "smear", "--cpu", "--sanitize", *arguments)


def test_a_sanitized_run_reports_races_at_their_places_and_writes_nothing(tilec):
    ended = smear(tilec, 12, "--arg", "z=z.npy", "--out", "z=out.npy")
    assert ended.status == 1
    assert ended.out == ""
    assert (
        ended.err
        == """\
error[E0502]: program (1) reads `z[4]`, which program (0) writes
 --> smear.tile:6:17
  |
6 |         let t = z.load::<4>([p]);
  |                 ^^^^^^^^^^^^^^^^ program (1) reads it here
7 |         z.store_at::<8>([p * 4], 1.0);
  |         ----------------------------- program (0) writes it here
  |
  = note: in a launch at N = 12

error[E0501]: programs (0) and (1) both write `z[4]`
 --> smear.tile:7:9
  |
7 |         z.store_at::<8>([p * 4], 1.0);
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ both write it here
  |
  = note: in a launch at N = 12

"""
    )
    assert not Path("out.npy").exists()


def test_a_sanitized_run_that_finds_nothing_is_as_any_other(tilec):
    ended = smear(tilec, 4, "--arg", "z=z.npy", "--out", "z=out.npy")
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    np.testing.assert_array_equal(np.load("out.npy"), np.ones(4))
    assert smear(tilec, 4, "--arg", "z=z.npy").out == "z (float32, 4):\n[1. 1. 1. 1.]\n"


def test_what_a_sanitized_run_finds_can_be_had_as_json(tilec):
    ended = smear(tilec, 12, "--arg", "z=z.npy", "--error-format=json")
    assert ended.status == 1
    found = [json.loads(line) for line in ended.err.splitlines()]
    assert [(one["code"], one["range"]["start"]) for one in found] == [
        ("E0502", {"line": 5, "character": 16}),
        ("E0501", {"line": 6, "character": 8}),
    ]
    assert [label["text"] for label in found[0]["labels"]] == [
        "program (1) reads it here",
        "program (0) writes it here",
    ]


def test_a_sanitized_run_knows_what_was_given(tilec):
    Path("twice.tile").write_text(
        "#[kernel]\npub fn twice<N: Dim>(z: Part<&mut Tensor<f32, N>, 4>, x: &Tensor<f32, N>) {\n"
        "    z.store(z.load() + x.load_like(&z));\n}\n"
    )
    run = ("run", "twice.tile", "--kernel", "twice", "--cpu", "--sanitize", "--arg", "x=x.npy")
    ended = tilec(*run)
    assert ended.status == 1
    assert "warning[W0801]: program (0) reads `z[0]`, which has no value yet" in ended.err
    assert tilec(*run, "--arg", "z=x.npy").status == 0
