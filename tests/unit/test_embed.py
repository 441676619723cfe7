"""A manifest in a cubin: there and back, unseen by NVIDIA's own tools, and damage is named."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.manifest_samples import manifest
from tilec.artifact.embed import CubinError, embed, extract
from tilec.artifact.manifest import from_json, to_json

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry add__f32_1024(.param .u64 z, .param .u64 n)
{
    .reg .b64 %rd<4>;
    .reg .f32 %f<2>;
    .shared .align 4 .b8 smem[64];
    ld.param.u64 %rd1, [z];
    cvta.to.global.u64 %rd2, %rd1;
    mov.f32 %f1, 0f3F800000;
    st.global.f32 [%rd2], %f1;
    ret;
}
"""


def tool(name: str) -> Path:
    """One of NVIDIA's tools, from its wheel."""
    for folder in find_spec("nvidia").submodule_search_locations:
        for path in Path(folder).glob(f"**/bin/{name}"):
            return path
    raise AssertionError(f"the wheel of {name} is installed for the tests")


@cache
def cubin() -> bytes:
    run = subprocess.run(
        [tool("ptxas"), "-arch=sm_90", "-o", "/dev/stdout", "/dev/stdin"],
        input=PTX.encode(),
        capture_output=True,
        check=True,
    )
    return run.stdout


def listing(command: str, *options: str, path: Path) -> str:
    """What a tool says of a file, its path left out."""
    run = subprocess.run([tool(command), *options, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.replace(str(path), "FILE")


def test_a_manifest_comes_out_as_it_went_in():
    text = to_json(manifest()).encode()
    assert extract(embed(cubin(), text)) == text
    assert from_json(extract(embed(cubin(), text))) == manifest()


def test_a_cubin_without_a_manifest_gives_none():
    assert extract(cubin()) is None


def test_what_ptxas_wrote_keeps_its_place():
    result = embed(cubin(), b"{}")
    changed = [i for i, (a, b) in enumerate(zip(cubin(), result, strict=False)) if a != b]
    assert all(40 <= i < 48 or 60 <= i < 62 for i in changed)


def test_nvidias_tools_read_the_same_code(tmp_path):
    plain, joined = tmp_path / "plain.cubin", tmp_path / "joined.cubin"
    plain.write_bytes(cubin())
    joined.write_bytes(embed(cubin(), to_json(manifest()).encode()))
    for command, options in [
        ("nvdisasm", ["--print-code"]),
        ("cuobjdump", ["-sass"]),
        ("cuobjdump", ["-res-usage"]),
    ]:
        before, after = (listing(command, *options, path=p) for p in (plain, joined))
        assert "add__f32_1024" in before
        assert after == before
    assert ".tilec.manifest" in listing("cuobjdump", "-elf", path=joined)


def test_a_second_manifest_is_refused():
    with pytest.raises(CubinError, match="already holds"):
        embed(embed(cubin(), b"{}"), b"{}")


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"{}" * 99, b"MZ" + bytes(200), b"\x7fELF\x02\x01" + bytes(200)]
)
def test_what_is_no_cubin_is_refused(data):
    for action in (extract, lambda x: embed(x, b"{}")):
        with pytest.raises(CubinError):
            action(data)


def test_a_cubin_cut_off_anywhere_is_refused():
    whole = embed(cubin(), b"{}")
    for length in range(0, len(whole), 7):
        with pytest.raises(CubinError):
            extract(whole[:length])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 63) | st.integers(0, 10**6), st.binary(min_size=1, max_size=8))
    ),
    st.booleans(),
)
def test_damage_is_an_error_or_harmless(edits, in_table):
    whole = embed(cubin(), b'{"a": 1}')
    data = bytearray(whole)
    for place, new in edits:
        at = len(data) - 1 - place if in_table else place
        at %= len(data)
        data[at : at + len(new)] = new
    for action in (extract, lambda x: embed(x, b"{}")):
        try:
            result = action(bytes(data))
        except CubinError:
            continue
        assert result is None or isinstance(result, bytes)
