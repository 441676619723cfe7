"""The examples build as their pages say, and do what needs no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.emit.toolchain import c_compiler, cxx_compiler

EXAMPLES = Path(__file__).parents[2] / "examples"
TILEC = f"{sys.executable} -m tilec"


def needed(program):
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    return program


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """A copy of the folder, without what was built in it."""
    folder = tmp_path_factory.mktemp("examples") / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("build", "target"))
    with pytest.MonkeyPatch.context() as patch:
        # One for all, so that what two examples share is compiled once.
        patch.setenv("TILEC_CACHE", str(folder.parent / "cache"))
        yield folder


def run(*command, cwd):
    # `make test` is a make too, of which those of the examples are no part.
    apart = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(command, cwd=cwd, env=apart, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make(folder, *arguments):
    compilers = (f"CC={c_compiler()}", f"CXX={cxx_compiler()}")
    flags = ("CFLAGS=-O0", "CXXFLAGS=-O0")
    return run(needed("make"), f"TILEC={TILEC}", *compilers, *flags, *arguments, cwd=folder)


@pytest.fixture(scope="module")
def lines(examples):
    """What the programs in C print."""
    return make(examples / "c", "run").splitlines()


def test_c(lines):
    assert "equal lengths: success" in lines
    [shorter] = [line for line in lines if line.startswith("a shorter x: ")]
    assert "`x`: expected extent 1000 of axis 0 (`N`, as axis 0 of `y`), got 999" in shorter
    [same] = [line for line in lines if line.startswith("y is x: ")]
    assert "`y` is written and overlaps `x`" in same
    on_a_gpu = "y[7] = 15, the sum of y = 1000000"
    assert ("there is no GPU here" in lines) != (on_a_gpu in lines)


def test_a_pipeline_in_c(lines):
    # Five parts and one length, each rounded up to 256 bytes.
    assert "the temporaries take 512 bytes" in lines
    [refused] = [line for line in lines if line.startswith("in place: ")]
    assert "`y` is written and overlaps `x`" in refused
    on_a_gpu = [f"{what}: 1.0000" for what in ("at once", "as a graph", "of another vector")]
    assert lines[-1] == "there is no GPU here" or lines[-3:] == on_a_gpu


def test_cxx(examples):
    last = make(examples / "cpp", "run").splitlines()[-1]
    assert last in ("there is no GPU here", "double: the sum of y = 1000000")


def test_python(examples):
    """Without PyTorch there is the module, and what runs of it needs a GPU."""
    make(examples / "python", "build/gated_torch.py")
    build = examples / "python" / "build"
    names = {path.name for path in build.iterdir()}
    assert {"gated.py", "gated.pyi", "gated_torch.py", "gated.sm_90a.cubin"} <= names
    asked = "import gated; print(gated.gated.kernels[1].symbol)"
    assert run(sys.executable, "-c", asked, cwd=build) == "gated__bf16_2048\n"
    if find_spec("torch"):
        lines = make(examples / "python", f"PYTHON={sys.executable}", "run").splitlines()
        assert (
            lines[-1] == "there is no GPU here" or lines[-1] == "after own.free(): `gate` was freed"
        )


@pytest.mark.parametrize(("generator", "tool"), [("Unix Makefiles", "make"), ("Ninja", "ninja")])
def test_cmake(examples, generator, tool):
    cmake = needed("cmake")
    needed(tool)
    folder = examples / "cpp"
    command = TILEC.replace(" ", ";")  # a list, as CMake writes one
    run(cmake, "-G", generator, "-S", ".", "-B", tool, f"-DTILEC={command}",
        "-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_CXX_COMPILER={cxx_compiler()}",
        cwd=folder)  # fmt: skip

    def made_again():
        return "axpy.h" in run(cmake, "--build", tool, cwd=folder)

    assert made_again()
    assert not made_again(), "nothing is to be done"
    with_helper(folder.parent / "c", made_again)
    run(folder / tool / "axpy", cwd=folder)


def with_helper(folder, made_again):
    """While the kernel uses a helper, an edit of that is one of the kernel."""
    kernel, helper = folder / "axpy.tile", folder / "twice.tile"
    text = kernel.read_text()
    kernel.write_text("use twice::twice;\n" + text.replace("* a +", "* twice(a) +"))
    helper.write_text("fn twice<T: Float>(a: T) -> T { a + a }\n")
    assert made_again() and not made_again()
    helper.write_text("fn twice<T: Float>(a: T) -> T { a * 3.0 }\n")
    assert made_again() and not made_again()
    kernel.write_text(text)
    helper.unlink()
    assert made_again()


def test_rust(examples):
    folder = examples / "rust"
    needed("cargo")
    lines = run(needed("make"), "run", f"TILEC={TILEC}", cwd=folder).splitlines()
    assert lines[-1] in ("there is no GPU here", "of another vector: 1.0000")

    def made_again():
        modules = {path: path.stat().st_mtime_ns for path in folder.glob("target/**/out/axpy.rs")}
        make(folder, "run")
        return any(path.stat().st_mtime_ns != before for path, before in modules.items())

    with_helper(folder.parent / "c", made_again)


def test_make_builds_again_exactly_what_it_must(examples):
    folder = examples / "make"
    assert make(folder, "run").endswith("blend 1000: 1, blend 1000 with 999: 0, scale 1000: 1\n")
    assert built_again(folder, lambda: None) == set()

    helper = folder / "shapes.tile"
    text = helper.read_text()
    other = "t.max(low).min(high)", "t.min(high).max(low)"
    assert built_again(folder, lambda: helper.write_text(text.replace(*other))) == {
        "blend.h", "blend.sm_90a.cubin", "use_blend.o", "program",
    }  # fmt: skip
    with_remark = helper.read_text() + "// A remark that changes nothing.\n"
    assert built_again(folder, lambda: helper.write_text(with_remark)) == set()

    user = folder / "blend.tile"
    user.write_text(user.read_text().replace("shapes", "forms"))
    helper.rename(folder / "forms.tile")
    make(folder)  # which knows that the file is gone


def built_again(folder, edit):
    """The outputs whose time changes by an edit and another `make`; not what tells of times."""
    before = times(folder)
    edit()
    make(folder)
    after = times(folder)
    return {name for name in after if after[name] != before.get(name)}


def times(folder):
    return {
        path.name: path.stat().st_mtime_ns
        for path in (folder / "build").iterdir()
        if path.suffix not in (".d", ".read", ".stamp")
    }
