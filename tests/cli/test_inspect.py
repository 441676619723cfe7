"""`tilec inspect`: what it shows of a manifest, whoever made it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.manifest_samples import (
    ROW,
    add_kernel,
    copy_kernel,
    manifest,
    mapped_kernel,
)
from tilec.artifact.asked import asked as in_words
from tilec.artifact.manifest import Precondition, to_json


@pytest.fixture
def sample(workplace: Path) -> str:
    Path("add.json").write_text(to_json(manifest()))
    return "add.json"


def test_occupancy_floor_and_conflicts_are_in_the_table(tilec, sample):
    lines = tilec("inspect", sample).out.splitlines()
    assert "  floor     4 * N (x) + 4 * N (y) bytes read" in lines
    assert "            4 * N (z) bytes written" in lines
    assert "  floor     64 * M (source) bytes read" in lines
    assert "            a part of target" in lines
    [wide] = [line for line in lines if line.startswith("  add__f32_1024__v16 ")]
    # 24 registers: 768 of a warp, so that 20 warps of each quarter's 16384 fit; threads allow 16.
    assert "16 x 128 = 100% (threads)  8 " in wide


def test_what_else_a_launch_takes_stands_below_the_table(tilec, workplace):
    kernel = mapped_kernel(cluster=(2, 1, 1), persistent_blocks_per_sm=1)
    Path("scaled.json").write_text(to_json(manifest(kernel)))
    shown = tilec("inspect", "scaled.json").out
    assert (
        "  launch of scaled__bf16__tma\n"
        "    clusters of 2x1x1 blocks\n"
        "    persistent, 1 block for each multiprocessor\n"
        "    tensor map of x  boxes of 64x64  128-byte swizzle  read\n"
        "    tensor map of y  boxes of 32x64  no swizzle        written\n"
    ) in shown
    [row] = [line for line in shown.splitlines() if line.startswith("  scaled__bf16__tma ")]
    assert row.endswith("tensor maps of x, y")
    assert shown.count("launch of") == 1


def test_blocks_that_do_a_program_together(tilec, workplace):
    kernel = mapped_kernel(cluster=(4, 1, 1), split=4)
    Path("scaled.json").write_text(to_json(manifest(kernel)))
    shown = tilec("inspect", "scaled.json").out
    assert "    clusters of 4x1x1 blocks\n    4 blocks a program\n" in shown


def test_details_come_only_when_asked_for(tilec, sample):
    plain = tilec("inspect", sample).out
    assert "layout #" not in plain and "sector" not in plain
    one = tilec("inspect", sample, "--accesses").out
    assert "sector" in one and "wavefront" not in one
    everything = tilec("inspect", sample, "--all").out
    for text in ("sector", "wavefront", "256 bytes at 0", "layout #0, 64: 1 warp"):
        assert text in everything


def test_each_access_has_its_width_and_its_sectors(tilec, sample):
    shown = tilec("inspect", sample, "--accesses", "--kernel", "add").out.splitlines()
    assert (
        "    add.tile:13:13  load z    64 f32  layout #0  1 x 8 bytes  not masked  8 sectors a warp"
        in shown
    )
    assert (
        "    add.tile:13:31  gather z  64 f32  layout #0  2 x 4 bytes  masked      "
        "32 sectors a warp, could be 4"
    ) in shown


def test_each_movement_has_its_cost(tilec, sample):
    shown = tilec("inspect", sample, "--movements", "--kernel", "add").out
    assert "shared memory  2 stores, 1 load, 256 bytes, 12 wavefronts, 8 conflicts" in shown
    assert "shuffles       1 fold, 5 shuffles" in shown
    assert "fma            64 instructions, 8192 operations a program" in shown


def test_a_schedule_has_its_bounds_and_reasons(tilec, sample):
    shown = tilec("inspect", sample, "--schedule", "--kernel", "add").out
    assert (
        "    roles          loader: 4 warps of 40 registers a thread, math: 8 warps\n"
        "    channel        4 slots of 8192 bytes, filled by TMA at add.tile:16:9: "
        "z 64x64 f32 in rows of 128 bytes\n"
        "    product        4 x wgmma.m64n64k16.f32 a warpgroup at add.tile:16:5, "
        "factors lie along k and n\n"
        "    turn           256 cycles or more at add.tile:15:5, by shared memory "
        "(tensor cores 128, shared memory 256, copies 200)\n"
        "    shared memory  256 bytes\n"
        "\n"
        "    depth 4  there is room for no more\n"
    ) in shown


def test_a_variant_without_a_schedule_says_so(tilec, sample):
    shown = tilec("inspect", sample, "--schedule", "--variant", "copy__i8").out
    assert "schedule, copy__i8\n    none: all threads do one thing after the other" in shown


def test_a_kernel_is_chosen_by_its_name_or_an_instance(tilec, sample):
    for name in ("copy", "copy__i8"):
        shown = tilec("inspect", sample, "--kernel", name).out
        assert "copy__i8 (kernels/add.tile:9)" in shown and "add__f32" not in shown


def test_details_of_another_variant(tilec, sample):
    shown = tilec("inspect", sample, "--accesses", "--variant", "copy__i8").out
    assert "global memory, copy__i8\n    none" in shown
    assert "add__f32" not in shown


@pytest.mark.parametrize(("option", "what"), [("--kernel", "kernel"), ("--variant", "variant")])
def test_what_is_not_there_is_named(tilec, sample, option, what):
    ended = tilec("inspect", sample, option, "none")
    assert ended.status == 2
    assert f"`add.json` has no {what} `none`" in ended.err


@pytest.mark.parametrize(
    "kernel",
    [
        replace(add_kernel(), layouts=()),
        # Lanes that never reach element 32, of 64.
        replace(copy_kernel(), layouts=(replace(ROW, lane=(2, 4, 8, 16, 16)),)),
    ],
)
def test_a_report_that_cannot_be_is_refused(tilec, workplace, kernel):
    Path("bad.json").write_text(to_json(manifest(kernel)))
    ended = tilec("inspect", "bad.json", "--layouts")
    assert ended.status == 1
    assert ended.err.startswith("error: `bad.json`: ")


def test_nothing_of_the_compiler_is_needed(sample):
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('mlir', 'lark', 'islpy')))\n"
        "from tilec.cli.entry import run_command_line\n"
        f"sys.exit(run_command_line(['inspect', {sample!r}, '--all']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("content", [b"fn f() {}", b"", b"\x93NUMPY", b"null", b"\xff"])
@pytest.mark.parametrize("command", [["inspect"], ["abi-diff", "a.x"]])
def test_a_file_of_another_kind_is_called_one(tilec, command, content):
    Path("a.x").write_bytes(content)
    ended = tilec(*command, "a.x")
    assert ended.status in (1, 2)
    assert "`a.x`: it is neither a cubin, nor a fat binary, nor a manifest" in ended.err


@pytest.mark.parametrize(
    ("asked", "said", "words"),
    [
        ((16, 16, 4), "x 16-byte aligned, strides too (16), rows of 4n",
         "`x` at a multiple of 16 bytes, with strides of a multiple of 16 bytes and rows of a "
         "multiple of 4 elements"),
        ((1, 1, 2), "x rows of 2n", "`x` with rows of a multiple of 2 elements"),
        ((1, 16, 1), "x strides of 16n bytes", "`x` with strides of a multiple of 16 bytes"),
        ((8, 1, 1), "x 8-byte aligned", "`x` at a multiple of 8 bytes"),
        ((1, 1, 1), "always", "nothing of `x`"),
    ],
)  # fmt: skip
def test_a_multiple_of_one_is_not_asked_for(tilec, workplace, asked, said, words):
    kernel = add_kernel()
    precondition = Precondition("x", *asked)
    told = replace(kernel.variants[0], preconditions=(precondition,))
    Path("add.json").write_text(to_json(manifest(replace(kernel, variants=(told,)))))
    [row] = [one for one in tilec("inspect", "add.json").out.splitlines() if told.symbol in one]
    assert row.endswith(f"  {said}")
    assert in_words(precondition) == words
