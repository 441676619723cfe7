"""Programs in Rust: what they may write runs, and what would race is refused by the compiler."""

from __future__ import annotations

import json
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.emit.launching import CUBIN, slot_bytes
from tests.emit.pipeline_samples import pipelined
from tests.emit.rust.compiler import compile_rust, compiled_rust, rustc
from tests.emit.test_cxx_calls import CALLS, _manifest
from tests.emit.test_names import emitted, with_parameters_of_any_names
from tests.emit.toolchain import compiled, fake_driver, run
from tests.unit.manifest_samples import add_kernel, manifest
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.rust import emit_rust

# What projects ask for beside what is on from the start.
LINTS = tuple(
    f"-W{lint}"
    for lint in (
        "clippy::pedantic", "missing_debug_implementations", "rust_2018_idioms",
        "trivial_numeric_casts", "unused_qualifications",
    )
)  # fmt: skip
HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="module")
def sample(tools):
    """A folder with the emitted file, and a library that programs can be compiled against."""
    folder = Path(mkdtemp(dir=tools))
    [text] = emit_rust([Artifact(pipelined(), CUBIN)], "sample", EmitOptions()).values()
    (folder / "sample.rs").write_bytes(text)
    return folder


def test_a_program_does_what_its_types_allow(sample, tools):
    (sample / "typed.rs").write_bytes((HERE / "typed.rs").read_bytes())
    compiled_rust("-o", sample / "typed", sample / "typed.rs")
    described = []
    for kernel in pipelined().kernels:
        for variant in kernel.variants:
            sizes = [str(slot_bytes(slot)) for slot in variant.slots]
            described += [variant.symbol, ",".join(sizes)]
    command = sample / "typed", fake_driver(tools), *described
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert not done.stdout and not done.stderr
    # A driver that lets nobody wait: no memory is given back under a kernel.
    done = run("env", "TYPED_ABORTS=1", *command)
    assert (done.returncode, done.stdout) == (-signal.SIGABRT, "")
    assert "device 0 does not say when its work on borrowed memory is done" in done.stderr


@pytest.mark.parametrize("edition", ["2021", "2024"])
def test_formatting_a_project_leaves_the_file_as_it_is(sample, edition):
    if not shutil.which("rustfmt"):
        pytest.skip("there is no rustfmt")
    compiled("rustfmt", "--check", "--edition", edition, sample / "sample.rs")


def test_types_of_numbers_say_which_instances_are_meant(tmp_path):
    """As in C++, by calls of which each is one of those of `test_cxx_calls`."""
    [text] = emit_rust([Artifact(_manifest(), CUBIN)], "sample", EmitOptions()).values()
    (tmp_path / "sample.rs").write_bytes(text)
    (tmp_path / "numbers.rs").write_bytes((HERE / "numbers.rs").read_bytes())
    compiled_rust("-o", tmp_path / "numbers", tmp_path / "numbers.rs")
    done = run(tmp_path / "numbers")
    assert (done.stdout.split(), done.stderr) == (list(CALLS.values()), "")


def test_numbers_of_no_instance_do_not_compile(tmp_path):
    [text] = emit_rust([Artifact(_manifest(), CUBIN)], "sample", EmitOptions()).values()
    (tmp_path / "sample.rs").write_bytes(text)
    call = "pub fn f(z: &sample::TensorMut<'_, i8>) { let _ = sample::fill_check(z, 7i32); }"
    (tmp_path / "call.rs").write_text(f"mod sample;\n{call}\n")
    done = compile_rust("--crate-type=lib", "--emit=metadata", tmp_path / "call.rs")
    assert "`(i8, i32): fill_elements` is not satisfied" in done.stderr


@pytest.mark.parametrize("edition", ["2021", "2024"])
def test_kernels_and_parameters_may_have_any_names(tmp_path, edition):
    parameters = Artifact(with_parameters_of_any_names(), CUBIN)
    files = emitted(emit_rust), emit_rust([parameters], "parameters", EmitOptions())
    for [(name, text)] in (one.items() for one in files):
        (tmp_path / name).write_bytes(text)
        flags = "--crate-type=lib", "--emit=metadata", "-Dwarnings", "--out-dir", tmp_path
        compiled_rust(*flags, tmp_path / name, edition=edition)


