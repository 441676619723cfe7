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
    assert (ended.status, ended.out, ended.err) == (0, "", "note: ran `scale__f32_1024`\n")
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


FILLED = """
#[kernel]
#[instance(T = bf16, B = 16)]
#[instance(T = bf16, B = 32)]
#[instance(T = f32, B = 16)]
pub fn filled<T: Float, N: Dim, const B: usize>(
    y: Part<&mut Tensor<T, N>, B>, x: &Tensor<i8, N>, a: T,
) {
    y.store(x.load_like(&y).to::<T>() * a);
}

#[pipeline]
#[instance(T = bf16)]
#[instance(T = f32)]
pub fn both<T: Float, N: Dim>(y: &mut Tensor<T, N>, x: &Tensor<i8, N>, a: T) {
    filled(y, x, a);
}
"""


@pytest.mark.parametrize(
    ("name", "symbols"),
    [("filled", ["filled__bf16_16", "filled__f32_16"]), ("both", ["both__bf16", "both__f32"])],
)
def test_it_asks_which_type_is_meant_where_no_argument_says(tilec, name, symbols):
    Path("filled.tile").write_text(FILLED)
    np.save("x.npy", np.arange(5, dtype=np.int8))
    given = ("--cpu", "--arg", "x=x.npy", "--arg", "a=0.5")
    ended = tilec("run", "filled.tile", "--kernel", name, *given, "--out", "y=y.npy")
    named = ", ".join(f"`{symbol}`" for symbol in symbols)
    assert (ended.status, ended.err) == (
        1,
        f"error: several instances of `{name}` fit, and no argument says the type of `y`, `a`: "
        f"{named}; name one of them instead of `{name}`, or give `y`\n",
    )
    assert not Path("y.npy").exists()
    # By its symbol it runs, and so it does where an output says the type.
    ended = tilec("run", "filled.tile", "--kernel", symbols[1], *given, "--out", "y=y.npy")
    assert (ended.status, ended.err, np.load("y.npy").dtype) == (0, "", np.float32)
    np.save("z.npy", np.zeros(5, ml_dtypes.bfloat16))
    ended = tilec("run", "filled.tile", "--kernel", name, *given, "--arg", "y=z.npy")
    assert (ended.status, ended.err) == (0, f"note: ran `{symbols[0]}`\n")


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
        (["--arg", "x=bad.npy", "--arg", "a=1"], 1, "the file for `x` holds no array"),
        (["--arg", "x=none.npy"], 2, "cannot read `none.npy`"),
        (["--arg", "x=words"], 2, "neither an .npy file nor a number"),
        (["--arg", "x"], 2, "NAME=VALUE"),
        # What `y` could not be made from is told, and not that there is none.
        (["--arg", "x=number.npy", "--arg", "a=1"], 1, "`x` has rank 1, got rank 0"),
        (["--arg", "a=1"], 1, "no argument for `y`, and no other tensor says its extent `N`"),
        (["--arg", "x=5", "--arg", "a=1"], 1, "`x` is a tensor, got int"),
        (["--arg", "x=x.npy", "--arg", "a=1", "--out", "y=."], 2, "cannot write `.`"),
        (["--arg", "x=x.npy", "--arg", "a=1", "--out", "y=/"], 2, "cannot write `/`"),
        (
            ["--arg", "x=x.npy", "--arg", "a=1", "--out", "y=to.npy", "--out", "x=./to.npy"],
            2,
            "`y` and `x` would be written to one file",
        ),
    ],
)
def test_says_what_is_wrong_with_the_arguments(tilec, arguments, status, said):
    Path("bad.npy").write_bytes(b"no array")
    np.save("number.npy", np.zeros((), np.float32))
    ended = scale(tilec, *arguments)
    assert ended.status == status
    assert said in ended.err
    assert not Path("to.npy").exists()


@pytest.mark.parametrize("content", [b"no array", b"", b"\x80\x04N.", b"\x93NUMPY", b"PK\x03\x04"])
def test_a_file_without_an_array_is_never_called_one_to_be_trusted(tilec, content):
    Path("bad.npy").write_bytes(content)
    ended = scale(tilec, "--arg", "x=bad.npy", "--arg", "a=1")
    assert (ended.status, "the file for `x` holds no array" in ended.err) == (1, True)
    assert "pickle" not in ended.err


TURN = """
#[kernel]
pub fn turn<M: Dim, N: Dim>(y: Part<&mut Tensor<f32, N, M>, 16, 16>, x: &Tensor<f32, M, N>) {
    y.store(x.load::<16, 16>([y.id(1), y.id(0)]).t());
}

#[kernel]
pub fn total<N: Dim>(y: Part<&mut Tensor<f32>>, x: &Tensor<f32, N>) {
    let mut sum = 0.0;
    for i in 0..N.div_ceil(64) {
        sum += x.load::<64>([i]).sum_all();
    }
    y.store(sum);
}
"""


@pytest.mark.parametrize("stored", ["C", "F", "big endian"])
def test_it_does_not_matter_how_a_file_stores_its_numbers(tilec, stored):
    Path("turn.tile").write_text(TURN)
    values = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.save(
        "x.npy",
        values.astype(">f4") if stored == "big endian" else np.asarray(values, order=stored),
    )
    ended = tilec("run", "turn.tile", "--kernel", "turn", "--cpu", "--arg", "x=x.npy",
                  "--out", "y=y.npy")  # fmt: skip
    assert (ended.status, ended.err) == (0, "")
    np.testing.assert_array_equal(np.load("y.npy"), values.T)


def test_a_tensor_without_axes_is_written_as_it_is_read(tilec):
    Path("turn.tile").write_text(TURN)
    command = ("run", "turn.tile", "--kernel", "total", "--cpu", "--arg", "x=x.npy")
    for given in ((), ("--arg", "y=y.npy")):
        ended = tilec(*command, *given, "--out", "y=y.npy")
        assert (ended.status, ended.err) == (0, "")
        assert np.load("y.npy").shape == ()
        assert np.load("y.npy") == 3000 * 2999 / 2


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
