"""Whichever call of the driver fails: a status says so, nothing is left, the next call works."""

from __future__ import annotations

import re

import pytest

from tests.emit.launching import CUBIN, slot_bytes
from tests.emit.pipeline_samples import pipelined
from tests.emit.toolchain import HERE, compilers, failing_driver_text, run
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header

FLAGS = ("-std=gnu11", "-g", "-O1", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", "-rdynamic")


def built(folder, compiler, sanitizers):
    """The program of `failing.c`; the test is skipped where the compiler has no such sanitizer."""
    [text] = emit_header([Artifact(pipelined(), CUBIN)], "sample", EmitOptions()).values()
    (folder / "sample.h").write_bytes(text)
    (folder / "failing_driver.h").write_text(failing_driver_text())
    described = [
        f'    fake_describe("{variant.symbol}", {len(sizes)}, (const int[]){{{", ".join(sizes)}}});'
        for kernel in pipelined().kernels
        for variant in kernel.variants
        for sizes in [[str(slot_bytes(slot)) for slot in variant.slots]]
    ]
    source = (HERE / "failing.c").read_text().replace("#DESCRIBED", "\n".join(described))
    (folder / "failing.c").write_text(source)
    made = folder / "failing"
    flags = *FLAGS, f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-I", HERE
    done = run(compiler, *flags, "-o", made, folder / "failing.c", "-ldl", "-lpthread")
    if "cannot find" in done.stderr:
        pytest.skip(f"{compiler} has no {sanitizers} sanitizer")
    assert done.returncode == 0, done.stderr[:4000]
    return made


# What is asked, given back or made better: where one fails, the call may go on without.
GOES_ON = {
    "cuCtxGetCurrent", "cuCtxPopCurrent_v2", "cuCtxSynchronize", "cuDeviceGetCount",
    "cuEventDestroy_v2", "cuGraphDestroy", "cuGraphExecDestroy", "cuInit", "cuLibraryUnload",
    "cuMemFreeAsync", "cuMemFree_v2", "cuOccupancyMaxActiveClusters", "cuPointerGetAttribute",
    "cuStreamGetDevice", "cuStreamIsCapturing",
}  # fmt: skip


@pytest.mark.parametrize("compiler", compilers("gcc", "clang") or [None])
def test_each_call_of_the_driver_may_fail(tmp_path, compiler):
    if compiler is None:
        pytest.skip("there is no compiler")
    done = run(built(tmp_path, compiler, "address,undefined"))
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout[-300:], done.stderr[:4000])
    failed = re.findall(r"^(\w+) in ([\w ]+): ([01])$", done.stdout, re.MULTILINE)
    assert len(failed) > 200 and len({name for name, _, _ in failed}) >= 37
    for name, step, count in failed:
        assert count == "1" or name in GOES_ON or step == "destroy", (name, step)


def test_sixteen_threads_do_not_race(tmp_path):
    [compiler] = compilers("gcc", "clang")[:1] or [None]
    if compiler is None:
        pytest.skip("there is no compiler")
    program = built(tmp_path, compiler, "thread")
    done = run(program, "threads")
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer does not run on this kernel")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr[:4000]