@pytest.mark.parametrize("name", ["borrows", "types"])
def test_the_compiler_refuses_what_would_race(sample, name):
    if not (sample / "libsample.rmeta").exists():
        flags = "--crate-type=lib", "--emit=metadata", "-Dwarnings", "--edition=2024", *LINTS
        linter = shutil.which("clippy-driver") or rustc()
        compiled(linter, *flags, "--out-dir", sample, sample / "sample.rs")
    text = (HERE / f"{name}.rs").read_text(encoding="utf-8")
    wanted = {
        number: code
        for number, line in enumerate(text.splitlines(), 1)
        for code in re.findall(r"//~ (\w+)$", line)
    }
    done = compile_rust(
        "--crate-type=lib", "--emit=metadata", "--error-format=json", "--extern",
        f"sample={sample / 'libsample.rmeta'}", "--out-dir", sample, HERE / f"{name}.rs",
    )  # fmt: skip
    assert done.returncode == 1
    found = {}
    for message in map(json.loads, done.stderr.splitlines()):
        [*spans] = [span["line_start"] for span in message["spans"] if span["is_primary"]]
        if spans:
            found[spans[0]] = (message["code"] or {}).get("code", "lifetime")
    assert found == wanted
    assert len(wanted) >= 4


def mixed(written: str, read: str):
    """A kernel of which several element types vary, and not as one."""
    kernel = add_kernel()
    z, x, y, scale = kernel.parameters
    z, x, y = replace(z, element=written), replace(x, element=read), replace(y, element=written)
    symbol = f"mixed__{written}_{read}"
    variants = (replace(kernel.variants[1], symbol=symbol),)
    return replace(
        kernel, name="mixed", symbol=symbol, parameters=(z, x, y, scale), variants=variants
    )


MIXED = """
axpy::take_buffers!(axpy, sample);
fn of_two_files(z: &mut Numbers, x: &sample::DeviceBuffer<sample::BF16>) -> Result<()> {
    let y = DeviceBuffer::from_slice(0, &[1f32; 8])?;
    let (x, y) = (Tensor::new(x, [8])?, Tensor::new(&y, [8])?);
    axpy::mixed(&Stream::of_device(0), &mut TensorMut::new(z, [8])?, &x, &y, 1.0)
}
type Numbers = sample::DeviceBuffer<f32>;
type Read<'a> = Tensor<'a, axpy::F16>;
fn two_types(z: &mut TensorMut<'_, f32>, x: &Read<'_>, y: &Tensor<'_, f32>) -> Result<()> {
    axpy::mixed(&Stream::of_device(0), z, x, y, 1.0)
}
"""


def test_the_examples_of_the_documentation_compile(sample):
    page = (ROOT / "docs" / "launchers-rust.md").read_text(encoding="utf-8")
    plain = re.findall(r"^```rs\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    [piped] = re.findall(r"^```rs,pipeline\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(plain) == 3
    kernel = add_kernel()
    y, x, a = (kernel.parameters[i] for i in (0, 1, 3))
    y, x, a = replace(y, name="y"), replace(x, name="x"), replace(a, name="a")
    variants = tuple(replace(one, preconditions=()) for one in kernel.variants[1:])
    axpy = replace(kernel, name="axpy", parameters=(y, x, a), variants=variants)
    kernels = axpy, mixed("f32", "bf16"), mixed("f32", "f16"), mixed("f64", "f16")
    [text] = emit_rust([Artifact(manifest(*kernels), CUBIN)], "axpy", EmitOptions()).values()
    (sample / "axpy.rs").write_bytes(text)
    page_code = "\n".join(plain).replace("../build/axpy.rs", "axpy.rs")
    (sample / "page.rs").write_text(
        "#![deny(warnings)]\n#![allow(dead_code)]\n"
        f'#[path = "{HERE / "cudarc.rs"}"]\n#[allow(non_camel_case_types)]\nmod cudarc;\n'
        f"{page_code}\n{MIXED}\n"
        f'#[path = "sample.rs"]\nmod sample;\nmod piped {{\nuse super::sample::*;\n{piped}}}\n'
    )
    compiled_rust("--crate-type=lib", "--emit=metadata", "--out-dir", sample, sample / "page.rs")
