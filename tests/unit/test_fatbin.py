"""Several cubins in one file: what NVIDIA's tool makes of them, damage, and the choice of one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest_samples import manifest
from noting_driver import NotingDriver
from test_embed import PTX, cubin, tool

import tilec.runtime as rt
import tilec.runtime.module
from tilec.artifact.architecture import nearest
from tilec.artifact.embed import CubinError, embed
from tilec.artifact.fatbin import cubins_of, is_fatbin
from tilec.artifact.manifest import to_json
from tilec.codegen.fatbin import FatbinError, join

TARGETS = ("sm_80", "sm_90", "sm_90a")


@cache
def made_for(target: str) -> bytes:
    """A cubin for a target, with a manifest."""
    run = subprocess.run(
        [tool("ptxas"), f"-arch={target}", "-o", "/dev/stdout", "/dev/stdin"],
        input=PTX.replace(".target sm_90", ".target sm_80").encode(),
        capture_output=True,
        check=True,
    )
    return embed(run.stdout, to_json(replace(manifest(), target=target)).encode())


@cache
def joined() -> bytes:
    return join({target: made_for(target) for target in TARGETS}, tool("fatbinary"))


def test_cubins_stand_in_it_as_they_were():
    assert is_fatbin(joined()) and not is_fatbin(made_for("sm_80"))
    assert cubins_of(joined()) == [made_for(target) for target in TARGETS]


def test_the_same_cubins_give_the_same_bytes():
    cubins = {target: made_for(target) for target in TARGETS}
    assert join(cubins, tool("fatbinary")) == joined()


def test_nvidias_tool_takes_the_same_cubins_out(tmp_path):
    (tmp_path / "x.fatbin").write_bytes(joined())
    subprocess.run(
        [tool("cuobjdump"), "-xelf", "all", "x.fatbin"], cwd=tmp_path, check=True, stdout=-3
    )
    assert sorted(path.read_bytes() for path in tmp_path.glob("*.cubin")) == sorted(
        cubins_of(joined())
    )


def test_what_is_no_cubin_is_not_joined():
    with pytest.raises(FatbinError, match="fatbinary failed"):
        join({"sm_90": b"no cubin"}, tool("fatbinary"))


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8), st.integers(0, 40_000))
def test_damage_is_named_or_harmless(position, written, length):
    data = bytearray(joined())
    data[position : position + len(written)] = written
    for damaged in (bytes(data), joined()[:length]):
        try:
            assert len(cubins_of(damaged)) <= 3
        except CubinError:
            continue


def test_what_is_no_plain_cubin_is_refused():
    data = bytearray(joined())
    data[16:18] = (1).to_bytes(2, "little")  # PTX, as the kind of the first image says
    with pytest.raises(CubinError, match="image 1 of the fat binary is no plain cubin"):
        cubins_of(bytes(data))


def test_one_without_images_is_refused():
    header = bytearray(joined()[:16])
    header[8:] = (0).to_bytes(8, "little")  # bytes of all images
    with pytest.raises(CubinError, match="the fat binary holds no cubin"):
        cubins_of(bytes(header))


@pytest.mark.parametrize(
    ("capability", "target"),
    [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90a"), ((9, 1), "sm_90"), ((7, 5), None)],
)
def test_the_nearest_target_is_taken(capability, target):
    assert nearest(("sm_80", "sm_90", "sm_90a"), *capability) == target
    assert nearest(("sm_90a", "sm_90", "sm_80"), *capability) == target


class Card(NotingDriver):
    def capability(self, device):
        return {None: (9, 0), 1: (8, 6), 2: (10, 0)}[device]


@pytest.fixture
def card(monkeypatch):
    monkeypatch.setattr(tilec.runtime.module, "cuda_driver", Card)


def test_the_runtime_loads_the_cubin_for_the_device(card):
    assert rt.load(joined()).manifest.target == "sm_90a"
    assert rt.load(joined(), device=1).manifest.target == "sm_80"


def test_a_device_that_none_is_for_is_refused(card):
    with pytest.raises(rt.ArchitectureError, match=r"built for sm_80, .*, the device is sm_100"):
        rt.load(joined(), device=2)


def test_damage_is_an_error_of_the_artifact(card):
    with pytest.raises(rt.ArtifactError, match="the cubin: the fat binary is cut off"):
        rt.load(joined()[:-1])
    with pytest.raises(rt.ArtifactError, match="holds no manifest"):
        rt.load(join({"sm_90": cubin()}, tool("fatbinary")))
