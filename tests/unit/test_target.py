"""Targets by name, and their facts."""

from __future__ import annotations

import pytest

from tilec.diagnostics.setup_error import SetupError
from tilec.target import toolchain
from tilec.target.resolve import LLVM_CHIPS, TARGETS, resolve


def accepted() -> frozenset[str]:
    return frozenset({"sm_75", "sm_80", "sm_87", "sm_90a", "sm_103a", "sm_107", "sm_121f"})


def never() -> frozenset[str]:
    raise AssertionError("a target with a table needs no ptxas")


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_with_a_table_is_found_without_asking_ptxas(name):
    target = resolve(name, never)
    assert target.name == name
    assert target.described_as is None
    assert f"sm_{target.number}" == name.rstrip("a")
    assert target.is_architecture_specific == name.endswith("a")


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": KiB of shared
# memory that a block may have, and warps of a multiprocessor.
@pytest.mark.parametrize(
    ("name", "smem_kib", "warps"),
    [("sm_80", 163, 64), ("sm_86", 99, 48), ("sm_89", 99, 48), ("sm_90", 227, 64),
     ("sm_90a", 227, 64), ("sm_100", 227, 64), ("sm_120", 99, 48)],
)  # fmt: skip
def test_facts_are_those_of_the_manual(name, smem_kib, warps):
    target = TARGETS[name]
    assert target.smem_per_block_bytes == smem_kib * 1024
    assert target.warps_per_sm == warps


@pytest.mark.parametrize(
    ("name", "family"), [("sm_87", "sm_86"), ("sm_103a", "sm_100"), ("sm_121f", "sm_120")]
)
def test_another_target_has_the_facts_of_the_nearest_older_one(name, family):
    target = resolve(name, accepted)
    assert (target.name, target.described_as) == (name, family)
    assert target.smem_per_block_bytes == TARGETS[family].smem_per_block_bytes


@pytest.mark.parametrize("name", ["sm_75", "sm_107", "sm_88", "sm_90b", "hopper", "", "sm_", "90a"])
def test_refuses_a_target_that_is_unknown_or_too_old(name):
    with pytest.raises(SetupError, match="target") as caught:
        resolve(name, accepted)
    assert caught.value.code == "E0901"
    assert "sm_90a" in caught.value.help


def test_the_installed_ptxas_takes_every_target_with_a_table_and_every_chip_of_llvm():
    known = toolchain.ptxas_targets()
    assert set(TARGETS) <= known
    assert {f"sm_{number}" for number in LLVM_CHIPS} <= known


def test_the_tools_are_files_of_the_wheels():
    for find in (toolchain.ptxas, toolchain.nvdisasm, toolchain.libdevice):
        assert find().is_file()
    assert toolchain.ptxas_version()[0].isdigit()


def test_the_environment_may_name_another_ptxas(monkeypatch, tmp_path):
    other = tmp_path / "ptxas"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("TILEC_PTXAS", str(other))
    assert toolchain.ptxas() == other
    monkeypatch.setenv("TILEC_PTXAS", str(tmp_path / "none"))
    with pytest.raises(SetupError, match="TILEC_PTXAS"):
        toolchain.ptxas()
